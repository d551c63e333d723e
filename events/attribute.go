package events

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-json-experiment/json/jsontext"
)

// maxAttribute is the length of a CloudEvents attribute, in bytes. An id is held to maxName, since it becomes a candidate's.
const maxAttribute = 1 << 10

// setAttribute puts an attribute of either mode into the event.
func setAttribute(e *ce.Event, name, text string) error {
	if err := checkAttribute(name, text); err != nil {
		return err
	}
	switch name {
	case "specversion":
		if text != ce.CloudEventsVersionV1 {
			return invalid(name, "send 1.0", "%.20q is not supported", text)
		}
	case "id":
		e.SetID(text)
	case "source":
		e.SetSource(text)
	case "type":
		e.SetType(text)
	case "subject":
		e.SetSubject(text)
	case "datacontenttype":
		e.SetDataContentType(text)
	case "dataschema":
		e.SetDataSchema(text)
	case "time":
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return invalid(name, "send RFC 3339", "%.40q is not a time", text)
		}
		e.SetTime(at)
	default:
		if !isExtension(name) || e.Context.SetExtension(name, text) != nil {
			return invalid(attribute(name), "use lower-case letters and digits", "is not the name of an attribute")
		}
	}
	return nil
}

// checkAttribute refuses what CloudEvents does not allow in a string (§ type system) and what would not survive in a state.
func checkAttribute(name, text string) error {
	limit := maxAttribute
	if name == "id" {
		limit = maxName
	}
	switch {
	case len(text) > limit:
		return invalid(attribute(name), "shorten it", "is %d bytes, the limit is %d", len(text), limit)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return invalid(attribute(name), "send text without control characters", "is not printable UTF-8")
	}
	return nil
}

func isExtension(name string) bool {
	switch name {
	case "", "specversion", "id", "source", "type", "subject", "datacontenttype", "dataschema", "time", "data", "data_base64":
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// attribute names an attribute in an error; its name may come from outside.
func attribute(name string) string { return place(jsontext.Pointer("/" + name)) }
