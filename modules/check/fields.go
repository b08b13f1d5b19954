package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/definition"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// unknownField is a field that a kind of Kubernetes does not have.
type unknownField struct {
	path string // "spec.replcias"
	near string // the field that was probably meant, or ""
}

// hint names the field that was probably meant, if any.
func (u unknownField) hint() string {
	if u.near == "" {
		return ""
	}
	return "did you mean " + u.near + "?"
}

// droppedField is the field of an object of which a warning of the API server tells that its kind does not have it.
func droppedField(s *store.Store, obj map[string]any, warning string) (u unknownField, is bool) {
	path := definition.UnknownField(warning)
	if path == "" {
		return u, false
	}
	ref := effect.RefOf(obj)
	u = unknownField{path, definition.NearField(ref.APIVersion, ref.Kind, path)}
	for _, f := range s.UnknownFields(obj) { // of a kind of the tree
		if f.Path == u.path {
			u.near = nearestOf(f)
		}
	}
	return u, true
}

func nearestOf(f store.UnknownField) string {
	return message.Nearest(f.Path[strings.LastIndexByte(f.Path, '.')+1:], f.Beside)
}

// wrongAt is how [chart.Tidy] tells of a field that has a value of another type.
var wrongAt = regexp.MustCompile(`([\w.\[\]/-]+) must be an? (\w+), not an? \w+$`)

// wrongType reads the path of a field of an object out of an error of [strictFields], and what it takes in the words
// of schemas.
func wrongType(obj map[string]any, err error) (path, want string) {
	if err == nil {
		return "", ""
	}
	m := wrongAt.FindStringSubmatch(chart.Tidy(err.Error()))
	if m == nil {
		return "", ""
	}
	if m[2] == "string" {
		of, _ := object.Get(obj, strings.Split(m[1], "."))
		if of, ok := of.(map[string]any); ok { // of a map of texts the key is not named
			for _, key := range slices.Sorted(maps.Keys(of)) {
				if _, isText := of[key].(string); !isText && of[key] != nil {
					return m[1] + "." + key, "string"
				}
			}
		}
	}
	return m[1], m[2]
}

// strictFields finds what the API server would drop from an object of a built-in kind, and whether a value is one that
// a field does not take.
func strictFields(obj map[string]any) (unknown []unknownField, wrong error) {
	version, _ := obj["apiVersion"].(string)
	kind, _ := obj["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		return nil, nil
	}
	typed, err := scheme.Scheme.New(gv.WithKind(kind))
	if err != nil {
		return nil, nil // not a kind of Kubernetes itself
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, nil
	}
	strict, err := kjson.UnmarshalStrict(data, typed)
	if err != nil {
		return nil, err
	}
	for _, e := range strict {
		if path := definition.UnknownField(e.Error()); path != "" {
			unknown = append(unknown, unknownField{path, definition.NearField(version, kind, path)})
		}
	}
	return unknown, nil
}

// unknownField tells of a field that an object of a rendered template has, and its kind does not. In a chart of
// somebody else it is a warning: nobody can put it right here.
func (c *checker) unknownField(m *generation.Module, path, kind, doc string, u unknownField) {
	f, src := c.inChart(m, Error, path, 0, fmt.Sprintf("%s has no field %s: the API server drops it", kind, u.path))
	f.Line, f.Hint = chart.FieldAt(src, kind, doc, u.path, u.near)
	if src == nil {
		f.Severity, f.Line = Warning, 0
	}
	c.add(f)
}

// wrongField tells of a value of a rendered object that its field does not take.
func (c *checker) wrongField(m *generation.Module, path, kind, at, want string) {
	text := fmt.Sprintf("%s: %s must be %s: the API server refuses the release", kind, at, inWords([]string{want}))
	f, src := c.inChart(m, Error, path, 0, text)
	f.Line = chart.LineOf(src, kind, at)
	switch want {
	case "string":
		f.Hint = "put it in quotes: {{ … | quote }}"
	case "integer", "boolean":
		f.Hint = "leave the quotes out, or write {{ int … }}"
	}
	c.add(f)
}

// selects holds the selector of a workload to the labels of its pods.
func (c *checker) selects(m *generation.Module, one manifest) {
	version, _ := one.object["apiVersion"].(string)
	kind, _ := one.object["kind"].(string)
	if version != "apps/v1" || one.wrong != nil {
		return
	}
	selector, _ := object.Get(one.object, []string{"spec", "selector", "matchLabels"})
	labels, _ := object.Get(one.object, []string{"spec", "template", "metadata", "labels"})
	wanted, _ := selector.(map[string]any)
	has, _ := labels.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		if has[key] == wanted[key] {
			continue
		}
		pods := "its pods have no such label"
		hint := fmt.Sprintf("write %s: %v below spec.template.metadata.labels, too", key, wanted[key])
		if other, is := has[key]; is {
			pods = fmt.Sprintf("this label of its pods is %v", other)
			hint = "write one of both, here and below spec.template.metadata.labels"
		}
		f, src := c.inChart(m, Error, one.path, 0, fmt.Sprintf("%s: spec.selector.matchLabels.%s is %v, and %s: "+
			"the API server refuses the release", kind, key, wanted[key], pods))
		f.Line, f.Hint = chart.LineOf(src, kind, "spec.selector.matchLabels", key), hint
		c.add(f)
	}
}

// customObject is one that a template renders, of a kind that Kubernetes itself does not have.
type customObject struct {
	module *generation.Module
	path   string // of the template in the chart
	doc    string // what it rendered to
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

// allDefinitions are all files of CustomResourceDefinitions.
func (c *checker) allDefinitions() (out []tree.File) {
	for _, m := range c.modules {
		out = append(out, slices.Concat(m.Tree.CRDs, c.subcharts[m.Name])...)
	}
	return out
}

// customFaults are of an object of a custom kind.
type customFaults struct {
	unknown []store.UnknownField
	// schema is that of the kind when one of its lists has a key twice.
	schema map[string]any
}

// customFields looks at the objects of custom kinds that charts render, once all definitions of the tree are known.
func (c *checker) customFields() {
	if len(c.custom) == 0 {
		return
	}
	definitions := c.allDefinitions()
	schemas := chart.Schemas{}
	server := sync.OnceValue(func() *store.Store {
		s := store.New(store.Options{Builtins: c.cache.builtins(), MakeNamespaces: true})
		for _, f := range definitions {
			found, err := readObjects(f.Data)
			if err != nil {
				continue // definitions() says so
			}
			for _, crd := range found {
				delete(crd, "status")
				_, _ = create(s, crd, false) // of one that is refused the objects are not looked at
				schemas.Add(crd)
			}
		}
		return s
	})
	all := keyOf(definitions)
	for _, o := range c.custom {
		kind, _ := o.object["kind"].(string)
		found := c.cache.fields.of(keyOf(all[:], o.object), func() (customFaults, bool) {
			out := customFaults{unknown: server().UnknownFields(o.object)}
			of := schemas[fmt.Sprint(o.object["apiVersion"], kind)]
			if _, repeated := object.OnePerKey(o.object, of); len(repeated) > 0 {
				out.schema = of
			}
			return out, true
		})
		for _, f := range found.unknown {
			c.unknownField(o.module, o.path, kind, o.doc, unknownField{f.Path, nearestOf(f)})
		}
		if found.schema != nil {
			_, repeated := chart.KeyFaults(o.module.Tree.Chart, "/"+o.path, o.object, found.schema)
			c.faults(o.module, repeated)
		}
	}
}

// faults tells of what the API server cannot be told of the objects of a chart.
func (c *checker) faults(m *generation.Module, list []chart.Fault) {
	for _, fault := range list {
		_, path, _ := strings.Cut(fault.Template, "/")
		f, src := c.inChart(m, Error, path, fault.Line, fault.Text)
		if fault.Warns {
			f.Severity = Warning
		}
		if src == nil { // in a fetched chart
			f.Line, f.Message = 0, strings.TrimPrefix(fault.String(), "/")
		}
		c.add(f)
	}
}
