package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The tree is the first drawing of the design that a reader sees. These tests keep it true: each rule is a function of
// source files, run over the repository here and over planted violations in layout_planted_test.go.

const module = "github.com/clarify-broker/clarify"

// goFile is one parsed source file; path is relative to the root, with slashes.
type goFile struct {
	path string
	text string
	fset *token.FileSet
	ast  *ast.File
}

func (f goFile) dir() string  { return filepath.ToSlash(filepath.Dir(f.path)) }
func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }
func (f goFile) lines() int   { return strings.Count(f.text, "\n") }
func (f goFile) imports() []string {
	var all []string
	for _, im := range f.ast.Imports {
		all = append(all, strings.Trim(im.Path.Value, `"`))
	}
	return all
}

// at says where something is, for a reader who wants to go there.
func (f goFile) at(pos token.Pos) string {
	p := f.fset.Position(pos)
	p.Filename = f.path
	return p.String()
}

func parseFile(path, text string) (goFile, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
	return goFile{path: path, text: text, fset: fset, ast: file}, err
}

// sources are all Go files of the module.
func sources(t *testing.T) []goFile {
	t.Helper()
	var all []goFile
	root := ".."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := parseFile(filepath.ToSlash(rel), string(text))
		all = append(all, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("only %d files were found: the walk is broken", len(all))
	}
	return all
}

func TestLayout(t *testing.T) {
	files := sources(t)
	for _, r := range fileRules() {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range files {
				for _, violation := range r.check(f) {
					t.Errorf("%s\n\t%s", violation, r.why)
				}
			}
		})
	}
	t.Run("package_comments", func(t *testing.T) {
		for _, violation := range packageComments(files) {
			t.Error(violation)
		}
	})
	t.Run("top_level", func(t *testing.T) {
		entries, err := os.ReadDir("..")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name()+"/")
			} else {
				names = append(names, e.Name())
			}
		}
		for _, violation := range topLevel(names) {
			t.Error(violation)
		}
	})
}

// topLevel names the folders, given with a slash, that the design does not have, and Go files outside any package of it.
func topLevel(names []string) []string {
	design := []string{"events/", "policy/", "broker/", "channels/", "cmd/", "deploy/", "integration/"}
	var violations []string
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "."), slices.Contains(design, name):
		case strings.HasSuffix(name, "/"):
			violations = append(violations, name+": no folder of the design; the flow is events, policy, broker, channels")
		case strings.HasSuffix(name, ".go"):
			violations = append(violations, name+": there is no root package")
		}
	}
	return violations
}

// packageComments names the packages whose files say nowhere what the package is for.
func packageComments(files []goFile) []string {
	said := map[string]bool{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		want := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			want = "Command "
		}
		said[f.dir()] = said[f.dir()] || f.ast.Doc != nil && strings.HasPrefix(f.ast.Doc.Text(), want)
	}
	var violations []string
	for dir, ok := range said {
		if !ok {
			violations = append(violations, dir+`: no comment that starts "Package …" (or "Command …") and says what it is for`)
		}
	}
	slices.Sort(violations)
	return violations
}
