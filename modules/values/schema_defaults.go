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
	if s == nil {
		return v
	}
	out, _ := s.known.fill(v, room).(map[string]any)
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

// fill returns v, or a changed copy.
func (k *knownFields) fill(v any, room *room) any {
	if k == nil || room.used() {
		return v
	}
	switch v := v.(type) {
	case map[string]any:
		return k.fillMap(v, room)
	case []any:
		return k.fillList(v, room)
	}
	return v
}

func (k *knownFields) fillMap(m map[string]any, room *room) any {
	out, names := m, k.names
	if k.rest != nil || len(k.patterns) > 0 {
		names = slices.AppendSeq(slices.Clip(names), maps.Keys(m))
	}
	for i, name := range names {
		field, named := k.fields[name]
		if !named {
			field = k.first(name, &room.work)
		} else if i >= len(k.names) {
			continue
		}
		if field == nil {
			continue
		}
		was := valueIn(m, name)
		now := field.gap(was, room)
		if now.there {
			now.v = field.fill(now.v, room)
		}
		out = put(out, m, name, was, now)
	}
	return out
}

func (k *knownFields) fillList(l []any, room *room) any {
	if k.items == nil {
		return l
	}
	out := l
	for i, was := range l {
		now := k.items.gap(value{was, true}, room)
		if !now.there {
			continue // a list keeps its length; validation refuses the null
		}
		if now.v = k.items.fill(now.v, room); !same(now.v, was) {
			if len(out) > 0 && &out[0] == &l[0] {
				out = slices.Clone(l)
			}
			out[i] = now.v
		}
	}
	return out
}

// gap returns what is in the place of v: the default for nothing and for a null that is not allowed.
func (k *knownFields) gap(v value, room *room) value {
	if v.there && (v.v != nil || k.nullable) {
		return v
	}
	if k.value != nil {
		if room.take(k.value); !room.used() {
			return value{runtime.DeepCopyJSONValue(k.value), true}
		}
	}
	return value{}
}
