package bustest

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const inside = "CLARIFY_TEST_BUBBLE"

// Bubble runs f in a testing/synctest bubble, where time is fake and passes when everything waits, in a process of its own:
// nats.go keeps timers in a pool of the process, and one from another bubble is fatal. The bubble's clock starts at
// 2000-01-01 UTC. Connections over TCP do not work in it, everything started in it must end in it, and a simulated day costs
// some ten seconds.
//
// Everything of the test but f runs in both processes, so f should be all there is.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(inside) == t.Name() {
		synctest.Test(t, func(t *testing.T) {
			// A server's flush loops outlive its shutdown by a moment. This is the last of the clean-ups.
			t.Cleanup(func() { time.Sleep(time.Second) })
			f(t)
		})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern(t.Name()), "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil:
		t.Fatalf("in the bubble: %v\n%s", err, text)
	case !strings.Contains(text, "--- PASS: "+t.Name()+" "):
		t.Fatalf("the test did not run to its end in the bubble, or was skipped there\n%s", text)
	case testing.Verbose():
		t.Logf("in the bubble:\n%s", text)
	}
}

// pattern matches the one test of this name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
