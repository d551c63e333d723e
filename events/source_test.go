package events_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// source is what the package's own text says about its types: their comments, their members' comments, and the constants
// that each named string type has. Reflection sees none of it.
type source struct {
	comments map[string]string   // "Type" or "Type.Field"
	enums    map[string][]string // by type
}

func readSource(t *testing.T) source {
	t.Helper()
	src := source{comments: map[string]string{}, enums: map[string][]string{}}
	pkgs, err := parser.ParseDir(token.NewFileSet(), ".", nil, parser.ParseComments) //nolint:staticcheck // no build tags here
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range pkgs["events"].Files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				src.addGroup(t, gen)
			}
		}
	}
	return src
}

func (src source) addGroup(t *testing.T, gen *ast.GenDecl) {
	t.Helper()
	for _, spec := range gen.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			src.addType(gen, spec)
		case *ast.ValueSpec:
			if typ, ok := spec.Type.(*ast.Ident); ok && gen.Tok == token.CONST {
				for _, v := range spec.Values {
					src.addConstant(t, typ.Name, v)
				}
			}
		}
	}
}

func (src source) addConstant(t *testing.T, typ string, v ast.Expr) {
	t.Helper()
	lit, ok := v.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatal(err)
	}
	src.enums[typ] = append(src.enums[typ], text)
}

func (src source) addType(gen *ast.GenDecl, spec *ast.TypeSpec) {
	doc := spec.Doc
	if doc == nil {
		doc = gen.Doc
	}
	src.comments[spec.Name.Name] = sentence(doc)
	st, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range st.Fields.List {
		text := sentence(f.Doc)
		if text == "" {
			text = sentence(f.Comment)
		}
		for _, name := range f.Names {
			src.comments[spec.Name.Name+"."+name.Name] = text
		}
	}
}

// sentence is a comment on one line, without the marks that only godoc understands.
func sentence(c *ast.CommentGroup) string {
	if c == nil {
		return ""
	}
	text, _, _ := strings.Cut(c.Text(), "\n\n")
	return strings.NewReplacer("[", "", "]", "", "*", "").Replace(strings.Join(strings.Fields(text), " "))
}
