package values

import (
	"maps"
	"slices"

	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
)

// Default returns v with the defaults of the schema where nothing is. As in
// Kubernetes a default inside an object applies when the object is there (give
// the object the default {} to have it always), a null that the schema does not
// allow counts as nothing. v is not changed.
func (s *Schema) Default(v map[string]any) map[string]any {
	if v == nil {
		v = map[string]any{}
	}
	if s == nil || s.defaults == nil {
		return v
	}
	out, _ := s.defaults.fill(v).(map[string]any)
	return out
}

// filler is what a schema has to do with gaps; parts without defaults and
// without fields that may not be null are nil.
type filler struct {
	value    any // the default, nil for none
	nullable bool
	fields   map[string]*filler
	rest     *filler // additionalProperties
	items    *filler
	names    []string // of fields, sorted
}

func newFiller(s *structural.Structural) *filler {
	if s == nil {
		return nil
	}
	f := &filler{value: s.Default.Object, nullable: s.Nullable, items: newFiller(s.Items)}
	for name := range s.Properties {
		p := s.Properties[name]
		if f.fields == nil {
			f.fields = map[string]*filler{}
		}
		f.fields[name] = newFiller(&p)
	}
	f.names = slices.Sorted(maps.Keys(f.fields))
	if s.AdditionalProperties != nil {
		f.rest = newFiller(s.AdditionalProperties.Structural)
	}
	return f
}

// fill returns v, or a changed copy.
func (f *filler) fill(v any) any {
	if f == nil {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		return f.fillMap(v)
	case []any:
		return f.fillList(v)
	}
	return v
}

func (f *filler) fillMap(m map[string]any) any {
	out := m
	put := func(k string, v any, there bool) {
		if same(out, m) {
			out = maps.Clone(m)
		}
		if there {
			out[k] = v
		} else {
			delete(out, k)
		}
	}
	for _, k := range f.names {
		field := f.fields[k]
		was, there := m[k]
		now, keep := field.gap(was, there)
		if keep {
			now = field.fill(now)
		}
		if keep != there || !same(now, was) {
			put(k, now, keep)
		}
	}
	if f.rest == nil {
		return out
	}
	for k, was := range m {
		if _, known := f.fields[k]; known {
			continue
		}
		now, keep := f.rest.gap(was, true)
		if keep {
			now = f.rest.fill(now)
		}
		if !keep || !same(now, was) {
			put(k, now, keep)
		}
	}
	return out
}

func (f *filler) fillList(l []any) any {
	if f.items == nil {
		return l
	}
	out := l
	for i, was := range l {
		now, keep := f.items.gap(was, true)
		if !keep {
			continue // a list keeps its length; validation refuses the null
		}
		if now = f.items.fill(now); !same(now, was) {
			if len(out) > 0 && &out[0] == &l[0] {
				out = slices.Clone(l)
			}
			out[i] = now
		}
	}
	return out
}

// gap returns what stands in the place of v: the default for nothing and for a
// null that is not allowed; false for nothing.
func (f *filler) gap(v any, there bool) (any, bool) {
	if there && (v != nil || f.nullable) {
		return v, true
	}
	if f.value != nil {
		return runtime.DeepCopyJSONValue(f.value), true
	}
	return nil, false
}
