package policy

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits on the patterns of one schema, which an agent may have sent: matching takes time in proportion to both, and no
// pattern of an argument anybody would read comes near them.
const (
	maxPatternSize  = 4000     // instructions of all its patterns together
	maxPatternValue = 16 << 10 // bytes of a value; a longer one matches no pattern
)

// patterns compiles the patterns of one schema.
type patterns struct{ size int }

type pattern struct{ *regexp.Regexp }

// MatchString never takes longer than the limits let it.
func (p pattern) MatchString(s string) bool {
	return len(s) <= maxPatternValue && p.Regexp.MatchString(s)
}

func (all *patterns) compile(text string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if all.size += len(program.Inst); all.size > maxPatternSize {
		return nil, fmt.Errorf("the schema's patterns are too large: %d instructions, the limit is %d", all.size, maxPatternSize)
	}
	compiled, err := regexp.Compile(text)
	return pattern{compiled}, err
}
