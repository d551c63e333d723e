package policy

import (
	"strings"
	"testing"
)

// TestPatterns bounds what a schema that an agent sent can cost.
func TestPatterns(t *testing.T) {
	t.Run("ordinary", func(t *testing.T) {
		p, err := (&patterns{}).compile(`^\+?[0-9 ]{6,20}$`)
		if err != nil || !p.MatchString("+34 600 000 000") || p.MatchString("x") {
			t.Fatal(err)
		}
	})
	t.Run("many_large_ones_are_refused", func(t *testing.T) {
		all := &patterns{}
		for range 900 {
			if _, err := all.compile("(a.*){0,300}z"); err != nil {
				return
			}
		}
		t.Fatal("900 patterns of 300 repetitions each were taken")
	})
	t.Run("a_long_value_matches_nothing", func(t *testing.T) {
		p, err := (&patterns{}).compile("a")
		if err != nil || p.MatchString(strings.Repeat("a", maxPatternValue+1)) {
			t.Fatal(err)
		}
	})
}
