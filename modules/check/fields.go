package check

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/sim/store"
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

// unknownField tells of a field that an object of a rendered template has, and its kind does not. In a chart of
// somebody else it is a warning: nobody can put it right here.
func (c *checker) unknownField(m *generation.Module, path, kind string, u unknownField) {
	f := Finding{
		Severity: Error, Check: "charts", Module: m.Name, File: c.chartFile(m, path),
		Message: fmt.Sprintf("%s has no field %s: the API server drops it", kind, u.path),
	}
	if f.File == m.Tree.Dir {
		f.Severity = Warning
	} else if src, err := fs.ReadFile(c.tree.Files, f.File); err == nil {
		f.Line = release.LineOf(src, kind, u.path)
	}
	if u.near != "" {
		f.Hint = "did you mean " + u.near + "?"
	}
	c.add(f)
}

// customObject is one that a template renders, of a kind that Kubernetes itself does not have.
type customObject struct {
	module *generation.Module
	path   string // of the template in the chart
	object map[string]any
}

func (c *checker) addCustom(o customObject) {
	version, _ := o.object["apiVersion"].(string)
	kind, _ := o.object["kind"].(string)
	if scheme.Scheme.Recognizes(schema.FromAPIVersionAndKind(version, kind)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.custom = append(c.custom, o)
}

// customFields looks at the objects of custom kinds that charts render, once all definitions of the tree are known.
func (c *checker) customFields() {
	if len(c.custom) == 0 {
		return
	}
	s := store.New(store.Options{Builtins: store.NewBuiltins(), MakeNamespaces: true})
	for _, m := range c.modules {
		for _, f := range slices.Concat(m.Tree.CRDs, c.subcharts[m.Name]) {
			found, err := readObjects(f.Data)
			if err != nil {
				continue // definitions() says so
			}
			for _, crd := range found {
				delete(crd, "status")
				_, _ = create(s, crd) // of one that is refused the objects are not looked at
			}
		}
	}
	for _, o := range c.custom {
		for _, f := range s.UnknownFields(o.object) {
			kind, _ := o.object["kind"].(string)
			near := message.Nearest(f.Path[strings.LastIndexByte(f.Path, '.')+1:], f.Beside)
			c.unknownField(o.module, o.path, kind, unknownField{f.Path, near})
		}
	}
}
