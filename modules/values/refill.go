package values

import (
	"reflect"
)

// refill is [Schema.Default] of values that differ from others, which were filled
// before. It returns that result when nothing in it changes. Touched are the edits
// between the two; nil: they are not known. It takes from the room as much as it fills
// in, and nothing comes back.
func (s *Schema) refill(in, was, filled map[string]any, touched []*edit, room *room) map[string]any {
	if s == nil {
		return in
	}
	out, _ := s.known.refill(value{in, true}, value{was, true}, value{filled, true}, touched, room).v.(map[string]any)
	return out
}

// refill is fill of in, which is in the place of was, of which filled was made.
func (k *knownFields) refill(in, was, filled value, touched []*edit, room *room) value {
	now, isMap := in.v.(map[string]any)
	before, wasMap := was.v.(map[string]any)
	done, filledMap := filled.v.(map[string]any)
	if !isMap || !wasMap || !filledMap || k == nil || now == nil || before == nil || anySets(touched) {
		return k.anew(in, filled, room)
	}
	if same(now, before) {
		return filled
	}
	out := done
	for key, below := range editsBetween(now, before, touched) {
		field := k.first(key, &room.work)
		old, next := valueIn(done, key), valueIn(now, key)
		if _, named := k.fields[key]; field != nil && (named || next.there) {
			switch filled := field.gap(next, room); {
			case filled.there && next.there && next.v != nil:
				next = field.refill(next, valueIn(before, key), old, below, room)
			case filled.there: // a default, which no edit leads to
				next = field.anew(filled, old, room)
			default:
				next = filled
			}
		}
		out = put(out, done, key, old, next)
	}
	return value{out, true}
}

// editsBetween are the keys at which two maps may not be the same, with the edits there as far as they are known.
func editsBetween(a, b map[string]any, touched []*edit) map[string][]*edit {
	if touched != nil {
		return childEdits(touched)
	}
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
func (k *knownFields) anew(in, filled value, room *room) value {
	out := value{k.fill(in.v, room), in.there}
	if out.there == filled.there && reflect.DeepEqual(out.v, filled.v) {
		return filled
	}
	return out
}
