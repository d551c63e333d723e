package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/clarify-broker/clarify/events"
)

// maxFile is the size of a policy file, in bytes.
const maxFile = 1 << 20

// Parse reads a policy file. The error is [Problems]: every one names file:line:column, the path of the key, what is wrong
// and, where it can, what was probably meant.
func Parse(name string, text []byte) (*Policy, error) {
	r := &reader{file: name, places: map[string]place{}}
	if len(text) > maxFile {
		r.problem(place{1, 1}, "", "the file has %d bytes, the limit is %d", len(text), maxFile)
		return nil, r.problems
	}
	p := &Policy{schemas: newSchemas(), catalog: map[string][]*listed{}, secret: map[string]bool{}}
	r.document(text, &p.file)
	if len(r.problems) > 0 {
		r.problems.sort()
		return nil, r.problems
	}
	sum := sha256.Sum256(text)
	p.ref = events.PolicyRef{
		Name: p.file.Metadata.Name, Version: p.file.Metadata.Version, Digest: events.Digest("sha256:" + hex.EncodeToString(sum[:])),
	}
	p.compile(r)
	p.tools = newIndex(p.file.Tools)
	p.lint(r)
	if len(r.problems) > 0 {
		r.problems.sort()
		return nil, r.problems
	}
	return p, nil
}

// compile prepares what decisions need: conditions, schemas of the catalog, and the defaults the file leaves out.
func (p *Policy) compile(r *reader) {
	lang, err := newLanguages()
	if err != nil {
		r.problem(place{1, 1}, "", "conditions cannot be read: %s", oneLine(err.Error()))
		return
	}
	for i, c := range p.file.Classes {
		c.When.compile(r, fmt.Sprintf("classes[%d].when", i), lang.class)
	}
	for i, e := range p.file.Tools {
		for j, rule := range e.Reconcile {
			rule.When.compile(r, fmt.Sprintf("tools[%d].reconcile[%d].when", i, j), lang.rule)
		}
		for j, rule := range e.Authority {
			rule.When.compile(r, fmt.Sprintf("tools[%d].authority[%d].when", i, j), lang.rule)
		}
	}
	for i, w := range p.file.Routes {
		w.When.compile(r, fmt.Sprintf("routes[%d].when", i), lang.route)
	}
	for i := range p.file.Catalog {
		p.list(r, i)
	}
	for _, e := range p.file.Tools {
		for name, f := range e.Fields {
			if f.Secret {
				p.secret[name] = true
			}
		}
	}
	p.file.Defaults.fill()
}

// list puts one tool of the catalog where decisions find it.
func (p *Policy) list(r *reader, i int) {
	l := &p.file.Catalog[i]
	p.catalog[l.Name] = append(p.catalog[l.Name], l)
	if len(l.InputSchema.raw) == 0 {
		return
	}
	s, err := compileSchema(l.InputSchema.raw)
	if err != nil {
		path := fmt.Sprintf("catalog[%d].inputSchema", i)
		r.problem(r.at(path), path, "the schema of %s is not usable: %s", l.Name, oneLine(err.Error()))
		return
	}
	l.schema = s
}

// fill supplies what the file leaves out. Nothing it supplies is looser than what the file could have said.
func (d *defaults) fill() {
	orElse(&d.UnknownTool, "stop")
	orElse(&d.Otherwise, "stop")
	given := &d.Provenance
	if given.Identity == nil {
		given.Identity = []string{"user", "lookup", "record"}
	}
	if given.Recipient == nil {
		given.Recipient = given.Identity
	}
	if given.Resource == nil {
		given.Resource = given.Identity
	}
	if given.Effect == nil {
		given.Effect = []string{"user", "lookup", "record", "default"}
	}
	if given.Plain == nil {
		given.Plain = []string{"user", "lookup", "record", "default", "inferred"}
	}
}

func orElse(s *string, v string) {
	if *s == "" {
		*s = v
	}
}

// of lists where a value of a role may come from.
func (p provenance) of(role events.Role) []string {
	switch role {
	case events.RoleIdentity:
		return p.Identity
	case events.RoleRecipient:
		return p.Recipient
	case events.RoleResource:
		return p.Resource
	case events.RolePlain:
		return p.Plain
	case events.RoleEffect:
	}
	return p.Effect
}

func (p provenance) accepts(role events.Role, from events.Origin) bool {
	return slices.Contains(p.of(role), string(from))
}
