package values

import (
	"reflect"
)

// refill is [Schema.Default] of values that differ from others, which were filled
// before. It returns that result when nothing in it changes. Touched are the edits
// between the two; nil: they are not known. It takes from the room as much as it fills
// in, and nothing comes back.
func (s *Schema) refill(in, was, filled map[string]any, touched []*edit, room *room) map[string]any {
	if s == nil || s.defaults == nil {
		return in
	}
	out, _ := s.defaults.refill(value{in, true}, value{was, true}, value{filled, true}, touched, room).v.(map[string]any)
	return out
}

// refill is fill of in, which is in the place of was, of which filled was made.
func (f *filler) refill(in, was, filled value, touched []*edit, room *room) value {
	now, isMap := in.v.(map[string]any)
	before, wasMap := was.v.(map[string]any)
	done, filledMap := filled.v.(map[string]any)
	if !isMap || !wasMap || !filledMap || f == nil || now == nil || before == nil || anySets(touched) {
		return f.anew(in, filled, room)
	}
	if same(now, before) {
		return filled
	}
	out := done
	edits := childEdits(touched)
	if touched == nil {
		edits = differing(now, before)
	}
	for k, below := range edits {
		field, known := f.fields[k]
		if !known {
			field = f.of(k, room)
		}
		old := valueIn(done, k)
		next := valueIn(now, k)
		if field != nil && (known || next.there) {
			switch v, there := field.gap(next.v, next.there, room); {
			case !there:
				next = value{}
			case next.there && next.v != nil:
				next = field.refill(next, valueIn(before, k), old, below, room)
			default: // a default, which no edit leads to
				next = field.anew(value{v, true}, old, room)
			}
		}
		out = put(out, done, k, old, next)
	}
	return value{out, true}
}

// differing are the keys at which two maps are not the same; edits are not known.
func differing(a, b map[string]any) map[string][]*edit {
	out := map[string][]*edit{}
	for k, v := range a {
		if old, there := b[k]; !there || !same(v, old) {
			out[k] = nil
		}
	}
	for k := range b {
		if _, there := a[k]; !there {
			out[k] = nil
		}
	}
	return out
}

// anew is refill without what was filled before, but for its map when it is the same.
func (f *filler) anew(in, filled value, room *room) value {
	out := value{f.fill(in.v, room), in.there}
	if out.there == filled.there && reflect.DeepEqual(out.v, filled.v) {
		return filled
	}
	return out
}
