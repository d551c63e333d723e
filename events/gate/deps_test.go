package gate_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Agents link this package: it must not drag in a server, a broker or a policy.
func TestDependencies_are_few(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "github.com/nats-io/nats.go\n") {
		t.Fatalf("the list is not of this package:\n%s", out)
	}
	const ours = "github.com/clarify-broker/clarify/"
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		switch {
		case dep == ours+"events", dep == ours+"events/bus", dep == ours+"events/gate":
		case strings.HasPrefix(dep, ours), strings.HasPrefix(dep, "github.com/nats-io/nats-server"):
			t.Errorf("depends on %s", dep)
		}
	}
}
