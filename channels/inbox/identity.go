package inbox

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/user"
	"strings"

	"github.com/clarify-broker/clarify/events"
)

// Identify says who a visitor is, by something the visitor cannot make up.
type Identify func(*http.Request) (events.Responder, error)

// ErrStranger is returned for a visitor who cannot be identified.
var ErrStranger = errors.New("the visitor cannot be identified")

// Visitors is the identification that the configuration asks for.
func (c Config) Visitors() (Identify, error) {
	if c.Header == "" {
		return OSUser(c.name())
	}
	from, err := c.from()
	if err != nil {
		return nil, err
	}
	return trustedHeader(c.name(), http.CanonicalHeaderKey(c.Header), from), nil
}

// OSUser takes everybody who reaches the page on loopback for the operating system's user that runs it, as a developer's
// own machine can. The Host must be loopback as well, so that a web page elsewhere cannot get in by a name that resolves to
// 127.0.0.1; a request that a proxy passed on is a stranger's.
func OSUser(channel events.Channel) (Identify, error) {
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find the operating system's user: %w", err)
	}
	name, _, _ := strings.Cut(me.Name, ",")
	if name == "" {
		name = me.Username
	}
	visitor := events.Responder{Channel: channel, Subject: me.Username, Name: name, Assurance: events.Platform}
	return func(r *http.Request) (events.Responder, error) {
		remote, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !remote.Addr().Unmap().IsLoopback() || !loopbackHost(r.Host) || passedOn(r.Header) {
			return events.Responder{}, ErrStranger
		}
		return visitor, nil
	}, nil
}

func loopbackHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func passedOn(h http.Header) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(h.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// trustedHeader believes one header of a login proxy, from the proxy's addresses only.
func trustedHeader(channel events.Channel, header string, from []netip.Prefix) Identify {
	return func(r *http.Request) (events.Responder, error) {
		remote, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !within(remote.Addr().Unmap(), from) {
			return events.Responder{}, ErrStranger
		}
		values := r.Header.Values(header)
		if len(values) != 1 || strings.TrimSpace(values[0]) == "" || len(values[0]) > 256 {
			return events.Responder{}, ErrStranger
		}
		id := strings.TrimSpace(values[0])
		return events.Responder{Channel: channel, Subject: id, Name: id, Assurance: events.Login}, nil
	}
}

func within(ip netip.Addr, ranges []netip.Prefix) bool {
	for _, r := range ranges {
		if r.Contains(ip) {
			return true
		}
	}
	return false
}
