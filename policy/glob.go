package policy

import (
	"slices"
	"strings"
)

// globs reports whether a pattern matches the whole of a text: * stands for any run of characters, ? for one byte.
func globs(pattern, text string) bool {
	star, mark := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			p = star + 1
			mark++
			t = mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func isLiteral(pattern string) bool { return !strings.ContainsAny(pattern, "*?") }

// stem is the literal start of a glob.
func stem(pattern string) string {
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// index finds the first entry that matches a tool without looking at the others: literal names by name, globs by their
// literal start.
type index struct {
	entries []*entry
	literal map[string][]int
	stems   map[string][]int
	lengths []int // of the stems, each once
}

func newIndex(entries []*entry) index {
	x := index{entries: entries, literal: map[string][]int{}, stems: map[string][]int{}}
	for i, e := range entries {
		if isLiteral(e.Match) {
			x.literal[e.Match] = append(x.literal[e.Match], i)
			continue
		}
		s := stem(e.Match)
		x.stems[s] = append(x.stems[s], i)
		if !slices.Contains(x.lengths, len(s)) {
			x.lengths = append(x.lengths, len(s))
		}
	}
	return x
}

// find returns the first entry for a tool, or nil.
func (x index) find(name, server string) *entry {
	best := len(x.entries)
	for _, i := range x.literal[name] {
		if i < best && x.entries[i].serves(server) {
			best = i
		}
	}
	for _, n := range x.lengths {
		if n > len(name) {
			continue
		}
		for _, i := range x.stems[name[:n]] {
			if i < best && globs(x.entries[i].Match, name) && x.entries[i].serves(server) {
				best = i
			}
		}
	}
	if best == len(x.entries) {
		return nil
	}
	return x.entries[best]
}

func (e *entry) serves(server string) bool { return e.Server == "" || globs(e.Server, server) }

// names reports whether any entry, glob or not, is literally about the tool: that makes it known.
func (x index) names(name, server string) bool {
	for _, i := range x.literal[name] {
		if x.entries[i].serves(server) {
			return true
		}
	}
	return false
}
