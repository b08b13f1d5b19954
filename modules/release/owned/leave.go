package owned

import (
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Leave changes both sides of a merge, the manifest of before and the one that is wanted, so that the merge leaves live
// as it is at the paths: a field that live has keeps its value, also one that want has no more, and one that somebody
// has taken away stays so. The merge takes from want an element of a list that live does not have, and a field that
// neither live nor was has. In maps both sides lose the field, so that a change of live after the read is left alone,
// too. Lists may be written as a whole: want gets the value of live there.
func Leave(was, want, live map[string]any, paths []Path) {
	for _, p := range paths {
		leave(was, want, live, p, false)
	}
}

// leave does that for one path; inList: the maps are part of a list.
func leave(was, want, live map[string]any, p Path, inList bool) {
	for _, key := range keysAt(p[0], was, want) {
		before, had := was[key]
		now, has := live[key]
		switch {
		case len(p) == 1 && inList && has:
			want[key] = runtime.DeepCopyJSONValue(now)
		case len(p) == 1 && (has || had):
			delete(was, key)
			delete(want, key)
		case len(p) == 1: // the manifest has it now, and had not
		default:
			leaveBelow(want, key, before, now, p[1:], inList)
		}
	}
}

// leaveBelow leaves what is below a key of want.
func leaveBelow(want map[string]any, key string, was, live any, p Path, inList bool) {
	before, _ := was.(map[string]any)
	now, _ := live.(map[string]any)
	switch wanted := want[key].(type) {
	case map[string]any:
		leave(before, wanted, now, p, inList)
	case []any:
		before, _ := was.([]any)
		now, _ := live.([]any)
		want[key] = leaveElements(before, wanted, now, p)
	case nil:
		if before != nil && anyAt(now, p) { // without the map the merge would take all of it away
			kept := map[string]any{}
			want[key] = kept
			leave(before, kept, now, p, inList)
		}
	}
}

// keysAt are the keys of two maps to which a step goes.
func keysAt(s Step, maps ...map[string]any) (keys []string) {
	if s.Field != "" {
		return []string{s.Field}
	}
	if s.Any {
		for _, m := range maps {
			for key := range m {
				keys = append(keys, key)
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
		for _, key := range keysAt(p[0], v) {
			if inner, has := v[key]; has && anyAt(inner, p[1:]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return p[0].selects(e) && anyAt(e, p[1:]) })
	}
	return false
}

// leaveElements leaves elements of a list, or what is below a path in them.
func leaveElements(was, want, live []any, p Path) []any {
	out := make([]any, 0, len(want))
	for i, e := range want {
		if !p[0].selects(e) {
			out = append(out, e)
			continue
		}
		before, now := partner(was, e, i, p[0].Key), partner(live, e, i, p[0].Key)
		_, anew := before.(absent)
		_, gone := now.(absent)
		wanted, _ := e.(map[string]any)
		switch {
		case len(p) == 1 && gone && !anew: // somebody has taken it away
		case gone: // the merge makes it
			out = append(out, e)
		case len(p) == 1:
			out = append(out, runtime.DeepCopyJSONValue(now))
		default:
			before, _ := before.(map[string]any)
			if now, is := now.(map[string]any); is && wanted != nil {
				leave(before, wanted, now, p[1:], true)
			}
			out = append(out, e)
		}
	}
	if len(p) > 1 {
		return out
	}
	for i, e := range live { // those that leave the manifest
		_, foreign := partner(was, e, i, p[0].Key).(absent)
		_, leaves := partner(want, e, i, p[0].Key).(absent)
		if p[0].selects(e) && !foreign && leaves {
			out = append(out, runtime.DeepCopyJSONValue(e))
		}
	}
	return out
}

// Apart are those of the paths that somebody can own alone: an apply may leave them out. Other paths go into lists that
// have one owner as a whole.
func Apart(fields []metav1.ManagedFieldsEntry, paths []Path) (apart []Path) {
	for _, p := range paths {
		is := false
		for i := range fields {
			if set := setOf(&fields[i]); set != nil {
				set.Iterate(func(at fieldpath.Path) { is = is || p.covers(at) })
			}
		}
		if is {
			apart = append(apart, p)
		}
	}
	return apart
}

// HasHandovers says whether one of the manifests of an object gives a value to a field that controllers take over.
func HasHandovers(manifests ...map[string]any) bool {
	return slices.ContainsFunc(manifests, func(obj map[string]any) bool {
		return slices.ContainsFunc(handovers, func(h handover) bool {
			return at(obj, h.path) != nil && (h.where == "" || obj[h.where] != nil)
		})
	})
}

// Unchanged are the fields that controllers have taken over from a manifest, and that the manifest says as before, or no
// more. A manifest that gives such a field another value than before means it: nobody else may write the field by now.
func Unchanged(fields []metav1.ManagedFieldsEntry, was, want map[string]any) []Path {
	return slices.DeleteFunc(HandedOver(fields), func(p Path) bool {
		after := at(want, p)
		return after != nil && !reflect.DeepEqual(at(was, p), after)
	})
}

// at is the value at a path of fields; nil: there is none.
func at(obj map[string]any, p Path) any {
	var v any = obj
	for _, s := range p {
		m, _ := v.(map[string]any)
		v = m[s.Field]
	}
	return v
}
