package values

import (
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Field is what a schema says of one field of the values.
type Field struct {
	Name string
	// Types are those that it allows, as [Schema.Types] has them.
	Types []string
	// Description in the words of the schema; "" without one.
	Description string
	// Default is plain data; nil: there is none.
	Default any
	// Enum are the values that it allows, when these are listed.
	Enum []any
	// Required says that it must be there.
	Required bool
}

// Fields returns the fields that the schema names at a path, sorted by name; path may have [Items] for the elements of
// a list.
func (s *Schema) Fields(path []string) (out []Field) {
	if s == nil {
		return nil
	}
	node := below(s.root, path)
	if node == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		at := node.Properties[name]
		f := Field{Name: name, Types: s.Types(slices.Concat(path, []string{name})), Description: at.Description, Default: at.Default.Object}
		if v := node.ValueValidation; v != nil {
			f.Required = slices.Contains(v.Required, name)
		}
		if v := at.ValueValidation; v != nil {
			for _, e := range v.Enum {
				f.Enum = append(f.Enum, e.Object)
			}
		}
		out = append(out, f)
	}
	return out
}

// Field returns what the schema says of the field at a path; ok is false when it does not name it.
func (s *Schema) Field(path []string) (f Field, ok bool) {
	if len(path) == 0 {
		return Field{}, false
	}
	fields := s.Fields(path[:len(path)-1])
	i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == path[len(path)-1] })
	if i < 0 {
		return Field{}, false
	}
	return fields[i], true
}

// below is the part of a schema at a path; nil when it has none.
func below(node *structural.Structural, path []string) *structural.Structural {
	for _, key := range path {
		field, isField := node.Properties[key]
		switch {
		case isField:
			node = &field
		case key == Items && node.Items != nil:
			node = node.Items
		case node.AdditionalProperties != nil && node.AdditionalProperties.Structural != nil:
			node = node.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return node
}
