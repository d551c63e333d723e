package events_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

type reference struct {
	Ref string `yaml:"$ref"`
}

type asyncAPI struct {
	Version  string `yaml:"asyncapi"`
	Channels map[string]struct {
		Address    string               `yaml:"address"`
		Parameters map[string]reference `yaml:"parameters"`
		Messages   map[string]reference `yaml:"messages"`
	} `yaml:"channels"`
	Components struct {
		Parameters map[string]any `yaml:"parameters"`
		Messages   map[string]struct {
			ContentType string    `yaml:"contentType"`
			Payload     reference `yaml:"payload"`
		} `yaml:"messages"`
	} `yaml:"components"`
}

func readAsyncAPI(t *testing.T) asyncAPI {
	t.Helper()
	text, err := os.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc asyncAPI
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != "3.1.0" {
		t.Errorf("asyncapi %s", doc.Version)
	}
	return doc
}

// TestAsyncAPIAddressesAreTheSubjects that the builders make, one channel each.
func TestAsyncAPIAddressesAreTheSubjects(t *testing.T) {
	doc := readAsyncAPI(t)
	var addresses, subjects []string
	for name, c := range doc.Channels {
		addresses = append(addresses, c.Address)
		var inAddress []string
		for tok := range strings.SplitSeq(c.Address, ".") {
			if strings.HasPrefix(tok, "{") {
				inAddress = append(inAddress, strings.Trim(tok, "{}"))
			}
		}
		slices.Sort(inAddress)
		if diff := cmp.Diff(inAddress, slices.Sorted(maps.Keys(c.Parameters))); diff != "" {
			t.Errorf("%s (-address +parameters):\n%s", name, diff)
		}
		for p, ref := range c.Parameters {
			if _, ok := doc.Components.Parameters[p]; !ok || ref.Ref != "#/components/parameters/"+p {
				t.Errorf("%s: parameter %s is not defined", name, p)
			}
		}
	}
	placeholders := strings.NewReplacer(".A.", ".{agent}.", ".T.", ".{task}.", ".C.", ".{channel}.", ".7.", ".{version}.", ".K.", ".{kind}.", ".V.", ".{id}.")
	for name, subject := range builders(space, events.Subject{Agent: "A", Task: "T", Channel: "C", Version: 7, Kind: "K", ID: "V"}) {
		// Twice, since a replaced token's dots are used up.
		subject = strings.Trim(placeholders.Replace(placeholders.Replace(subject+".")), ".")
		if strings.HasPrefix(name, "Operator") {
			subject = strings.Replace(subject, "{id}", "{verb}", 1)
		}
		subjects = append(subjects, subject)
	}
	slices.Sort(addresses)
	slices.Sort(subjects)
	if diff := cmp.Diff(subjects, addresses); diff != "" {
		t.Errorf("-subjects +addresses:\n%s", diff)
	}
}

// TestAsyncAPIMessagesAreTheTypes and the requests and replies that have schemas.
func TestAsyncAPIMessagesAreTheTypes(t *testing.T) {
	doc := readAsyncAPI(t)
	want := events.Types()
	for _, r := range replies() {
		want = append(want, r.name)
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(doc.Components.Messages))); diff != "" {
		t.Errorf("-types +messages:\n%s", diff)
	}
	for name, m := range doc.Components.Messages {
		text, err := os.ReadFile(m.Payload.Ref)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if schema, err := events.Schema(name); err != nil || string(schema) != string(text) {
			t.Errorf("%s: its payload is %s (%v)", name, m.Payload.Ref, err)
		}
		if isEvent := slices.Contains(events.Types(), name); isEvent != (m.ContentType == "") {
			t.Errorf("%s: content type %q", name, m.ContentType)
		}
	}
	used := map[string]bool{}
	for channel, c := range doc.Channels {
		for name, ref := range c.Messages {
			used[name] = true
			if _, ok := doc.Components.Messages[name]; !ok || ref.Ref != "#/components/messages/"+name {
				t.Errorf("%s: message %s is not defined", channel, name)
			}
		}
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("-types +said somewhere:\n%s", diff)
	}
}
