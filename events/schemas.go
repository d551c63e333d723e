package events

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed schema/*.json
var schemas embed.FS

// Schema returns the JSON Schema (2020-12) of the data of an event type, with or without [TypePrefix], or of a request or
// reply such as claim.request.v1. The kinds of task.<kind>.v1 share task.v1, the phases of a question question.v1. The
// error is an [*Invalid].
func Schema(name string) ([]byte, error) {
	name = strings.TrimPrefix(name, TypePrefix)
	if _, ok := schemaOf(name); ok && name != "task.refused.v1" {
		if family, _, _ := strings.Cut(name, "."); family == "task" || family == "question" {
			name = family + ".v1"
		}
	}
	if !slices.Contains(SchemaNames(), name) {
		return nil, invalid("schema", "use one of "+strings.Join(SchemaNames(), ", "), "%.80q has none", name)
	}
	return schemas.ReadFile("schema/" + name + ".json")
}

// SchemaNames lists the schemas there are, sorted.
func SchemaNames() []string {
	files, err := fs.Glob(schemas, "schema/*.json")
	if err != nil {
		panic("events: the pattern of the schemas is malformed")
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(path.Base(f), ".json")
	}
	return names
}
