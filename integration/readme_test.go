package integration_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadme keeps what README says true where a machine can tell.
func TestReadme(t *testing.T) {
	text := readme(t)
	t.Run("at_most_250_lines", func(t *testing.T) {
		if n := strings.Count(text, "\n"); n > 250 {
			t.Errorf("%d lines", n)
		}
	})
	t.Run("go_client_compiles", func(t *testing.T) {
		example, err := os.ReadFile("../events/gate/example_test.go")
		if err != nil {
			t.Fatal(err)
		}
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1)
		if len(blocks) == 0 {
			t.Fatal("no Go in README")
		}
		for _, b := range blocks {
			if !strings.Contains(string(example), b[1]) {
				t.Errorf("not in events/gate/example_test.go, where it would be compiled:\n%s", b[1])
			}
			if n := strings.Count(b[1], "\n"); n > 12 {
				t.Errorf("%d lines of Go", n)
			}
		}
	})
	t.Run("commands_exist", func(t *testing.T) {
		bin := t.TempDir() + "/clarify"
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../cmd/clarify").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		help, err := exec.CommandContext(t.Context(), bin, "help").CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:`|^\\$ )clarify ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^\s+(clarify )?` + m[1] + `\s`).Match(help) {
				t.Errorf("clarify %s is in README and not in its help", m[1])
			}
		}
	})
	t.Run("folders_exist", func(t *testing.T) {
		for _, m := range regexp.MustCompile(`(?m)^([a-z]+/[a-z/]*)\s`).FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat("../" + m[1]); err != nil {
				t.Error(err)
			}
		}
	})
}
