package values

import (
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

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

// at returns the part of the schema that describes path, and its keys in the file; nil
// when there is none.
func (s *Schema) at(path []string) (*structural.Structural, []string) {
	node := s.root
	var keys []string
	for _, key := range path {
		if field, ok := node.Properties[key]; ok {
			node, keys = &field, append(keys, "properties", key)
			continue
		}
		if node.AdditionalProperties == nil || node.AdditionalProperties.Structural == nil {
			return nil, nil
		}
		node, keys = node.AdditionalProperties.Structural, append(keys, "additionalProperties")
	}
	return node, keys
}
