package events

import (
	"net/url"
	"strings"

	ce "github.com/cloudevents/sdk-go/v2/event"
)

// parseBinary reads the ce- headers of the CloudEvents NATS binding; their values are percent-encoded (§3.1.3.2). Other
// headers, those of the server among them, are not looked at.
func parseBinary(header map[string][]string, body []byte) (*ce.Event, error) {
	e := ce.New()
	seen := map[string]bool{}
	for k, v := range header {
		name, ok := strings.CutPrefix(strings.ToLower(k), "ce-")
		if !ok || len(v) == 0 {
			continue
		}
		if len(v) > 1 || seen[name] {
			return nil, invalid(attribute("ce-"+name), "send it once", "is given more than once")
		}
		seen[name] = true
		text, err := url.PathUnescape(v[0])
		if err != nil {
			return nil, invalid(attribute("ce-"+name), "percent-encode it (CloudEvents NATS binding §3.1.3.2)", "is not percent-encoded")
		}
		if err := setAttribute(&e, name, text); err != nil {
			return nil, err
		}
	}
	if !seen["specversion"] {
		return nil, invalid("content-type", "send "+ContentType+", or ce- headers", "is neither a structured nor a binary CloudEvent's")
	}
	e.DataEncoded = body
	return validEvent(&e)
}
