package values

import (
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Items is in a path for the elements of a list, see [Schema.Types].
const Items = "[]"

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

// Types returns which types the schema allows at path, in the words of JSON schemas:
// "number" allows integers. nil: any, or the schema does not say.
func (s *Schema) Types(path []string) []string {
	node, _ := s.at(path)
	return typesAt(node)
}

func typesAt(node *structural.Structural) []string {
	switch {
	case node == nil:
		return nil
	case node.XIntOrString:
		return []string{"integer", "string"}
	case node.Type == "":
		return nil
	}
	return []string{node.Type}
}

// Fields returns the fields that the schema names at a path, sorted by name; path may have [Items] for the elements of
// a list.
func (s *Schema) Fields(path []string) (out []Field) {
	node, _ := s.at(path)
	if node == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		at := node.Properties[name]
		f := Field{Name: name, Types: typesAt(&at), Description: at.Description, Default: at.Default.Object}
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
	above, name := path[:len(path)-1], path[len(path)-1]
	for _, f := range s.Fields(above) {
		if f.Name == name {
			return f, true
		}
	}
	return Field{}, false
}

// at returns the part of the schema that describes path, and its keys in the file; nil
// when there is none.
func (s *Schema) at(path []string) (node *structural.Structural, keys []string) {
	if s == nil {
		return nil, nil
	}
	node = s.root
	for _, key := range path {
		_, named := node.Properties[key]
		switch {
		case named:
			keys = append(keys, "properties", key)
		case key == Items && node.Items != nil:
			node = node.Items
			continue
		default:
			keys = append(keys, "additionalProperties")
		}
		if node = fieldOf(node, key); node == nil {
			return nil, nil
		}
	}
	return node, keys
}

// fieldOf is the part of a schema that describes a field; nil when there is none.
func fieldOf(node *structural.Structural, key string) *structural.Structural {
	if field, named := node.Properties[key]; named {
		return &field
	}
	if node.AdditionalProperties != nil {
		return node.AdditionalProperties.Structural
	}
	return nil
}

// defaultSource is the place in a schema that gives what is at path: its default, or
// that of something above it. A schema that extends another has its fields there.
func defaultSource(lazy *lines, path []string, schema, other *Schema) Source {
	s := Source{Layer: LayerSchema, File: schema.file}
	for end := len(path); end >= 0; end-- {
		node, keys := schema.at(path[:end])
		if node == nil || node.Default.Object == nil {
			continue
		}
		if _, gives := lookup(node.Default.Object, path[end:]); !gives {
			continue
		}
		keys = slices.Concat(keys, []string{"default"}, path[end:])
		for _, file := range []string{schema.File(), other.File()} {
			for cut := len(keys); cut >= len(keys)-len(path[end:]); cut-- {
				if line := lazy.of(file).line(keys[:cut]); line > 0 {
					s.File, s.Line = file, line
					return s
				}
			}
		}
	}
	return s
}
