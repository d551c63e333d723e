package audit

import (
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/clarify-broker/clarify/events"
)

// secret is what a token, a key or a password looks like. Records have no member such a text could be put in on purpose.
var secret = regexp.MustCompile(`(?i)(\bxox[abeoprs]-|\bgh[pousr]_[a-z0-9]{20}|\bAKIA[0-9A-Z]{16}|(^|[^a-z0-9_-])sk-[a-z0-9-]{20}|-----BEGIN|\beyJ[a-z0-9_-]{10,}\.|passw(or)?d[=:]|bearer )`)

// chain is guarantee 8 for a record by itself and its place: whole, chained, in the order of the log, about one thing, and
// without a value or a secret. High watermarks are guarantee 9.
func (v *Verifier) chain(r events.Record) {
	if err := CheckChain(v.last, r); err != nil {
		v.fail(r, 8, "chain", problem(err))
	}
	first := v.last.Seq == 0
	if first {
		v.whole = r.Seq == 1
	}
	switch {
	case entries(r) != 1:
		v.fail(r, 8, "entry", "it is not about exactly one thing")
	case r.Unreadable != "":
		v.fail(r, 8, "unreadable", "a message of the log could not be read, so what it did is not on record")
	case r.Loss != nil:
	case !first && r.Log <= v.last.Log:
		v.fail(r, 8, "order", "its message does not come behind that of the record before: repeated, or out of order")
	case r.After >= r.Log:
		v.fail(r, 8, "order", "it was appended over a message that is not before it")
	case r.High < r.Log:
		v.fail(r, 8, "order", "its highest sequence seen is below its own")
	case !first && r.High < v.last.High:
		v.fail(r, 9, "high", "the log had been further before: acknowledged messages were lost")
	}
	if !first && r.Key != v.last.Key && len(v.keys) < maxViolations {
		v.keys = append(v.keys, Warning{
			Name: "key", Seq: r.Seq, Agent: r.Agent, Task: r.Task, Version: r.Version,
			Problem: "the key of the HMACs changed: what was recorded before cannot be compared with what comes after",
		})
	}
	texts(reflect.ValueOf(r), "record", func(t text) {
		if t.loose() {
			v.fail(r, 8, "value", t.path+" is neither an identifier nor a keyed HMAC")
		}
		if secret.MatchString(t.text) {
			v.fail(r, 8, "secret", t.path+" looks like a secret")
		}
	})
}

func problem(err error) string {
	if c, ok := err.(*ChainError); ok { //nolint:errorlint // CheckChain returns it unwrapped
		return c.Problem
	}
	return err.Error()
}

func entries(r events.Record) (n int) {
	for _, set := range []bool{r.Transition != nil, r.Refusal != nil, r.Loss != nil, r.Unreadable != ""} {
		if set {
			n++
		}
	}
	return n
}

// text is a text in a record that is no keyed HMAC.
type text struct {
	path, text string
	digest     bool // it should have been one
	authored   bool // the policy's author wrote it
}

// loose reports that it is not what redaction leaves.
func (t text) loose() bool { return !t.authored && (t.digest || !isPlain(t.text)) }

// texts visits the texts of a record but keyed HMACs and the hashes of the chain.
func texts(v reflect.Value, path string, visit func(text)) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); s != "" && !strings.HasPrefix(s, keyed) {
			visit(text{path: path, text: s, digest: v.Type() == reflect.TypeFor[events.Digest]()})
		}
	case reflect.Pointer:
		if !v.IsNil() {
			texts(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			texts(v.Index(i), path, visit)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			texts(it.Key(), path, visit)
			texts(it.Value(), path, visit)
		}
	case reflect.Struct:
		members(v, path, visit)
	default:
	}
}

func members(v reflect.Value, path string, visit func(text)) {
	if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[events.Chained]() {
		return
	}
	for i := range v.NumField() {
		f, name := v.Type().Field(i), path
		if !f.Anonymous {
			name = path + "." + strings.ToLower(f.Name)
		}
		switch f.Name {
		case "Rule", "Documented", "Policy", "Redact", "Show": // the policy's author wrote it
			texts(v.Field(i), name, func(t text) { t.authored = true; visit(t) })
		default:
			texts(v.Field(i), name, visit)
		}
	}
}

// predecessor finds what is remembered of a task and checks that nothing is missing between that and the record: the log
// says over which message each transition was appended.
func (v *Verifier) predecessor(k taskKey, r events.Record) *task {
	t := v.tasks[k]
	switch {
	case t != nil && r.After == t.last.Log:
		return t
	case t != nil && r.After != 0:
		v.fail(r, 8, "missing", "it was appended over another message than the last one recorded of its task")
		return t
	case t != nil && !final(t.last.Transition.Kind):
		v.fail(r, 9, "forgotten", "the log knew nothing of a task that had not ended")
	case t == nil && r.After != 0 && v.whole:
		v.fail(r, 8, "missing", "the message it was appended over is not recorded")
	}
	fresh := &task{}
	if t != nil {
		fresh.fence = t.fence // fences are sequences of the log: they grow over a task's end
	}
	v.tasks[k] = fresh
	return fresh
}

// loss is guarantee 9 where the log itself came back shorter. What the records know of tasks that moved in the lost part no
// longer holds.
func (v *Verifier) loss(r events.Record) {
	if r.Loss.By != "" {
		return // acknowledged; the loss has a record of its own
	}
	v.fail(r, 9, "loss", "the log came back shorter than it had been: acknowledged messages were lost")
	v.whole = false
	for k, t := range v.tasks {
		if t.last.Log > r.Log {
			delete(v.tasks, k)
		}
	}
}
