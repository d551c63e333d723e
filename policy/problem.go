package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing wrong with a policy file, and where. Path is empty when the text is not YAML at all.
type Problem struct {
	File         string
	Line, Column int
	Path         string // such as tools[2].fields.order_id.role
	Text         string
}

func (p Problem) Error() string {
	at := fmt.Sprintf("%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		at += p.Path + ": "
	}
	return at + p.Text
}

// Problems are all that is wrong with a policy file, in the order of the text. It is the error of [Parse].
type Problems []Problem

func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}

// suggest ends a problem with the known name that is closest to a mistyped one, if any is close.
func suggest(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if strings.EqualFold(k, name) {
			best = k
			break
		}
		if d := editDistance(name, k); d < distance && d*2 < len(name)+1 {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
