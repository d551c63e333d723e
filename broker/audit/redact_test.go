package audit

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/events/bus"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// plant fills everything in v that can hold a text with one that says where it stands, so that a member that is added later
// is covered too.
func plant(v reflect.Value, path string, text func(string) string) {
	switch v.Type() {
	case reflect.TypeFor[events.Secret]():
		v.Set(reflect.ValueOf(events.SecretOf(map[string]any{"deep": []string{text(path)}})))
		return
	case reflect.TypeFor[events.Raw]():
		v.Set(reflect.ValueOf(events.Raw(`{"enum":["` + text(path) + `"]}`)))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 12, 1, 14, 0, 0, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text(path))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem(), path, text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0), path, text)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		plant(key, path+".key", text)
		plant(value, path, text)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := path
			if !f.Anonymous || f.Type.Kind() != reflect.Struct {
				name = strings.TrimPrefix(path+"."+f.Name, ".")
			}
			plant(v.Field(i), name, text)
		}
	case reflect.Interface: // the decision: set by the caller
	default:
		if v.CanInt() {
			v.SetInt(7)
		} else if v.CanUint() {
			v.SetUint(7)
		}
	}
}

// planted is a State with a text everywhere, in the form a log may hold it in.
func planted(d events.Decision, text func(string) string) bus.Message {
	var s events.State
	plant(reflect.ValueOf(&s).Elem(), "", text)
	decision := reflect.New(reflect.TypeOf(d)).Elem()
	plant(decision, "Decision", text)
	s.Decision.Decision = decision.Interface().(events.Decision)
	s.Agent, s.Task, s.Kind = "crm-bot", "t-42", events.Asked
	return bus.Message{
		Subject:  events.Subject{Family: "task", Agent: s.Agent, Task: s.Task, Kind: s.Kind},
		Envelope: events.Envelope{Data: s}, Seq: 9, Stored: s.At,
	}
}

func decisions() []events.Decision {
	return []events.Decision{events.Ask{}, events.Proceed{}, events.Approve{}, events.Stop{}, events.Escalate{}, events.Reconcile{}}
}

func plantedRefusal(text func(string) string) bus.Message {
	var r events.Refusal
	plant(reflect.ValueOf(&r).Elem(), "", text)
	r.Agent, r.Task = "crm-bot", "t-42"
	return bus.Message{
		Subject:  events.Subject{Family: "refused", Agent: r.Agent, Task: r.Task, ID: events.TokenFor(r.ID)},
		Envelope: events.Envelope{Data: r}, Seq: 9, Stored: r.At,
	}
}

// authored are the texts of a policy's author, which the audit shows as they are.
func authored(path string) bool {
	return slices.Contains([]string{
		"Decision.Why.Rule", "Decision.Why.Policy.Name", "Decision.Why.Policy.Version",
		"Decision.Why.Policy.Digest", "Decision.Why.Assumptions.Documented", "Decision.Why.Traits.Consequence",
	}, path)
}

func encoded(t *testing.T, r events.Record) string {
	t.Helper()
	if r.Unreadable != "" {
		t.Fatalf("not recorded as what it is: %s", r.Unreadable)
	}
	raw, err := events.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRedact(t *testing.T) {
	t.Run("no_sentence_or_address_gets_in", func(t *testing.T) {
		for _, canary := range []string{"CANARY of words", "canary@CANARY.example", "https://CANARY/x", "+34CANARY", "CANARY\n", "«CANARY»"} {
			text := func(path string) string {
				if authored(path) {
					return "as the policy says"
				}
				return canary
			}
			for _, d := range decisions() {
				if got := encoded(t, Redact(testKey, planted(d, text))); strings.Contains(got, "CANARY") {
					t.Errorf("%T, %q: %s", d, canary, got)
				}
			}
			if got := encoded(t, Redact(testKey, plantedRefusal(text))); strings.Contains(got, "CANARY") {
				t.Errorf("refusal, %q: %s", canary, got)
			}
		}
	})

	t.Run("only_these_members_are_shown", func(t *testing.T) {
		shown := regexp.MustCompile(`CANARY-([A-Za-z.]+)`)
		text := func(path string) string { return "CANARY-" + path }
		got := map[string]bool{}
		for _, d := range decisions() {
			for _, m := range shown.FindAllStringSubmatch(encoded(t, Redact(testKey, planted(d, text))), -1) {
				got[m[1]] = true
			}
		}
		want := []string{
			"Accepted.Channel", "Accepted.Kind", "Accepted.Question", "Accepted.Responder.Assurance", "Accepted.Responder.Channel",
			"Accepted.Responder.Person", "Accepted.Submission", "Accepted.Values.Field", "Candidate.ID", "Candidate.Requester.ID",
			"Candidate.Tool.Name", "Cause", "Claim.Worker", "Decision.From", "Decision.Lookup", "Decision.Why.Assumptions.Documented",
			"Decision.Why.Assumptions.Field", "Decision.Why.Assumptions.Source", "Decision.Why.Policy.Digest", "Decision.Why.Policy.Name",
			"Decision.Why.Policy.Version", "Decision.Why.Rule", "Decision.Why.Traits.Consequence", "Effect.Status", "Release.From",
		}
		for _, pause := range []string{"Pause.", "Left."} {
			want = append(want, pause+"Question", pause+"Kind", pause+"Status", pause+"Responders", pause+"Fields.Name", pause+"Fields.Outcome",
				pause+"Plan.AfterDeadline", pause+"Deliveries.ID", pause+"Deliveries.Target.Channel", pause+"Deliveries.Receipt.State",
				pause+"Deliveries.Receipt.Code")
		}
		for path := range got {
			if !slices.Contains(want, path) {
				t.Errorf("%s is shown", path)
			}
		}
		refusal := map[string]bool{}
		for _, m := range shown.FindAllStringSubmatch(encoded(t, Redact(testKey, plantedRefusal(text))), -1) {
			refusal[m[1]] = true
		}
		for path := range refusal {
			if !slices.Contains([]string{
				"Of", "ID", "Reason", "Field", "Responder.Person", "Responder.Channel", "Responder.Assurance",
				"AnsweredBy.Person", "AnsweredBy.Channel", "AnsweredBy.Assurance",
			}, path) {
				t.Errorf("refusal: %s is shown", path)
			}
		}
		for _, path := range []string{"Candidate.ID", "Accepted.Responder.Person", "Pause.Deliveries.ID", "Left.Question"} {
			if !got[path] {
				t.Errorf("%s is not shown", path)
			}
		}
	})

	t.Run("a_nonce_is_not_shown_as_a_cause_or_an_id", func(t *testing.T) {
		m := planted(events.Proceed{}, func(path string) string { return "CANARY-" + path })
		s := m.Envelope.Data.(events.State)
		s.Cause = s.Claim.Nonce
		m.Envelope.Data = s
		if got := encoded(t, Redact(testKey, m)); strings.Contains(got, s.Claim.Nonce) {
			t.Error(got)
		}
		m = plantedRefusal(func(path string) string { return "CANARY-" + path })
		r := m.Envelope.Data.(events.Refusal)
		r.Of = "claim"
		m.Envelope.Data = r
		if got := encoded(t, Redact(testKey, m)); strings.Contains(got, r.ID) {
			t.Error(got)
		}
	})

	t.Run("one_value_in_two_tasks_has_two_hmacs", func(t *testing.T) {
		a := redactor{key: testKey, agent: "a", task: "t-1"}.value("paid", "", events.SecretOf(true))
		b := redactor{key: testKey, agent: "a", task: "t-2"}.value("paid", "", events.SecretOf(true))
		c := redactor{key: []byte("another key, also of 32 bytes...")}.value("paid", "", events.SecretOf(true))
		if a == b || a == c || b == c {
			t.Error("the HMACs of one value are equal")
		}
		if a != (redactor{key: testKey, agent: "a", task: "t-1"}).value("paid", "", events.NewSecret(events.Raw(" true "))) {
			t.Error("the HMAC depends on how the value is written")
		}
	})

	t.Run("what_cannot_be_read_says_so", func(t *testing.T) {
		legal := planted(events.Proceed{}, func(string) string { return "x" })
		s := legal.Envelope.Data.(events.State)
		other, empty, none := s, s, legal
		other.Task, empty.Decision = "t-43", events.Decided{}
		none.Envelope.Data = nil
		for name, tc := range map[string]struct {
			data any
			want events.Unreadable
		}{
			"no_event": {nil, events.UnreadableEvent}, "another_event": {events.Timer{}, events.UnreadableEvent},
			"another_task": {other, events.UnreadableSubject}, "no_decision": {empty, events.UnreadableSubject},
			"a_refusal_among_states": {events.Refusal{Agent: s.Agent, Task: s.Task}, events.UnreadableSubject},
		} {
			m := legal
			m.Envelope.Data = tc.data
			if r := Redact(testKey, m); r.Unreadable != tc.want || r.Transition != nil || r.Refusal != nil || r.Log != m.Seq {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if r := Redact(testKey, bus.Message{Seq: 3}); r.Agent != events.AboutLog || r.Task != events.AboutLog {
			t.Errorf("no subject: %+v", r)
		}
	})
}

// TestRedactGolden shows what becomes of every member: each holds its own path.
func TestRedactGolden(t *testing.T) {
	path := func(path string) string { return path }
	for name, m := range map[string]bus.Message{"transition": planted(events.Approve{}, path), "refusal": plantedRefusal(path)} {
		t.Run(name, func(t *testing.T) {
			r := Redact(testKey, m)
			if err := Link(events.Record{}, &r); err != nil {
				t.Fatal(err)
			}
			text := events.Raw(encoded(t, r))
			if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
				t.Errorf("%s (-file +now; -update writes it):\n%s", file, diff)
			}
		})
	}
}
