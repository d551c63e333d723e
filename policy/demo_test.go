package policy_test

import (
	"testing"

	"github.com/clarify-broker/clarify/policy"
)

// TestDemo checks that the policy people start from is one without a problem or a warning.
func TestDemo(t *testing.T) {
	p, err := policy.Parse("demo.yaml", policy.DemoText())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range p.Warnings() {
		t.Error(w)
	}
}
