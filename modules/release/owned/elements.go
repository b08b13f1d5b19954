package owned

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

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
// of which the paths name all but its key, as the value of an environment variable.
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
