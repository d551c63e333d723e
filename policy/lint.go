package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A linter looks for what is well-formed and still wrong: lines that can never count, and dead ends.
type linter struct {
	*Policy
	r *reader
}

// lint checks a policy whose parts have been compiled. Errors go to r, the rest to the policy's warnings.
func (p *Policy) lint(r *reader) {
	l := &linter{p, r}
	l.top()
	l.classes()
	l.entries()
	l.ids()
	l.routes()
	l.afterDeadline()
	p.warnings.sort()
	slices.SortStableFunc(p.mentions, func(a, b Mention) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
}

func (l *linter) fail(path, format string, args ...any) {
	l.r.problem(l.r.at(path), path, format, args...)
}

func (l *linter) warn(path, format string, args ...any) {
	at := l.r.at(path)
	l.warnings = append(l.warnings, Problem{l.r.file, at.line, at.column, path, fmt.Sprintf(format, args...)})
}

// mention keeps where a channel or somebody is named.
func (l *linter) mention(path string, m Mention) {
	at := l.r.at(path)
	m.At = Problem{File: l.r.file, Line: at.line, Column: at.column, Path: path}
	l.mentions = append(l.mentions, m)
}

// top checks the parts that stand once in a file.
func (l *linter) top() {
	f := &l.file
	if strings.TrimSpace(f.Metadata.Name) == "" || len(f.Metadata.Name) > 128 {
		l.fail("metadata.name", "give the policy a name of at most 128 bytes")
	}
	for _, o := range []struct{ path, value string }{
		{"defaults.unknownTool", f.Defaults.UnknownTool},
		{"defaults.otherwise", f.Defaults.Otherwise},
		{"unattended.ask", f.Unattended.Ask},
		{"unattended.approve", f.Unattended.Approve},
	} {
		l.owned(o.path, o.value, "")
	}
	l.who("defaults.escalateTo", f.Defaults.EscalateTo)
	l.who("escalation.to", f.Escalation.To)
	for i, w := range f.Defaults.Approvers {
		l.approver(fmt.Sprintf("defaults.approvers[%d]", i), w)
	}
	for i, t := range f.Trust {
		if t.Server == "" {
			l.fail(fmt.Sprintf("trust[%d]", i), `is empty; name a server, such as "mcp://crm"`)
		}
	}
	for i, g := range f.Redact.Fields {
		if g == "" {
			l.fail(fmt.Sprintf("redact.fields[%d]", i), "is empty; name arguments, such as \"*token*\"")
		}
	}
	l.limits()
}

// owned checks that there is an owner where a line says escalate.
func (l *linter) owned(path, how, to string) {
	if how == "escalate" && to == "" && l.owner() == "" {
		l.fail(path, "escalates to nobody; name the owner in defaults.escalateTo")
	}
	if how != "escalate" && to != "" {
		l.fail(path, "names an owner, but does not escalate")
	}
	l.who(path, to)
}

// who checks a person's id or role; empty is for the caller to judge.
func (l *linter) who(path, who string) {
	if who != "" {
		l.mention(path, Mention{Who: who})
	}
	role, isRole := strings.CutPrefix(who, "role:")
	switch {
	case who == "":
	case strings.ContainsAny(who, " \t\n,") || len(who) > 128:
		l.fail(path, "%.40q is not a person's id; use one id, or role:<role>", who)
	case isRole && role == "":
		l.fail(path, "names no role; write role:<role>")
	}
}

// approver checks who may approve.
func (l *linter) approver(path, who string) {
	if who == "" || who == "owner" {
		l.fail(path, "use a person's id, role:<role>, requester or anyone")
	}
	l.who(path, who)
}

func (l *linter) limits() {
	q := l.file.Questions
	for _, n := range []struct {
		name     string
		value    *int
		low, top int
	}{
		{"maxPerTask", q.MaxPerTask, 0, 100},
		{"maxConsecutive", q.MaxConsecutive, 0, 100},
		{"maxPerField", q.MaxPerField, 0, 100},
		{"maxOptions", q.MaxOptions, 1, 25},
		{"batch", q.Batch, 1, maxBatch},
	} {
		if n.value != nil && (*n.value < n.low || *n.value > n.top) {
			l.fail("questions."+n.name, "is %d; use %d to %d", *n.value, n.low, n.top)
		}
	}
	for _, n := range []struct {
		path  string
		value *float64
	}{
		{"stopCost", q.StopCost},
		{"severity.low", q.Severity.Low},
		{"severity.high", q.Severity.High},
		{"cost.base", q.Cost.Base},
		{"cost.perOption", q.Cost.PerOption},
		{"cost.repeat", q.Cost.Repeat},
		{"cost.sensitive", q.Cost.Sensitive},
	} {
		l.amount("questions."+n.path, n.value)
	}
}

// amount checks a cost: large enough for any scale, small enough that sums stay exact.
func (l *linter) amount(path string, v *float64) {
	if v != nil && !(*v >= 0 && *v <= 1e6) {
		l.fail(path, "use 0 to 1000000")
	}
}

func (l *linter) classes() {
	seen := map[string]bool{}
	rest := "" // the class that takes all that is left
	for i, c := range l.file.Classes {
		path := fmt.Sprintf("classes[%d]", i)
		switch {
		case seen["name "+c.Name]:
			l.fail(path+".name", "there is already a class %q", c.Name)
		case rest != "":
			l.fail(path, "is never reached: class %q before it takes every tool", rest)
		case c.When.text != "" && seen["when "+c.When.text]:
			l.fail(path+".when", "is never reached: a class before it has the same condition")
		}
		seen["name "+c.Name], seen["when "+c.When.text] = true, true
		if c.When.text == "" {
			rest = c.Name
		}
		l.worth(path, c.worth)
		if c.Approval != "none" && len(l.file.Defaults.Approvers) == 0 && !l.everyEntryNamesApprovers() {
			l.fail(path+".approval", "needs an approval that nobody may give; name people in defaults.approvers or in each tool's approval.from")
		}
	}
}

// everyEntryNamesApprovers reports that no tool depends on defaults.approvers. Tools without an entry do.
func (l *linter) everyEntryNamesApprovers() bool {
	if len(l.file.Trust) > 0 || len(l.file.Catalog) > 0 {
		return false
	}
	for _, e := range l.file.Tools {
		if len(e.Approval.From) == 0 && e.Decide == "" && (e.Class == nil || e.Class.Approval != "none") {
			return false
		}
	}
	return true
}

func (l *linter) worth(path string, w worth) {
	if w.Approval != "none" {
		return
	}
	if w.Consequence == "high" || !w.Reversible {
		l.warn(path, "such calls never run: only low consequence and reversible may run without approval")
	}
}
