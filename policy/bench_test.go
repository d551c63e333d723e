package policy_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/clarify-broker/clarify/policy"
)

// many is a policy of n entries, each with a rule, the last of which is about the tool that the benchmark calls.
func many(n int) []byte {
	var b strings.Builder
	b.WriteString(`apiVersion: clarify/v1
kind: Policy
metadata: {name: many}
defaults: {approvers: [ana]}
trust: ["*"]
classes:
  - {name: destructive, when: tool.destructive, consequence: high, approval: required}
routes: [{to: [{channel: inbox, who: anyone}], deadline: 10m}]
unattended: {ask: hold, approve: hold}
tools:
`)
	for i := range n {
		name := fmt.Sprintf("team-%d.cancel-*", i)
		if i%2 == 0 {
			name = fmt.Sprintf("team-%d.cancel", i)
		}
		if i == n-1 {
			name = "retail.cancel*"
		}
		fmt.Fprintf(&b, `  - match: %q
    fields: {order_id: {role: identity, ask: "Which order?"}, reason: {role: effect, ask: "Why?"}}
    reconcile:
      - {id: moved-%d, when: '"order.status" in state && state["order.status"] != "pending"'}
    authority:
      - {id: large-%d, when: has(args.amount) && args.amount > %d.0}
`, name, i, i, 1000+i)
	}
	return []byte(b.String())
}

// BenchmarkDecide is a whole decision: schema, two rules and the choice among three candidates.
func BenchmarkDecide(b *testing.B) {
	c := candidate(b, `{"tool":{"name":"retail.cancel_pending_order","server":"mcp://shop","input_schema":{"type":"object","properties":
		{"order_id":{"type":"string"},"reason":{"type":"string","enum":["no longer needed","ordered by mistake"]}},"required":["order_id","reason"]}},
		"arguments":{"reason":"no longer needed"},"state":{"order.status":"pending"},
		"candidates":[{"arguments":{"order_id":"W1"},"label":"Lamp"},{"arguments":{"order_id":"W2"},"label":"Desk"},{"arguments":{"order_id":"W3"},"label":"Chair"}]}`)
	for _, n := range []int{10, 100, 500} {
		b.Run(fmt.Sprintf("%d_rules", 2*n), func(b *testing.B) {
			p := parse(b, string(many(n)))
			in := policy.Input{Candidate: c}
			if got := kindRule(p.Decide(in)); got != "ask open/order_id" {
				b.Fatal(got)
			}
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				p.Decide(in)
			}
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpu is what this process has used so far, in nanoseconds: on a shared machine the wall clock measures the neighbours.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkParse reads a policy of 1,000 rules.
func BenchmarkParse(b *testing.B) {
	text := many(500)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := policy.Parse("p.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}
