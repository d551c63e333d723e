package inbox

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"
	_ "time/tzdata" // the zone is configured by name, also on machines without a zone database

	"github.com/clarify-broker/clarify/events"
)

// Config says how the inbox is reached and who its visitors are.
type Config struct {
	Channel events.Channel `json:"channel"`         // the channel's name; inbox when empty
	Base    string         `json:"base,omitzero"`   // path it is mounted under, such as /inbox; empty for /
	Zone    string         `json:"zone,omitzero"`   // IANA time zone that times are shown in; UTC when empty
	Lang    string         `json:"lang,omitzero"`   // for browsers that ask for neither English nor Spanish; en when empty
	Header  string         `json:"header,omitzero"` // a login proxy's header with the visitor's id; empty: the operating system's user, on loopback
	// From are the addresses, as CIDRs, that the header is believed from.
	From []string `json:"from,omitempty"`
}

// Validate checks the configuration.
func (c Config) Validate() error {
	if _, err := events.ParseChannel(string(c.name())); err != nil {
		return err
	}
	if c.Base != "" && (!strings.HasPrefix(c.Base, "/") || strings.HasSuffix(c.Base, "/") || strings.ContainsAny(c.Base, "?#{}\"' ")) {
		return errors.New("inbox.base: write it like /inbox, without a slash at its end")
	}
	if _, err := time.LoadLocation(c.Zone); err != nil {
		return errors.New("inbox.zone: is not an IANA time zone; write it like Europe/Madrid")
	}
	if (c.Header == "") != (len(c.From) == 0) {
		return errors.New("inbox.header: needs inbox.from, the addresses of the proxy that sets it, and the other way round")
	}
	if c.Header != "" && (http.CanonicalHeaderKey(c.Header) == "" || strings.ContainsAny(c.Header, " :\r\n")) {
		return errors.New("inbox.header: is not the name of a header; write it like X-Forwarded-User")
	}
	_, err := c.from()
	return err
}

func (c Config) from() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, text := range c.From {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("inbox.from[%d]: is not a CIDR; write it like 10.0.0.7/32", i)
		}
		if p.Bits() == 0 {
			return nil, fmt.Errorf("inbox.from[%d]: believes the header from everywhere; name the proxy's addresses", i)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

func (c Config) name() events.Channel {
	if c.Channel == "" {
		return "inbox"
	}
	return c.Channel
}

func (c Config) zone() *time.Location {
	if c.Zone == "" {
		return nil
	}
	zone, err := time.LoadLocation(c.Zone)
	if err != nil {
		return nil
	}
	return zone
}
