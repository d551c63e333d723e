package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/clarify-broker/clarify/events"
)

const maxText = 300 // bytes of a question or a reason

func (l *linter) entries() {
	first := map[string]int{}
	var patterns []int
	for i, e := range l.file.Tools {
		path := fmt.Sprintf("tools[%d]", i)
		if by, hidden := l.hiddenBy(e, first, patterns); hidden {
			l.fail(path+".match", "is never reached: tools[%d] (%s) before it takes every such tool", by, l.file.Tools[by].Match)
		}
		if e.Server == "" {
			if _, seen := first[e.Match]; !seen {
				first[e.Match] = i
			}
			if !isLiteral(e.Match) && !strings.Contains(e.Match, "?") {
				patterns = append(patterns, i)
			}
		}
		l.entry(path, e)
	}
	for i, k := range l.file.Catalog {
		if k.Name == "" {
			l.fail(fmt.Sprintf("catalog[%d].name", i), "is empty")
		}
	}
}

// hiddenBy finds an earlier entry that matches whatever this one does.
func (l *linter) hiddenBy(e *entry, first map[string]int, patterns []int) (int, bool) {
	if by, seen := first[e.Match]; seen {
		return by, true
	}
	for _, by := range patterns {
		if globs(l.file.Tools[by].Match, e.Match) {
			return by, true
		}
	}
	return 0, false
}

func (l *linter) entry(path string, e *entry) {
	if e.Match == "" {
		l.fail(path+".match", "is empty; name a tool, or * for all of them")
	}
	l.owned(path+".decide", e.Decide, e.To)
	l.text(path+".say", e.Say)
	if e.Decide != "" && (len(e.Authority) > 0 || len(e.Fields) > 0 || len(e.Approval.From) > 0) {
		l.fail(path+".decide", "ends every call of the tool, so its fields, authority and approval are never reached")
	}
	if e.Class != nil {
		w := *e.Class
		if e.Reversible != nil {
			w.Reversible = *e.Reversible
		}
		l.worth(path+".class", w)
		if e.Class.Approval != "none" && len(e.Approval.From) == 0 && len(l.file.Defaults.Approvers) == 0 {
			l.fail(path+".approval", "nobody may approve it; name people in from, or in defaults.approvers")
		}
	}
	for i, w := range e.Approval.From {
		l.approver(fmt.Sprintf("%s.approval.from[%d]", path, i), w)
	}
	l.rules(path, e)
	l.known(path, e)
	for _, name := range slices.Sorted(maps.Keys(e.Fields)) {
		l.field(join(path+".fields", name), e, name)
	}
}

// rules checks what the lists of rules say; ids are checked over the whole file.
func (l *linter) rules(path string, e *entry) {
	for i, r := range e.Reconcile {
		at := fmt.Sprintf("%s.reconcile[%d]", path, i)
		if r.Decide != "" || r.To != "" {
			l.fail(at, "decide and to are for authority; a rule here always means reconcile")
		}
		l.text(at+".say", r.Say)
	}
	for i, r := range e.Authority {
		at := fmt.Sprintf("%s.authority[%d]", path, i)
		l.owned(at, r.Decide, r.To)
		l.text(at+".say", r.Say)
	}
}

// ids checks that a rule's id names one rule of the file.
func (l *linter) ids() {
	seen := map[string]string{}
	for i, e := range l.file.Tools {
		for _, list := range []struct {
			name  string
			rules []*rule
		}{{"reconcile", e.Reconcile}, {"authority", e.Authority}} {
			for j, r := range list.rules {
				path := fmt.Sprintf("tools[%d].%s[%d].id", i, list.name, j)
				if strings.ContainsFunc(r.ID, func(c rune) bool { return unicode.IsSpace(c) || c == '/' }) || len(r.ID) > 64 {
					l.fail(path, "use at most 64 bytes without spaces and slashes, such as order-not-pending")
				}
				if other, twice := seen[r.ID]; twice {
					l.fail(path, "%q is already the id of %s; decisions name rules by id", r.ID, strings.TrimSuffix(other, ".id"))
				}
				seen[r.ID] = path
			}
		}
	}
}

// text checks the words of the file's author: people see them as they are, so they hold no values.
func (l *linter) text(path, text string) {
	if strings.ContainsAny(text, "{}") {
		l.fail(path, "is shown as it is and cannot hold values; say it without { }")
	}
	if len(text) > maxText {
		l.fail(path, "has %d bytes, the limit is %d", len(text), maxText)
	}
}

// known checks an entry against the catalog, if there is one.
func (l *linter) known(path string, e *entry) {
	if len(l.file.Catalog) == 0 {
		return
	}
	names := make([]string, len(l.file.Catalog))
	for i, k := range l.file.Catalog {
		names[i] = k.Name
	}
	if slices.ContainsFunc(names, func(n string) bool { return globs(e.Match, n) }) {
		return
	}
	const none = "matches no tool of the catalog%s"
	if len(l.file.Trust) > 0 { // trusted agents may bring tools of their own
		l.warn(path+".match", none, suggest(e.Match, names))
		return
	}
	l.fail(path+".match", none, suggest(e.Match, names))
}

func (l *linter) field(path string, e *entry, name string) {
	f := e.Fields[name]
	l.text(path+".ask", f.Ask)
	l.amount(path+".severity", f.Severity)
	if f.MaxRunes > 4000 {
		l.fail(path+".maxRunes", "is %d, the limit is 4000", f.MaxRunes)
	}
	if f.Lookup != "" && globs(e.Match, f.Lookup) && isLiteral(e.Match) {
		l.fail(path+".lookup", "is the tool itself; name a tool that only reads")
	}
	if f.Ask == "" && f.Role != events.RolePlain && f.Default == nil {
		l.warn(path+".ask", "is missing; people would be asked which value %s should have", name)
	}
	for _, other := range strings.FieldsFunc(f.Ask, func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		if _, isField := e.Fields[other]; isField && other != name && l.Redacted(other) {
			l.warn(path+".ask", "names the field %s, whose value is never shown", other)
		}
	}
	s := l.schemaOf(e)
	if s != nil && !slices.Contains(s.fields, name) {
		l.fail(path, "the tool has no such argument%s", suggest(name, s.fields))
	}
	l.defaultOf(path+".default", e, f, func(v any) bool { return s.takes(name, v) })
}

func (l *linter) defaultOf(path string, e *entry, f field, takes func(any) bool) {
	d := f.Default
	if d == nil {
		return
	}
	if f.Role == events.RoleIdentity || f.Role == events.RoleRecipient {
		l.fail(path, "a record or a recipient is never assumed; remove the default, or the role %s", f.Role)
	}
	if strings.TrimSpace(d.Documented) == "" {
		l.fail(path+".documented", "is empty; say where people can read what the default is")
	}
	if l.irreversible(e) {
		l.fail(path, "is never used: the tool is not reversible")
	}
	if v, err := decode(d.Value.raw); err != nil || !takes(v) {
		l.fail(path+".value", "is not a value the tool's schema takes")
	}
}

// irreversible reports that the entry itself says so. What a class says is known only with the tool.
func (l *linter) irreversible(e *entry) bool {
	if e.Reversible != nil {
		return !*e.Reversible
	}
	return e.Class != nil && !e.Class.Reversible
}

// schemaOf is the catalog's schema of the one tool an entry is about.
func (l *linter) schemaOf(e *entry) *schema {
	if !isLiteral(e.Match) {
		return nil
	}
	if k := l.listed(e.Match, e.Server); k != nil {
		return k.schema
	}
	return nil
}
