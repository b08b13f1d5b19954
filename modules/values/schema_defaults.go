package values

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxDefaults is how many values the defaults of schemas may put in, and
	// maxDefaultBytes how much text: a list of a hundred thousand {} is small, and each
	// of them gets all defaults of the items.
	maxDefaults     = 100_000
	maxDefaultBytes = 32 << 20
)

// Default returns v with the defaults of the schema where nothing is. As in
// Kubernetes a default inside an object applies when the object is there (give
// the object the default {} to have it always), a null that the schema does not
// allow counts as nothing. v is not changed. Where the defaults would be too many,
// v comes back without any.
func (s *Schema) Default(v map[string]any) map[string]any {
	room := newRoom()
	if out := s.fill(v, room); !room.used() {
		return out
	}
	return v
}

// fill is Default within a room; the result says nothing once that is used up.
func (s *Schema) fill(v map[string]any, room *room) map[string]any {
	if v == nil {
		v = map[string]any{}
	}
	if s == nil || s.defaults == nil {
		return v
	}
	out, _ := s.defaults.fill(v, room).(map[string]any)
	return out
}

// room is what defaults, or copies of parts of a schema, may still take.
type room struct{ values, bytes, work int }

func newRoom() *room { return &room{values: maxDefaults, bytes: maxDefaultBytes, work: maxWork} }

// used says that it is used up: there are more of them than fit in.
func (r *room) used() bool { return r.values < 0 || r.bytes < 0 || r.work < 0 }

// take notes a default.
func (r *room) take(v any) {
	r.values--
	switch v := v.(type) {
	case string:
		r.bytes -= len(v)
	case map[string]any:
		for k, e := range v {
			r.bytes -= len(k)
			r.take(e)
		}
	case []any:
		for _, e := range v {
			r.take(e)
		}
	}
}

// filler is what a schema has to do with gaps; parts without defaults and
// without fields that may not be null are nil.
type filler struct {
	value    any // the default, nil for none
	nullable bool
	fields   map[string]*filler
	patterns []patternFiller // in the order of their texts; the first one counts
	rest     *filler         // additionalProperties
	items    *filler
	names    []string // of fields, sorted
}

type patternFiller struct {
	keyPattern
	*filler
}

// newFiller makes the filler of a shape. Defaults of the shape itself get those inside them, so
// that whoever checks a default sees it as values will have it. They take from the room; once
// that is used up, defaults stay as they stand in the schema.
func newFiller(m map[string]any, keys map[string]keyPattern, room *room) *filler {
	f := &filler{value: m["default"], nullable: m["nullable"] == true}
	fields, _ := m["properties"].(map[string]any)
	for name, v := range fields {
		if f.fields == nil {
			f.fields = map[string]*filler{}
		}
		c, _ := v.(map[string]any)
		f.fields[name] = newFiller(c, keys, room)
	}
	f.names = slices.Sorted(maps.Keys(f.fields))
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, text := range slices.Sorted(maps.Keys(patterns)) {
		c, _ := patterns[text].(map[string]any)
		f.patterns = append(f.patterns, patternFiller{keys[text], newFiller(c, keys, room)})
	}
	if c, ok := m["additionalProperties"].(map[string]any); ok {
		f.rest = newFiller(c, keys, room)
	}
	if c, ok := m["items"].(map[string]any); ok {
		f.items = newFiller(c, keys, room)
	}
	if f.value == nil {
		return f
	}
	if whole := f.fill(f.value, room); !room.used() {
		f.value = whole
		m["default"] = whole
	}
	return f
}

// of returns the filler of a field without a name in the schema, nil for none.
func (f *filler) of(key string, room *room) *filler {
	for _, p := range f.patterns {
		if room.work -= p.work(key); room.used() {
			return nil
		}
		if p.MatchString(key) {
			return p.filler
		}
	}
	return f.rest
}

// fill returns v, or a changed copy.
func (f *filler) fill(v any, room *room) any {
	if f == nil || room.used() {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		return f.fillMap(v, room)
	case []any:
		return f.fillList(v, room)
	}
	return v
}

func (f *filler) fillMap(m map[string]any, room *room) any {
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
		now, keep := field.gap(was, there, room)
		if keep {
			now = field.fill(now, room)
		}
		if keep != there || !same(now, was) {
			put(k, now, keep)
		}
	}
	if f.rest == nil && len(f.patterns) == 0 {
		return out
	}
	for k, was := range m {
		if _, known := f.fields[k]; known {
			continue
		}
		field := f.of(k, room)
		if field == nil {
			continue
		}
		now, keep := field.gap(was, true, room)
		if keep {
			now = field.fill(now, room)
		}
		if !keep || !same(now, was) {
			put(k, now, keep)
		}
	}
	return out
}

func (f *filler) fillList(l []any, room *room) any {
	if f.items == nil {
		return l
	}
	out := l
	for i, was := range l {
		now, keep := f.items.gap(was, true, room)
		if !keep {
			continue // a list keeps its length; validation refuses the null
		}
		if now = f.items.fill(now, room); !same(now, was) {
			if len(out) > 0 && &out[0] == &l[0] {
				out = slices.Clone(l)
			}
			out[i] = now
		}
	}
	return out
}

// gap returns what is in the place of v: the default for nothing and for a
// null that is not allowed; false for nothing.
func (f *filler) gap(v any, there bool, room *room) (any, bool) {
	if there && (v != nil || f.nullable) {
		return v, true
	}
	if f.value != nil {
		if room.take(f.value); room.used() {
			return nil, false
		}
		return runtime.DeepCopyJSONValue(f.value), true
	}
	return nil, false
}
