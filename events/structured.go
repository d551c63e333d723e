package events

import (
	"encoding/base64"
	"mime"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json"
)

// parseStructured reads the CloudEvents JSON format 1.0. The SDK's own reader is not for input from outside: it panics on
// some data_base64, ends at a member without a name, and ignores what follows the event.
func parseStructured(contentType string, body []byte) (*ce.Event, error) {
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != ContentType {
		return nil, invalid("content-type", "send "+ContentType, "%.80q is not supported", contentType)
	}
	if err := checkDepth(body, 2*MaxDepth+1); err != nil {
		return nil, err
	}
	var members map[string]Raw
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, jsonProblem(err)
	}
	if _, ok := members["specversion"]; !ok {
		return nil, invalid("specversion", "send 1.0", "is missing")
	}
	e := ce.New()
	for name, raw := range members {
		if err := setMember(&e, name, raw); err != nil {
			return nil, err
		}
	}
	if members["data"] != nil && members["data_base64"] != nil {
		return nil, invalid("data_base64", "send data alone", "stands beside data")
	}
	return validEvent(&e)
}

func setMember(e *ce.Event, name string, raw Raw) error {
	if name == "data" {
		e.DataEncoded = raw
		return nil
	}
	var text string
	switch kind := raw.Kind(); {
	case kind == 'n': // the JSON format's absent attribute
		return nil
	case kind == '"':
		if err := json.Unmarshal(raw, &text); err != nil {
			return jsonProblem(err)
		}
	case (kind == 't' || kind == 'f' || kind == '0') && isExtension(name):
		text = string(raw)
	default:
		return invalid(attribute(name), "send a string", "cannot be a JSON %s", kind)
	}
	if name != "data_base64" {
		return setAttribute(e, name, text)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return invalid("data_base64", "encode it as RFC 4648 §4 says", "is not base64")
	}
	e.DataEncoded = data
	return nil
}
