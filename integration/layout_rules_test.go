package integration_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// fileRule is a rule about one file at a time.
type fileRule struct {
	name  string
	why   string
	check func(goFile) []string
}

func fileRules() []fileRule {
	return []fileRule{
		{"imports", "imports point left: publish an event, or declare the interface you need where you use it", checkImports},
		{"server", "only events/bus/embedded and events/bus/bustest link a NATS server", checkServer},
		{"names", "name the package for what it knows, the file for the step it does", checkNames},
		{"function_length", "a function is at most 60 lines: look for its second idea", checkFunctions},
		{"file_length", "a file is at most 400 lines: look for its second idea", checkFile},
		{"struct_size", "a struct has at most 12 members, a document of events 15", checkStructs},
		{"clock", "whatever decides takes the time as an argument", checkClock},
		{"acknowledge", "only events/bus/consume.go acknowledges", checkAck},
		{"guard", "only events/bus sets the headers that guard a publish", checkGuard},
		{"append", "a task's state is changed by broker/apply.go, through the group commit of commit.go, and the audit by broker/audit", checkAppend},
		{"exit", "only main ends the process", checkExit},
		{"skip", "a check that is skipped is none: make it run, or delete it", checkSkip},
		{"sleep", "tests wait for events; time passes only in a bubble", checkSleep},
		{"left_for_later", "do it, or write an issue", checkLater},
		{"place", "code speaks of Clarify alone", checkPlace},
	}
}

func checkFunctions(f goFile) []string {
	var violations []string
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || f.isTest() {
			continue
		}
		if n := f.fset.Position(fn.End()).Line - f.fset.Position(fn.Pos()).Line + 1; n > 60 {
			violations = append(violations, fmt.Sprintf("%s: %s has %d lines", f.at(fn.Pos()), fn.Name.Name, n))
		}
	}
	return violations
}

func checkFile(f goFile) []string {
	if n := f.lines(); n > 400 && !ast.IsGenerated(f.ast) {
		return []string{fmt.Sprintf("%s has %d lines", f.path, n)}
	}
	return nil
}

func checkStructs(f goFile) []string {
	limit := 12
	if f.dir() == "events" {
		limit = 15
	}
	return inspect(f, func(n ast.Node) string {
		st, ok := n.(*ast.StructType)
		if !ok || f.isTest() {
			return ""
		}
		members := 0
		for _, field := range st.Fields.List {
			members += max(1, len(field.Names))
		}
		if members <= limit {
			return ""
		}
		return fmt.Sprintf("a struct has %d members", members)
	})
}

// clockEdges are the files of the broker that may look at the clock: they start and stop what waits, and hand the time on.
var clockEdges = []string{"broker/broker.go", "broker/run.go", "broker/apply.go", "broker/timers.go", "broker/watchdog.go", "broker/room.go", "broker/freeze.go"}

func checkClock(f goFile) []string {
	pure := strings.HasPrefix(f.path, "policy/") || f.dir() == "broker" && !slices.Contains(clockEdges, f.path)
	if !pure || f.isTest() {
		return nil
	}
	return uses(f, "time", "Now", "Since", "Until", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Sleep")
}

func checkAck(f goFile) []string {
	// The floor of the benchmark is JetStream without us.
	if f.isTest() || f.path == "events/bus/consume.go" || f.path == "cmd/clarify/bench/floor.go" {
		return nil
	}
	return calls(f, "Ack", "DoubleAck", "AckSync", "Nak", "NakWithDelay", "Term", "TermWithReason", "InProgress")
}

func checkGuard(f goFile) []string {
	if f.isTest() || f.dir() == "events/bus" {
		return nil
	}
	return inspect(f, func(n ast.Node) string {
		switch n := n.(type) {
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.HasPrefix(strings.Trim(n.Value, "`\""), "Nats-") {
				return "names the header " + n.Value
			}
		case *ast.SelectorExpr:
			if strings.HasPrefix(n.Sel.Name, "ExpectedLast") || strings.HasPrefix(n.Sel.Name, "WithExpect") || n.Sel.Name == "WithMsgID" || n.Sel.Name == "MsgIdHdr" {
				return "uses " + n.Sel.Name
			}
		}
		return ""
	})
}

func checkAppend(f goFile) []string {
	if f.isTest() || f.dir() == "events/bus" || strings.HasPrefix(f.path, "cmd/clarify/bench/") {
		return nil
	}
	var violations []string
	if f.path != "broker/apply.go" && f.path != "broker/commit.go" {
		violations = calls(f, "Append", "AppendAll")
	}
	if f.dir() != "broker/audit" {
		violations = append(violations, calls(f, "AppendAudit")...)
	}
	return violations
}

func checkExit(f goFile) []string {
	if f.ast.Name.Name == "main" || f.isTest() {
		return nil
	}
	return append(uses(f, "os", "Exit"), uses(f, "log", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf")...)
}

// needsCases are the tests of cases from public benchmarks. The cases are others' data, kept beside the repository, so a
// checkout may be without them. These tests may skip where os.IsNotExist says that the file is not there, and only there.
var needsCases = []string{"policy/cases_test.go", "integration/cases_test.go"}

func checkSkip(f goFile) []string {
	if !slices.Contains(f.imports(), "testing") {
		return nil
	}
	var absent []ast.Node
	if slices.Contains(needsCases, f.path) {
		absent = whereAbsent(f)
	}
	skips := inspect(f, func(n ast.Node) string {
		inside := func(body ast.Node) bool { return n.Pos() >= body.Pos() && n.End() <= body.End() }
		if call, ok := n.(*ast.CallExpr); ok && !slices.ContainsFunc(absent, inside) {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				return "calls " + sel.Sel.Name
			}
		}
		return ""
	})
	return append(skips, uses(f, "testing", "Short")...)
}

// whereAbsent are the branches taken when os.IsNotExist says so, and nothing else.
func whereAbsent(f goFile) []ast.Node {
	var bodies []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if branch, ok := n.(*ast.IfStmt); ok {
			if call, ok := branch.Cond.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && isPackage(sel, "os") && sel.Sel.Name == "IsNotExist" {
					bodies = append(bodies, branch.Body)
				}
			}
		}
		return true
	})
	return bodies
}

// checkSleep allows time.Sleep where time is fake: inside a call of synctest.Test or of a function named for a bubble, in
// files named for one, and in the functions that such a file's bubbles call. The body of a test itself is never that.
func checkSleep(f goFile) []string {
	supports := slices.Contains(f.imports(), "testing/synctest")
	if strings.Contains(path.Base(f.path), "bubble") && (f.isTest() || supports) {
		return nil
	}
	var violations []string
	var walk func(n ast.Node, waits bool)
	walk = func(n ast.Node, waits bool) {
		ast.Inspect(n, func(inner ast.Node) bool {
			if call, ok := inner.(*ast.CallExpr); ok && inner != n && (f.isTest() || supports) {
				if opensBubble(call.Fun) {
					return false
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Run" {
					walk(call, true)
					return false
				}
			}
			if _, ok := inner.(*ast.FuncLit); ok && inner != n && !isArgument(n, inner) {
				walk(inner, waits && !hasBubbles(f))
				return false
			}
			if sel, ok := inner.(*ast.SelectorExpr); ok && waits && isPackage(sel, "time") && sel.Sel.Name == "Sleep" {
				violations = append(violations, f.at(inner.Pos())+": sleeps in real time")
			}
			return true
		})
	}
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		helps := ok && !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Benchmark")
		walk(decl, !f.isTest() || !helps || !hasBubbles(f))
	}
	return violations
}

// isArgument reports that a function is handed to the call itself, as t.Run's is.
func isArgument(call, fn ast.Node) bool {
	c, ok := call.(*ast.CallExpr)
	return ok && slices.ContainsFunc(c.Args, func(a ast.Expr) bool { return a == fn })
}

func hasBubbles(f goFile) bool {
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && f.isTest() && opensBubble(call.Fun)
		return !found
	})
	return found
}

func opensBubble(fun ast.Expr) bool {
	name := ""
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		if name = fun.Sel.Name; isPackage(fun, "synctest") && name == "Test" {
			return true
		}
	}
	return strings.Contains(strings.ToLower(name), "bubble")
}

func checkLater(f goFile) []string {
	later := regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)
	var violations []string
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if word := later.FindString(c.Text); word != "" {
				violations = append(violations, f.at(c.Pos())+": a "+word)
			}
		}
	}
	return violations
}

// checkPlace: the tree builds and tests the same on any machine.
func checkPlace(f goFile) []string {
	return inspect(f, func(n ast.Node) string {
		if lit, ok := n.(*ast.BasicLit); ok && regexp.MustCompile(`["`+"`"+`](/work|/home|/root|/Users)/`).MatchString(lit.Value) {
			return "names a folder of one machine"
		}
		return ""
	})
}

// inspect collects what a rule says of each node.
func inspect(f goFile, rule func(ast.Node) string) []string {
	var violations []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil {
			return true
		}
		if text := rule(n); text != "" {
			violations = append(violations, f.at(n.Pos())+": "+text)
		}
		return true
	})
	return violations
}

// uses finds names of a package, called or passed on.
func uses(f goFile, pkg string, names ...string) []string {
	return inspect(f, func(n ast.Node) string {
		if sel, ok := n.(*ast.SelectorExpr); ok && isPackage(sel, pkg) && slices.Contains(names, sel.Sel.Name) {
			return "uses " + pkg + "." + sel.Sel.Name
		}
		return ""
	})
}

// calls finds calls of methods by their names.
func calls(f goFile, names ...string) []string {
	return inspect(f, func(n ast.Node) string {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return ""
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(names, sel.Sel.Name) {
			return "calls " + sel.Sel.Name
		}
		return ""
	})
}

func isPackage(sel *ast.SelectorExpr, name string) bool {
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == name
}
