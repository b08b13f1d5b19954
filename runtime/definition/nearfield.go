package definition

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/starling-operator/starling/runtime/message"
)

// UnknownField is the path that the API server, or a decoder, warns of, for the kind has no such field; "" of all
// other texts.
func UnknownField(text string) string {
	path, is := strings.CutPrefix(text, `unknown field "`)
	path, ends := strings.CutSuffix(path, `"`)
	if !is || !ends {
		return ""
	}
	return path
}

// NearField is the field beside a path that was probably meant, of an object of a kind of Kubernetes itself; "" of
// others, and when none is near.
func NearField(apiVersion, kind, path string) string {
	typed, err := scheme.Scheme.New(kinds.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return ""
	}
	parent, name := "", path
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		parent, name = name[:i], name[i+1:]
	}
	return message.Nearest(name, fieldNames(reflect.TypeOf(typed), parent))
}

// fieldNames are the JSON names of the fields at a path of a type.
func fieldNames(t reflect.Type, path string) []string {
	for _, part := range strings.Split(path, ".") {
		name, _, _ := strings.Cut(part, "[")
		if name == "" {
			continue
		}
		t = plainType(t)
		if t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		if t = structFields(t)[name]; t == nil {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(structFields(plainType(t))))
}

// plainType is the type of one element, behind pointers and lists.
func plainType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// structFields are the fields of a struct by their JSON names, those that it takes in among
// them.
func structFields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			maps.Copy(out, structFields(plainType(f.Type)))
		case name != "":
			out[name] = f.Type
		}
	}
	return out
}
