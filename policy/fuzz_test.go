package policy_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/clarify-broker/clarify/events"
	"github.com/clarify-broker/clarify/policy"
)

// FuzzParse checks that whatever text a policy file holds, it is either a policy or a list of problems with places.
func FuzzParse(f *testing.F) {
	f.Add(policy.DemoText())
	for _, name := range []string{"testdata/office.yaml", "testdata/support-desk.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{"", "a: &x [*x]", "- 1", "kind: Policy\nkind: Policy", "? {a: b}\n: c", "tools: [{match: \"*\", fields: {a: {default: {value: .nan}}}}]", "a: |\n  b\n---\nc"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := policy.Parse("p.yaml", text)
		if err == nil {
			if p.Ref().Digest == "" {
				t.Error("a policy without a digest")
			}
			return
		}
		problems, ok := errors.AsType[policy.Problems](err)
		if !ok || len(problems) == 0 {
			t.Fatalf("the error is no list of problems: %v", err)
		}
		for _, one := range problems {
			if one.Line < 1 || one.Column < 1 || one.Text == "" || one.File != "p.yaml" || strings.Contains(one.Text, "%!") {
				t.Errorf("a problem without a place: %+v", one)
			}
		}
	})
}

// FuzzDecide checks that whatever an agent sends, deciding ends, always says the same and keeps its promises.
func FuzzDecide(f *testing.F) {
	p := parseFile(f, "testdata/office.yaml")
	for _, text := range []string{
		`{"agent":"good-bot","task":"t","version":1,"step":"s","tool":{"name":"crm.update"},"arguments":{"phone":"1"},"candidates":[{"arguments":{"customer_id":"a"}},{"arguments":{"customer_id":"b"},"label":"B","weight":2}]}`,
		`{"agent":"good-bot","task":"t","version":1,"step":"s","tool":{"name":"x","server":"mcp://trusted","annotations":{"readOnlyHint":true},"input_schema":{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"type":"string"}},"properties":{"p":{"$ref":"#/$defs/a"}}}},"arguments":{"p":"v"}}`,
		`{"agent":"good-bot","task":"t","version":1,"step":"s","tool":{"name":"orders.cancel"},"arguments":{"order_id":"W","reason":1e400},"state":{"order.status":["x"]},"missing":[{"field":"reason"}],"provenance":{"order_id":{"from":"inferred"}}}`,
		`{"agent":"good-bot","task":"t","version":1,"step":"s","tool":{"name":"billing.refund"},"arguments":{"amount":null,"payment_id":{"a":[1,2]}},"requester":{"id":"ana"},"attended":false}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var c events.Candidate
		if events.Decode(text, events.MaxCandidate, &c) != nil || c.Validate() != nil {
			return // no broker would let it in
		}
		in := policy.Input{Candidate: c}
		d := p.Decide(in)
		if !bytes.Equal(encoded(t, d), encoded(t, p.Decide(in))) {
			t.Error("the same input is decided differently")
		}
		if proceed, ok := d.(events.Proceed); ok {
			checkProceed(t, in, proceed, policy.Assume(c, d.Basis()))
		}
		p.Shown(c, d.Basis())
	})
}
