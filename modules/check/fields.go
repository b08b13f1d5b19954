package check

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"io/fs"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
)

// unknownField is a field that a kind of Kubernetes does not have.
type unknownField struct {
	path string // "spec.replcias"
	near string // the field that was probably meant, or ""
}

var unknownAt = regexp.MustCompile(`^unknown field "(.+)"$`)

// unknownFields finds what the API server would drop from an object of a built-in kind.
func unknownFields(obj map[string]any) []unknownField {
	version, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil
	}
	typed, err := scheme.Scheme.New(gv.WithKind(kind))
	if err != nil {
		return nil // not a kind of Kubernetes itself
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	strict, err := kjson.UnmarshalStrict(data, typed)
	if err != nil {
		return nil // what does not fit at all is refused, and told of, by the API server
	}
	var out []unknownField
	for _, e := range strict {
		if m := unknownAt.FindStringSubmatch(e.Error()); m != nil {
			parent, name := "", m[1]
			if i := strings.LastIndexByte(name, '.'); i >= 0 {
				parent, name = name[:i], name[i+1:]
			}
			out = append(out, unknownField{m[1], message.Nearest(name, fieldNames(reflect.TypeOf(typed), parent))})
		}
	}
	return out
}

// fieldNames are the JSON names of the fields at a path of a type.
func fieldNames(t reflect.Type, path string) []string {
	names := func(t reflect.Type) map[string]reflect.Type { return fieldsOf(t) }
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
		if t = names(t)[name]; t == nil {
			return nil
		}
	}
	var out []string
	for name := range names(plainType(t)) {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// plainType is the type of one element, behind pointers and lists.
func plainType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// fieldsOf are the fields of a struct by their JSON names, those that it takes in among
// them.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
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
			for n, of := range fieldsOf(plainType(f.Type)) {
				out[n] = of
			}
		case name != "":
			out[name] = f.Type
		}
	}
	return out
}

// lineOf is the only line of a template that has a key, 0 when none has, or several.
func lineOf(t *tree.Tree, file, key string) (line int) {
	src, err := fs.ReadFile(t.Files, file)
	if err != nil {
		return 0
	}
	n := 0
	for text := range strings.Lines(string(src)) {
		n++
		text = strings.TrimLeft(strings.TrimSpace(text), "- {")
		if strings.HasPrefix(text, key+":") {
			if line > 0 {
				return 0
			}
			line = n
		}
	}
	return line
}
