package hook

import (
	"context"
	"fmt"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// lookups answers what the functions of a controller ask in one run. The Secrets that they find are seen.
func (r *Request) lookups(s *Seen) *builtins.Lookups {
	o := builtins.LookupsOptions{Bindings: r.Hook.Bindings, Now: r.Now}
	if r.Scope != nil {
		o.Namespaced = func(apiVersion, kind string) bool { // false of one that is not served
			is, err := r.Scope(apiVersion, kind)
			return is && err == nil
		}
	}
	if r.Rows != nil {
		o.Rows = func(l effect.Lookup) ([]starlark.Value, error) {
			w := r.Hook.Binding(l.Watch).Watch
			if slices.Contains(r.Unserved, l.Watch) {
				return nil, &unservedError{w.APIVersion + " " + w.Kind}
			}
			rows, err := r.Rows(l)
			if isSecret(w.APIVersion, w.Kind) {
				s.saw(func(m *object.Mask) {
					for _, v := range rows {
						take(m, v)
					}
				})
			}
			return rows, err
		}
	}
	return builtins.NewLookups(o)
}

// unservedError says that a function has looked for rows which nobody knows: their kind is not served any more.
type unservedError struct{ kind string }

func (e *unservedError) Error() string { return e.kind + ", which is not served any more" }

// Indexed returns what says at which places a watch of reads= has the row of an object, beside that of its
// name, and an id: equal ids say the same. Host is that of [Filter].
func Indexed(ctx context.Context, host func() *script.Host, w *builtins.WatchBinding, log builtins.Logger) (func(map[string]any) (*effect.Wakes, error), string) {
	id := "index"
	for _, x := range w.Index {
		id += fmt.Sprintf(" %s=%q", x.Name, x.ID)
	}
	return func(obj map[string]any) (*effect.Wakes, error) {
		var places []string
		for i := range w.Index {
			x := &w.Index[i]
			values := textsAt(obj, x.Path)
			if x.Fn != nil {
				v, err := ofObject(ctx, host(), x.Fn, obj, "index", log)
				if err == nil {
					values, err = textsOf(v, w.Pos, "a text, a list of texts, or None", "")
				}
				if err != nil {
					return nil, fmt.Errorf("index %s: %w", x.Name, hideSecret(w, obj, err))
				}
			}
			for _, value := range values {
				places = append(places, effect.AtIndex(x.Name, value))
			}
		}
		return effect.WakesKeys(places...), nil
	}, id
}

// textsAt are the text, or the texts of the list, at a path. Anything else is found by no value: objects may
// hold what their author likes.
func textsAt(obj map[string]any, path object.Path) (out []string) {
	switch v, _ := path.Get(obj); v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if text, is := e.(string); is && len(out) < maxKeys {
				out = append(out, text)
			}
		}
	}
	return out
}
