package store

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/definition"
)

// UnknownField is a field that the schema of a kind does not have.
type UnknownField struct {
	// Path is "spec.boxes[0].nmae".
	Path string
	// Beside are the names that the schema has there, sorted.
	Beside []string
}

var element = regexp.MustCompile(`\[\d+\]`)

// UnknownFields are those that the server would drop from an object of a custom kind: of others, and of kinds that
// are not served, nothing is said.
func (s *Store) UnknownFields(obj map[string]any) (out []UnknownField) {
	apiVersion, _ := obj["apiVersion"].(string)
	name, _ := obj["kind"].(string)
	found, served := s.KindOf(schema.FromAPIVersionAndKind(apiVersion, name))
	if !served {
		return nil
	}
	s.mu.Lock()
	defer s.unlock()
	k := s.kind(found.GVR())
	obj, err := copied(obj)
	if err != nil || k == nil || k.crd == nil {
		return nil
	}
	unknown, err := k.crd.Decode(obj, false)
	if err != nil {
		return nil // what does not fit at all is refused when it is written
	}
	for _, text := range unknown {
		if path := definition.UnknownField(text); path != "" {
			out = append(out, UnknownField{path, beside(k.crd.Structural, path)})
		}
	}
	return out
}

// leaveOut takes fields out of an object that a decoder does not know. One with dots in its name stays.
func leaveOut(obj map[string]any, unknown []string) {
	for _, text := range unknown {
		var at any = obj
		names := strings.FieldsFunc(definition.UnknownField(text), func(r rune) bool { return r == '.' || r == '[' || r == ']' })
		for i, name := range names {
			switch in := at.(type) {
			case map[string]any:
				if i == len(names)-1 {
					delete(in, name)
				}
				at = in[name]
			case []any:
				if n, err := strconv.Atoi(name); err == nil && n < len(in) {
					at = in[n]
				}
			}
		}
	}
}

// beside are the names of the fields of the object that a path leads into.
func beside(at *structural.Structural, path string) []string {
	names := strings.Split(element.ReplaceAllString(path, ""), ".")
	for i, name := range names {
		for at != nil && at.Items != nil {
			at = at.Items
		}
		if at == nil {
			return nil
		}
		if i == len(names)-1 {
			break
		}
		next, ok := at.Properties[name]
		if !ok {
			return nil
		}
		at = &next
	}
	return slices.Sorted(maps.Keys(at.Properties))
}
