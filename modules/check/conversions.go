package check

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// conversionOf is the binding of a hook that converts what can be tried here: nobody knows the snapshots that another
// one sees.
func conversionOf(h *generation.Hook) *builtins.Binding {
	for i := range h.Bindings {
		if b := &h.Bindings[i]; b.Converts() && len(b.Convert.Snapshots) == 0 {
			return b
		}
	}
	return nil
}

// converted has hooks convert an object to each other version, and back. One that fails takes all objects of its kind
// away in a cluster.
func (c *checker) converted(m *generation.Module, e example, s *store.Store) {
	ref := effect.RefOf(e.Object)
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	kind, known := s.KindOf(gvk)
	for _, h := range m.Hooks {
		b := conversionOf(h)
		if b == nil || !known || b.Convert.CRD != kind.Plural+"."+gvk.Group {
			continue
		}
		for _, version := range b.Convert.Versions() {
			if version == gvk.Version {
				continue
			}
			there := c.convert(m, h, b, e.File, e.Object, gvk.Group+"/"+version)
			if there == nil {
				continue
			}
			back := c.convert(m, h, b, e.File, there, ref.APIVersion)
			if back == nil {
				continue
			}
			var lost []string
			differences(&lost, "", e.Object, back)
			slices.Sort(lost)
			if len(lost) > 0 {
				c.addAt(Warning, "examples", m.Name, e.File, fmt.Sprintf("%s: by way of %s it is another object: %s", ref, version, strings.Join(lost[:min(len(lost), 3)], ", ")),
					"keep what the other version has no field for, in an annotation for example")
			}
		}
	}
}

// convert has a hook convert an object; nil when it cannot.
func (c *checker) convert(m *generation.Module, h *generation.Hook, b *builtins.Binding, file string, obj map[string]any, to string) map[string]any {
	request := &builtins.Request{Binding: b.Name, To: to, Objects: []map[string]any{object.CopyPlain(obj).(map[string]any)}}
	result := hook.Convert(c.ctx, hook.Request{Host: c.gen.Host, Hook: h, Request: request, Log: builtins.Silent{}}, b.Convert, nil)
	if result.Err != nil {
		c.addAt(Error, "examples", m.Name, file, result.Err.Error(), "")
		return nil
	}
	return result.Response.Objects[0]
}

// differences notes the fields in which two objects differ.
func differences(out *[]string, path string, was, is any) {
	before, isDict := was.(map[string]any)
	after, _ := is.(map[string]any)
	if !isDict || after == nil {
		if !reflect.DeepEqual(was, is) {
			*out = append(*out, strings.TrimPrefix(path, "."))
		}
		return
	}
	for key := range before {
		differences(out, path+"."+key, before[key], after[key])
	}
	for key := range after {
		if _, both := before[key]; !both {
			*out = append(*out, strings.TrimPrefix(path+"."+key, "."))
		}
	}
}
