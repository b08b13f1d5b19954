package values

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
)

// References: $ref names a schema of the same file (#/definitions/port), or of one beside
// it (config-values.yaml#/definitions/port). It is put in their place before anything else
// looks at the schema, so that all that reads schemas knows none. A schema that refers to
// itself has no end and is refused.

// document is one file that a reference may name.
type document struct {
	file string
	root map[string]any
}

// references puts what $ref names in its place.
type references struct {
	load  func(string) ([]byte, error)
	files map[string]*document
	room  *room // what the copies may take
	mistakes
}

// withoutRefs returns the schema of a file, which was read into raw, with all references
// carried out.
func withoutRefs(text *schemaText, raw map[string]any) (map[string]any, error) {
	doc := &document{file: text.file, root: raw}
	r := &references{load: text.load, files: map[string]*document{text.file: doc}, room: newRoom()}
	out := r.schema("", raw, doc, []string{text.file + "#"})
	switch {
	case r.room.used():
		return nil, text.wrong(fmt.Sprintf("with each $ref written out the schema has more than %d parts or %d MiB of text; "+
			"refer to fewer, or let others be with x-kubernetes-preserve-unknown-fields", maxDefaults, maxDefaultBytes>>20))
	case len(r.errs) > 0:
		return nil, text.wrong(r.errs...)
	case depth(out, maxDepth) < 0:
		return nil, text.wrong(fmt.Sprintf("with each $ref written out the schema is nested deeper than %d levels", maxDepth))
	}
	return out, nil
}

// schema returns m, which describes the values at a path, without references. chain are
// those that led to it.
func (r *references) schema(at string, m map[string]any, in *document, chain []string) map[string]any {
	if r.room.used() {
		return m
	}
	if ref, refers := m["$ref"]; refers {
		rest := maps.Clone(m)
		delete(rest, "$ref")
		out := r.named(at, ref, in, chain)
		if len(rest) == 0 {
			return out
		}
		return extend(out, r.schema(at, rest, in, chain))
	}
	return mapSchemas(at, m, func(at, _ string, c map[string]any) any { return r.schema(at, c, in, chain) })
}

// named returns the schema that ref names, without references.
func (r *references) named(at string, ref any, in *document, chain []string) map[string]any {
	text, ok := ref.(string)
	if !ok {
		r.fail(at, "$ref does not take %s", kindOf(ref))
		return map[string]any{}
	}
	name, pointer, _ := strings.Cut(text, "#")
	doc, err := r.document(name, in)
	if err != nil {
		r.fail(at, "$ref: %s: %s", text, err)
		return map[string]any{}
	}
	found, err := doc.at(pointer)
	id := doc.file + "#" + strings.TrimSuffix(pointer, "/")
	switch {
	case err != nil:
		r.fail(at, "$ref: %s: %s", text, err)
	case slices.Contains(chain, id):
		r.fail(at, "$ref: %s refers to itself, so it has no end: write out as many levels as there are, or let the rest be with "+
			"x-kubernetes-preserve-unknown-fields", text)
	case len(chain) > maxDepth:
		r.fail(at, "$ref: %s: more than %d schemas refer to each other in a row", text, maxDepth)
	default:
		r.room.take(found)
		return r.schema(at, found, doc, append(slices.Clip(chain), id))
	}
	return map[string]any{}
}

// document returns the file that a reference in another one names; "" is that file.
func (r *references) document(name string, in *document) (*document, error) {
	if name == "" {
		return in, nil
	}
	file := path.Join(path.Dir(in.file), name)
	if doc := r.files[file]; doc != nil {
		return doc, nil
	}
	if r.load == nil || strings.Contains(name, "/") {
		return nil, errors.New("only files beside this one can be read")
	}
	data, err := r.load(name)
	if err != nil {
		return nil, err
	}
	root, err := parseYAML(data)
	if err != nil {
		return nil, err
	}
	r.files[file] = &document{file: file, root: root}
	return r.files[file], nil
}

// at returns the schema that a JSON pointer names.
func (d *document) at(pointer string) (map[string]any, error) {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("after # a path must follow, such as #/definitions/port")
	}
	var v any = d.root
	for _, step := range pointerSteps(pointer) {
		m, _ := v.(map[string]any)
		next, there := m[step]
		if !there {
			return nil, fmt.Errorf("%s has nothing there", d.file)
		}
		v = next
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s has no schema there, but %s", d.file, kindOf(v))
	}
	return m, nil
}

// pointerSteps are the keys of a JSON pointer, as it stands in a URL.
func pointerSteps(pointer string) []string {
	if unescaped, err := url.PathUnescape(pointer); err == nil {
		pointer = unescaped
	}
	if pointer = strings.Trim(pointer, "/"); pointer == "" {
		return nil
	}
	steps := strings.Split(pointer, "/")
	for i := range steps {
		steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
	}
	return steps
}
