package integration_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// reach is what a package may import: of ours by folder, of others by import path, both with a trailing * for all below.
// Standard packages are free but where forbid says otherwise. Tests may import more, see checkTestImports.
type reach struct {
	ours   []string
	others []string
	forbid []string
}

const (
	strictJSON = "github.com/go-json-experiment/json*"
	natsClient = "github.com/nats-io/*"
	natsServer = "github.com/nats-io/nats-server*"
)

// matrix is the drawing of the imports: events flow to the right, imports point to the left.
func matrix() map[string]reach {
	io := []string{"net", "net/*", "os", "os/*", "log", "log/*", "math/rand", "math/rand/*", "crypto/rand"}
	languages := []string{"github.com/goccy/go-yaml*", "cel.dev/cel-go*", "github.com/santhosh-tekuri/jsonschema*", strictJSON}
	return map[string]reach{
		"events":              {others: []string{"github.com/cloudevents/sdk-go/v2/event", "github.com/oklog/ulid*", strictJSON}},
		"events/bus":          {ours: []string{"events"}, others: []string{natsClient, strictJSON}},
		"events/bus/embedded": {others: []string{natsClient}},
		"events/bus/bustest":  {ours: []string{"events", "events/bus", "events/bus/embedded"}, others: []string{natsClient}},
		"events/gate":         {ours: []string{"events", "events/bus"}, others: []string{natsClient, strictJSON}},
		"events/gate/mcp": {
			ours:   []string{"events", "events/bus", "events/gate"},
			others: []string{natsClient, strictJSON, "github.com/modelcontextprotocol/go-sdk*", "github.com/google/jsonschema-go*"},
		},
		"policy":               {ours: []string{"events"}, others: languages, forbid: io},
		"policy/policytest":    {ours: []string{"events", "policy"}, others: languages, forbid: io},
		"broker":               {ours: []string{"events", "events/bus", "policy", "broker/audit"}, others: []string{strictJSON, "golang.org/x/time*"}},
		"broker/audit":         {ours: []string{"events", "events/bus"}, others: []string{strictJSON}},
		"broker/api":           {ours: []string{"events", "events/bus", "broker", "broker/audit", "policy"}, others: []string{strictJSON}},
		"channels":             {ours: []string{"events", "events/bus"}, others: []string{strictJSON, "golang.org/x/time*"}},
		"channels/channeltest": {ours: []string{"events", "events/bus", "events/bus/bustest", "channels"}, others: []string{strictJSON, natsClient}},
		"channels/*":           {ours: []string{"events", "channels"}, others: []string{"*"}, forbid: []string{natsClient, "github.com/spf13/*"}},
		"cmd/*":                {ours: []string{"*"}, others: []string{"*"}},
		"deploy/*":             {ours: []string{"*"}, others: []string{"*"}},
		"integration":          {ours: []string{"*"}, others: []string{"*"}},
		"integration/*":        {ours: []string{"*"}, others: []string{"*"}},
	}
}

// matches reports that one of the patterns covers the name: itself, or all that starts with it where it ends in *.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, all := strings.CutSuffix(p, "*")
		return p == name || all && strings.HasPrefix(name, prefix)
	})
}

// reachOf is the row of a folder: its own, else the longest pattern that covers it.
func reachOf(dir string) (reach, bool) {
	m := matrix()
	if r, ok := m[dir]; ok {
		return r, true
	}
	best := ""
	for _, p := range slices.Sorted(maps.Keys(m)) {
		if prefix, all := strings.CutSuffix(p, "*"); all && strings.HasPrefix(dir, prefix) && len(p) > len(best) {
			best = p
		}
	}
	if best == "channels/*" && strings.Count(dir, "/") > 1 {
		return reach{}, false
	}
	return m[best], best != ""
}

func checkImports(f goFile) []string {
	if f.isTest() {
		return checkTestImports(f)
	}
	row, ok := reachOf(f.dir())
	if !ok {
		return []string{f.path + ": its package is not in the design"}
	}
	var violations []string
	for _, imp := range f.imports() {
		dir, ours := strings.CutPrefix(imp, module+"/")
		standard := !strings.Contains(strings.Split(imp, "/")[0], ".")
		switch {
		case ours && !matches(row.ours, dir):
			violations = append(violations, fmt.Sprintf("%s imports our %s; %s may import %v", f.path, dir, f.dir(), row.ours))
		case !ours && matches(row.forbid, imp):
			violations = append(violations, fmt.Sprintf("%s imports %s, which %s must not", f.path, imp, f.dir()))
		case !ours && !standard && !matches(row.others, imp):
			violations = append(violations, fmt.Sprintf("%s imports %s; %s may import %v", f.path, imp, f.dir(), row.others))
		}
	}
	return violations
}

// checkTestImports: tests may use a server and what they compare with, but the two sides that speak through events only do
// not meet in a test of their own either, and nothing asserts for us.
func checkTestImports(f goFile) []string {
	var violations []string
	for _, imp := range f.imports() {
		dir := strings.TrimPrefix(imp, module+"/")
		from, to := strings.Split(f.dir(), "/")[0], strings.Split(dir, "/")[0]
		if from == "broker" && to == "channels" || from == "channels" && (to == "broker" || to == "policy") {
			violations = append(violations, fmt.Sprintf("%s imports %s: they speak through events", f.path, dir))
		}
		if strings.HasPrefix(imp, "github.com/stretchr/testify") || strings.Contains(imp, "gomega") {
			violations = append(violations, fmt.Sprintf("%s imports %s: testing and go-cmp are enough", f.path, imp))
		}
	}
	return violations
}

// checkServer: agents import events/gate, and whoever imports a server links 20 MB of it. Tests link one anyway.
func checkServer(f goFile) []string {
	if f.isTest() || slices.Contains([]string{"events/bus/embedded", "events/bus/bustest"}, f.dir()) {
		return nil
	}
	var violations []string
	for _, imp := range f.imports() {
		if matches([]string{natsServer}, imp) {
			violations = append(violations, f.path+" imports "+imp)
		}
	}
	return violations
}

// checkNames: a name that says what a file is made of, not what it knows, is no name.
func checkNames(f goFile) []string {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "models", "misc", "manager", "handlers", "pkg"}
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(f.path, ".go"), "_test"), "/") {
		if slices.Contains(empty, part) {
			return []string{f.path + ": " + path.Base(part) + " says nothing"}
		}
	}
	return nil
}
