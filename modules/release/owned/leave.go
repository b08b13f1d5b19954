package owned

import (
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Keep gives an object, which is changed, what live has at the paths: a comparison of the two finds no difference, and a
// write of the whole object makes none. live is nil for an object that is not there.
func Keep(obj, live map[string]any, paths []Path) {
	leave(runtime.DeepCopyJSON(obj), obj, live, paths, true)
}

// leave changes both sides of a merge, the manifest of before and the one that is wanted, so that the merge leaves
// live as it is at the paths: a field that live has keeps its value, also one that want has no more, and one that
// somebody has taken away stays so. The merge takes from want an element of a list that live does not have, and a
// field that neither live nor was has. In maps both sides lose the field, so that a change of live after the read is
// left alone, too. Lists, and what is in them, may be written as a whole: want gets the value of live there.
func leave(was, want, live map[string]any, paths []Path, whole bool) {
	maps := []map[string]any{was, want}
	if whole {
		maps = append(maps, live)
	}
	for _, key := range keysAt(paths, maps...) {
		before, had := was[key]
		now, has := live[key]
		switch rest, end := restsAt(paths, key); {
		case end && whole && has:
			want[key] = runtime.DeepCopyJSONValue(now)
		case end && (has || had):
			delete(was, key)
			delete(want, key)
		case end: // the manifest has it now, and had not
		default:
			leaveBelow(want, key, before, now, rest, whole)
		}
	}
}

// leaveBelow leaves what is below a key of want.
func leaveBelow(want map[string]any, key string, was, live any, paths []Path, whole bool) {
	before, _ := was.(map[string]any)
	now, _ := live.(map[string]any)
	hadList, _ := was.([]any)
	list, isList := live.([]any)
	switch wanted := want[key].(type) {
	case map[string]any:
		leave(before, wanted, now, paths, whole)
	case []any:
		want[key] = elements(hadList, wanted, list, paths)
	case nil: // without the map, or list, the merge would take all of it away
		switch there := slices.ContainsFunc(paths, func(p Path) bool { return anyAt(live, p) }); {
		case !there || was == nil && !whole:
		case isList:
			if kept := elements(hadList, nil, list, paths); len(kept) > 0 {
				want[key] = kept
			}
		default:
			kept := map[string]any{}
			want[key] = kept
			leave(before, kept, now, paths, whole)
		}
	}
}

// keysAt are the keys of maps to which the first steps of paths go.
func keysAt(paths []Path, maps ...map[string]any) (keys []string) {
	for _, p := range paths {
		switch {
		case p[0].Field != "":
			keys = append(keys, p[0].Field)
		case p[0].Any:
			for _, m := range maps {
				for key := range m {
					keys = append(keys, key)
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// anyAt says whether there is a value at a path.
func anyAt(v any, p Path) bool {
	if len(p) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, key := range keysAt([]Path{p}, v) {
			if inner, has := v[key]; has && anyAt(inner, p[1:]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return p[0].selects(e) && anyAt(e, p[1:]) })
	}
	return false
}

// Yield changes what manager applies of an object that is live, so that it leaves live as it is at the paths, see
// leave. A field that others own is left out; the manager goes on to apply, as it is, what nobody else owns.
func Yield(was, want, live map[string]any, fields []metav1.ManagedFieldsEntry, manager string, paths []Path) {
	if len(paths) == 0 {
		return
	}
	leave(was, want, live, paths, false)
	ours, theirs := ofManager(fields, manager)
	covered := func(set *fieldpath.Set, f func(at fieldpath.Path)) {
		set.Leaves().Iterate(func(at fieldpath.Path) {
			if slices.ContainsFunc(paths, func(p Path) bool { return p.covers(at) }) {
				f(at)
			}
		})
	}
	covered(theirs, func(at fieldpath.Path) { dropAt(want, at) })
	covered(ours.Difference(theirs), func(at fieldpath.Path) {
		v := valueAt(live, at)
		if v == nil || valueAt(want, at) != nil {
			return
		}
		var names []string
		for _, e := range at {
			if e.FieldName == nil {
				return // in a list, which leave has seen to
			}
			names = append(names, *e.FieldName)
		}
		_ = unstructured.SetNestedField(want, runtime.DeepCopyJSONValue(v), names...)
	})
}

// dropAt takes a field out of an object, or an element out of a list of it.
func dropAt(obj map[string]any, at fieldpath.Path) {
	last := at[len(at)-1]
	switch in := valueAt(obj, at[:len(at)-1]).(type) {
	case map[string]any:
		if last.FieldName != nil {
			delete(in, *last.FieldName)
		}
	case []any:
		if above, is := valueAt(obj, at[:max(0, len(at)-2)]).(map[string]any); is && at[len(at)-2].FieldName != nil {
			above[*at[len(at)-2].FieldName] = slices.DeleteFunc(in, func(e any) bool { return isElement(last, e) })
		}
	}
}

// Unchanged are the fields that controllers have taken over from manifests, and that the manifest which is wanted says
// as one of these, or no more. A manifest that gives such a field another value means it: nobody else may write the
// field by now.
func Unchanged(fields []metav1.ManagedFieldsEntry, want map[string]any, said ...map[string]any) (paths []Path) {
	for _, h := range handovers {
		after := valueAt(want, h.at)
		means := after != nil && !slices.ContainsFunc(said, func(was map[string]any) bool { return reflect.DeepEqual(valueAt(was, h.at), after) })
		if !means && h.by(fields, "") == handedOver {
			paths = append(paths, pathOf(h.at))
		}
	}
	return paths
}

// LastWrite is when manager has written an object last.
func LastWrite(fields []metav1.ManagedFieldsEntry, manager string) (last time.Time) {
	for i := range fields {
		if e := &fields[i]; e.Manager == manager && e.Subresource == "" && e.Time != nil && e.Time.After(last) {
			last = e.Time.Time
		}
	}
	return last
}

// elements is the list want with what live has at the paths: elements that a path names as a whole are those of live, and
// of others what is below the paths in them. Elements for which live has none, or more than one, stay as they are.
func elements(was, want, live []any, paths []Path) []any {
	out, places, claimed := make([]any, 0, len(want)), make([]int, 0, len(want)), make([]bool, len(live))
	for _, e := range want {
		there, before := partners(e, live, paths, want, was), partners(e, was, paths, want, live)
		for _, i := range there {
			claimed[i] = true
		}
		place := -1
		if len(there) == 1 {
			place = there[0]
		}
		switch rest, end := restsOf(paths, e); {
		case end && len(there) == 0 && len(before) > 0: // somebody has taken it away
			continue
		case place < 0:
		case end:
			e = runtime.DeepCopyJSONValue(live[place])
		case len(rest) > 0:
			var had map[string]any
			if len(before) == 1 {
				had, _ = was[before[0]].(map[string]any)
			}
			wanted, is := e.(map[string]any)
			if now, there := live[place].(map[string]any); is && there {
				leave(had, wanted, now, rest, true)
			}
		}
		out, places = append(out, e), append(places, place)
	}
	left := map[int]any{} // what was of the elements of live
	for _, e := range was {
		for _, i := range partners(e, live, paths, was, want) {
			left[i] = e
		}
	}
	for i, e := range live {
		before, ours := left[i]
		if claimed[i] || !remains(e, before, ours, len(want) == 0, paths) {
			continue
		}
		at := slices.IndexFunc(places, func(place int) bool { return place > i }) // the order of live makes no change
		if at < 0 {
			at = len(out)
		}
		out, places = slices.Insert(out, at, runtime.DeepCopyJSONValue(e)), slices.Insert(places, at, i)
	}
	return out
}

// remains says whether an element of live stays that the manifest does not have, or has no more: one that a path names;
// one of others with a field that a path names, when the list is empty otherwise, as that would take it away; and one
// with nothing but its key beside what the paths name, as an environment variable whose value they name.
func remains(e, was any, ours, empty bool, paths []Path) bool {
	rest, end := restsOf(paths, e)
	if !ours {
		return end || empty && slices.ContainsFunc(rest, func(p Path) bool { return anyAt(e, p) })
	}
	said, _ := stripped(was, rest).(map[string]any)
	named := slices.ContainsFunc(paths, func(p Path) bool { return p[0].Key != "" && p[0].selects(e) })
	return end || named && len(rest) > 0 && len(said) == 1
}

// partners are the places of the elements of in that may stand for e, an element of a list of. Where the key is unique
// in these two lists and in a third one, it tells; else what e says apart from the paths does.
func partners(e any, in []any, paths []Path, of, third []any) (places []int) {
	key := "name"
	if i := slices.IndexFunc(paths, func(p Path) bool { return p[0].Key != "" && p[0].selects(e) }); i >= 0 {
		key = paths[i][0].Key
	}
	m, _ := e.(map[string]any)
	if m[key] != nil && unique(key, in, of, third) {
		for i, o := range in {
			if o, is := o.(map[string]any); is && o[key] != nil && textOf(o[key]) == textOf(m[key]) {
				places = append(places, i)
			}
		}
		return places
	}
	rest, _ := restsOf(paths, e)
	said, same := stripped(e, rest), []int(nil)
	for i, o := range in {
		rest, _ := restsOf(paths, o)
		other := stripped(o, rest)
		if holds(other, said) {
			places = append(places, i)
		}
		if reflect.DeepEqual(other, said) {
			same = append(same, i)
		}
	}
	if len(same) > 0 {
		return same
	}
	return places
}

// unique says whether no list has two elements of the same key.
func unique(key string, lists ...[]any) bool {
	for _, list := range lists {
		seen := map[string]bool{}
		for _, e := range list {
			m, _ := e.(map[string]any)
			if m[key] == nil {
				continue
			}
			text := textOf(m[key])
			if seen[text] {
				return false
			}
			seen[text] = true
		}
	}
	return true
}

// stripped is a value without what is at the paths.
func stripped(v any, paths []Path) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if rest, end := restsAt(paths, key); !end {
				out[key] = stripped(inner, rest)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if rest, end := restsOf(paths, e); !end {
				out = append(out, stripped(e, rest))
			}
		}
		return out
	}
	return v
}

// holds says whether live has all that a value says. Values that are empty may be missing there.
func holds(live, said any) bool {
	switch said := said.(type) {
	case nil:
		return true
	case map[string]any:
		there, is := live.(map[string]any)
		for key, v := range said {
			if !holds(there[key], v) {
				return false
			}
		}
		return is || live == nil
	case []any:
		there, is := live.([]any)
		for _, v := range said {
			if !slices.ContainsFunc(there, func(o any) bool { return holds(o, v) }) {
				return false
			}
		}
		return is || live == nil
	}
	if live == nil {
		return reflect.ValueOf(said).IsZero()
	}
	return textOf(live) == textOf(said)
}

// restsAt are the rests of the paths that go to a key of a map; end: one of them ends there.
func restsAt(paths []Path, key string) (rests []Path, end bool) {
	return restsWhere(paths, func(s Step) bool { return s.Any || s.Key == "" && s.Field == key })
}

// restsOf are the rests of the paths that go to an element of a list; end: one of them ends there.
func restsOf(paths []Path, e any) (rests []Path, end bool) {
	return restsWhere(paths, func(s Step) bool { return s.selects(e) })
}

func restsWhere(paths []Path, goes func(Step) bool) (rests []Path, end bool) {
	for _, p := range paths {
		switch {
		case !goes(p[0]):
		case len(p) == 1:
			end = true
		default:
			rests = append(rests, p[1:])
		}
	}
	return rests, end
}
