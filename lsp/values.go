package lsp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
)

// takesPath says whether the first argument of a builtin is a path in the values of its module.
func takesPath(name string) bool {
	member, ok := strings.CutPrefix(name, "values.")
	return ok && slices.Contains([]string{"get", "has", "set", "default", "merge", "remove"}, member)
}

// known is what is known of the values at a place: by schemas, and by the values that files give. The fields of all of
// them count.
type known struct {
	schemas []*values.Schema
	data    []map[string]any
	// below has what stands under one key, such as global, apart.
	below map[string]known
}

// valuesOf is what is known of the values that a document of a module reads.
func (s *Server) valuesOf(d *document) (known, bool) {
	m := s.moduleOf(d)
	if m == nil {
		return known{}, false
	}
	global := globalValues(d.folder.gen)
	if m.Global {
		return known{below: map[string]known{values.GlobalKey: global}}, true
	}
	k := ofModule(m)
	k.below = map[string]known{values.GlobalKey: global}
	return k, true
}

// moduleOf is the module that a document is of, as the last check has loaded it; nil for none.
func (s *Server) moduleOf(d *document) *generation.Module {
	if d.folder == nil || d.folder.gen == nil {
		return nil
	}
	for _, m := range d.folder.gen.All() {
		if strings.HasPrefix(d.inTree, m.Tree.Dir+"/") {
			return m
		}
	}
	return nil
}

func ofModule(m *generation.Module) (k known) {
	config, all, err := m.Schemas()
	if err == nil {
		k.schemas = []*values.Schema{all, config}
	}
	for _, layer := range m.FileValues() {
		k.data = append(k.data, layer.Data)
	}
	return k
}

func globalValues(gen *generation.Generation) (k known) {
	if gen.Global != nil {
		k = ofModule(gen.Global)
	}
	if own, ok := gen.Tree.Values[values.GlobalKey].(map[string]any); ok {
		k.data = append(k.data, own)
	}
	return k
}

// ofUser is what a user may set of a module: the config's schema counts alone, where there is one.
func ofUser(m *generation.Module) known {
	k := ofModule(m)
	if config, _, err := m.Schemas(); err == nil && config != nil {
		return known{schemas: []*values.Schema{config}}
	}
	return k
}

// fields are those at a path, by name.
func (k known) fields(path []string) map[string]values.Field {
	if len(path) > 0 {
		if below, ok := k.below[path[0]]; ok {
			return below.fields(path[1:])
		}
	}
	out := map[string]values.Field{}
	for _, s := range k.schemas {
		for _, f := range s.Fields(path) {
			if _, there := out[f.Name]; !there {
				out[f.Name] = f
			}
		}
	}
	for _, data := range k.data {
		at := any(data)
		for _, key := range path {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		m, _ := at.(map[string]any)
		for name, v := range m {
			if _, there := out[name]; !there {
				out[name] = values.Field{Name: name, Default: v}
			}
		}
	}
	if len(path) == 0 {
		for name := range k.below {
			out[name] = values.Field{Name: name, Types: []string{"object"}}
		}
	}
	return out
}

// complete offers the fields at a path.
func (k known) complete(path []string, out *completions) {
	fields := k.fields(path)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		out.add(0, kindProperty, name, strings.Join(f.Types, " or "), docOfField(path, f))
	}
}

// doc explains the field at a path; "" for one that nobody knows.
func (k known) doc(path []string) string {
	if len(path) == 0 {
		return ""
	}
	above := path[:len(path)-1]
	f, ok := k.fields(above)[path[len(path)-1]]
	if !ok {
		return ""
	}
	return docOfField(above, f)
}

// maxShown is how much of a value is shown.
const maxShown = 400

func docOfField(above []string, f values.Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s`", strings.Join(append(slices.Clip(above), f.Name), "."))
	if len(f.Types) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(f.Types, " or "))
	}
	if f.Required {
		b.WriteString(", required")
	}
	if f.Description != "" {
		fmt.Fprintf(&b, "\n\n%s", strings.TrimSpace(f.Description))
	}
	if len(f.Enum) > 0 {
		fmt.Fprintf(&b, "\n\nOne of: %s", shown(f.Enum))
	}
	if f.Default != nil {
		fmt.Fprintf(&b, "\n\nDefault: `%s`", shown(f.Default))
	}
	return b.String()
}

func shown(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	text := string(data)
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return strings.ReplaceAll(text, "`", "'")
}
