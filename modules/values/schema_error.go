package values

import (
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// SchemaError says all that is wrong with a schema.
type SchemaError struct {
	// File is the name of the schema's file.
	File     string
	Mistakes []SchemaMistake
}

// SchemaMistake is one thing that is wrong with a schema.
type SchemaMistake struct {
	// Message has the place in the values before it, where there is one.
	Message string
	// File is the one that the mistake is in: that of the schema, or one that the schema
	// refers to or extends.
	File string
	// Line in the file, from 1; 0 where it is not known.
	Line int
}

// Error returns one line. Mistakes in other files than that of the schema have their place.
func (e *SchemaError) Error() string {
	all := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		all[i] = m.Message
		switch {
		case m.File == e.File:
		case m.Line > 0:
			all[i] += fmt.Sprintf(" (%s:%d)", m.File, m.Line)
		default:
			all[i] += " (" + m.File + ")"
		}
	}
	return e.File + ": " + strings.Join(all, "; ")
}

// schemaText is the text of a schema, and the way to those that it names.
type schemaText struct {
	file string
	data []byte
	load func(name string) ([]byte, error)
}

func (t *schemaText) wrong(mistakes ...string) *SchemaError {
	files := &lines{known: map[string]*positions{t.file: newPositions(t.data)}, read: t.beside}
	p := &schemaPlaces{text: t, files: files, merges: maxMerges}
	e := &SchemaError{File: t.file}
	for _, m := range mistakes {
		place := p.of(strings.TrimPrefix(m, notStructural))
		e.Mistakes = append(e.Mistakes, SchemaMistake{Message: m, File: place.file, Line: place.line})
	}
	return e
}

// beside reads a file that a schema names; nil: it cannot be read.
func (t *schemaText) beside(file string) []byte {
	if t.load == nil {
		return nil
	}
	data, _ := t.load(path.Base(file)) // what is wrong with it has been said
	return data
}

// schemaPlaces finds the places of mistakes in a schema and in the files that it refers to.
type schemaPlaces struct {
	text   *schemaText
	files  *lines
	merges int // how often << may still be followed
}

// schemaPlace is a part of a schema.
type schemaPlace struct {
	node *yaml.Node
	file string
	line int
}

// of returns the place of what a mistake is about, as [ParseSchema] words it: "web.port: type
// must be …", `"propertes" is no keyword …`. The line is 0 when none is known.
func (p *schemaPlaces) of(mistake string) schemaPlace {
	at := schemaPlace{node: p.root(p.text.file), file: p.text.file}
	rest := mistake
	if path, message, ok := strings.Cut(mistake, ": "); ok && !strings.Contains(path, " ") {
		for _, step := range parts(path) {
			next, found := p.find(at, func(n *yaml.Node) (*yaml.Node, int) { return schemaChild(n, step, &p.merges) })
			if !found {
				message = step // a keyword of the place found so far
				break
			}
			at = next
		}
		rest = message
	}
	word, more, _ := strings.Cut(strings.TrimLeft(rest, `"`), " ")
	word = strings.Trim(word, `":`)
	keyword, found := p.find(at, func(n *yaml.Node) (*yaml.Node, int) {
		value, line := child(n, word, &p.merges)
		if named, _, _ := strings.Cut(more, " "); strings.HasPrefix(rest, "$ref: ") && p.value(n, word) != strings.TrimSuffix(named, ":") {
			return nil, 0 // it leads to the file of the one that is wrong
		}
		return value, line
	})
	if found {
		return keyword
	}
	return at
}

// find looks for something in a part of a schema, then in what that refers to.
func (p *schemaPlaces) find(at schemaPlace, in func(*yaml.Node) (*yaml.Node, int)) (schemaPlace, bool) {
	for range maxDepth {
		if node, line := in(at.node); node != nil && line > 0 {
			return schemaPlace{node: node, file: at.file, line: line}, true
		}
		if at = p.beyond(at); at.node == nil {
			break
		}
	}
	return schemaPlace{}, false
}

// beyond returns the schema that $ref names in a part of a schema, or x-extend at the root.
func (p *schemaPlaces) beyond(at schemaPlace) schemaPlace {
	if v := p.value(at.node, "$ref"); v != "" {
		name, pointer, _ := strings.Cut(v, "#")
		file := at.file
		if name != "" {
			file = path.Join(path.Dir(at.file), name)
		}
		node := p.root(file)
		for _, step := range pointerSteps(pointer) {
			node, _ = child(node, step, &p.merges)
		}
		return schemaPlace{node: node, file: file}
	}
	if at.node != p.root(at.file) {
		return schemaPlace{}
	}
	extended, _ := child(at.node, "x-extend", &p.merges)
	if name := p.value(extended, "schema"); name != "" {
		file := path.Join(path.Dir(at.file), name)
		return schemaPlace{node: p.root(file), file: file}
	}
	return schemaPlace{}
}

// value is the text under a key.
func (p *schemaPlaces) value(in *yaml.Node, key string) string {
	node, _ := child(in, key, &p.merges)
	if node = target(node); node == nil || node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

func (p *schemaPlaces) root(file string) *yaml.Node {
	if all := p.files.of(file); all != nil {
		return all.root
	}
	return nil
}

// schemaChild returns the schema of a step below the one of node.
func schemaChild(node *yaml.Node, step string, merges *int) (*yaml.Node, int) {
	if step != "[*]" {
		fields, _ := child(node, "properties", merges)
		if field, line := child(fields, step, merges); field != nil {
			return field, line
		}
		fields, _ = child(node, "patternProperties", merges)
		return child(fields, step, merges)
	}
	if items, line := child(node, "items", merges); items != nil {
		return items, line
	}
	return child(node, "additionalProperties", merges)
}
