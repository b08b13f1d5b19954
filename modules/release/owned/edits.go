package owned

import (
	"cmp"
	"encoding/base64"
	"encoding/pem"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Edit is a field of an object that somebody has changed.
type Edit struct {
	// Path is the field; nil stands for the object as a whole.
	Path Path
	// By is the manager that has written it last; "" when that is not known.
	By string
}

// mostEdits is how many fields are told one by one; past it the object counts as a whole.
const mostEdits = 20

// mostFields is of how many fields values are compared: each is looked for in its lists anew.
const mostFields = 2000

// Edits are the fields that manager owns in now and that have another value in live, sorted, each with
// who owned it there. Where a map or an element of a list was not there, what is below it is not told.
// nil: there are none, or too many.
func Edits(live, now *unstructured.Unstructured, manager string) (edits []Edit) {
	return editsOf(live, now, manager, func(fieldpath.Path, string) bool { return true })
}

// Undone are those of Edits that others had made since was, which was wanted before. Helpers are other managers whose
// writes are no edits. A value that the API server has put into other words, and that nobody else owns, is none.
func Undone(was, live, now *unstructured.Unstructured, manager string, helper func(string) bool) []Edit {
	return editsOf(live, now, manager, func(at fieldpath.Path, by string) bool {
		before, has := valueAt(was.Object, at), valueAt(live.Object, at)
		return before != nil && !reflect.DeepEqual(before, has) && (has == nil || by != "" && !helper(by))
	})
}

func editsOf(live, now *unstructured.Unstructured, manager string, counts func(at fieldpath.Path, by string) bool) (edits []Edit) {
	ours, _ := ofManager(now.GetManagedFields(), manager)
	if ours.Size() > mostFields {
		return nil
	}
	var gone []fieldpath.Path
	ours.Iterate(func(at fieldpath.Path) { // what is above a field comes before it
		if len(edits) > mostEdits {
			return
		}
		was := valueAt(live.Object, at)
		if was != nil && !below(ours, at).Empty() || reflect.DeepEqual(was, valueAt(now.Object, at)) ||
			slices.ContainsFunc(gone, func(above fieldpath.Path) bool { return len(above) < len(at) && above.Equals(at[:len(above)]) }) {
			return
		}
		if was == nil {
			gone = append(gone, at.Copy())
		}
		if by := lastWriter(live.GetManagedFields(), at, manager); counts(at, by) {
			edits = append(edits, Edit{Path: pathOf(at), By: by})
		}
	})
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Compare(a.Path.String(), b.Path.String()) })
	edits = slices.CompactFunc(edits, func(a, b Edit) bool { return a.Path.String() == b.Path.String() })
	if len(edits) > mostEdits {
		return nil
	}
	return edits
}

// Refused are fields of which manager was to give an object another value than now, as it answers, has: something in
// the cluster changes what is written. An amount in other words is the same.
func Refused(want map[string]any, now *unstructured.Unstructured, manager string) (paths []Path) {
	ours, _ := ofManager(now.GetManagedFields(), manager)
	ours.Leaves().Iterate(func(at fieldpath.Path) {
		plain := func(v any) string { return strings.Join(strings.Fields(textOf(v)), "") } // of base64 no space is kept
		v, has := plain(valueAt(want, at)), plain(valueAt(now.Object, at))
		switch valueAt(want, at).(type) {
		case string, bool, int64, float64:
		default:
			return
		}
		wanted, err := resource.ParseQuantity(v)
		is, failed := resource.ParseQuantity(has)
		if v != has && v != "" && valueAt(now.Object, at) != nil && (err != nil || failed != nil || wanted.Cmp(is) != 0) {
			paths = append(paths, pathOf(at))
		}
	})
	return paths
}

// lastWriter is the other manager that owns a path, or something below it, and has written last; "": nobody.
func lastWriter(fields []metav1.ManagedFieldsEntry, at fieldpath.Path, manager string) string {
	owners := slices.DeleteFunc(slices.Clone(fields), func(e metav1.ManagedFieldsEntry) bool { return !hasIn(setOf(&e), at) })
	return append(Takers(owners, manager), "")[0]
}

// pathOf is a path of the API server as people write it. It ends at a list whose elements have no names.
func pathOf(at fieldpath.Path) (out Path) {
	for _, e := range at {
		switch {
		case e.FieldName != nil:
			out = append(out, Step{Field: *e.FieldName})
		case e.Key != nil && len(*e.Key) > 0:
			key := (*e.Key)[0]
			for _, k := range *e.Key {
				if k.Name == "name" {
					key = k
				}
			}
			out = append(out, Step{Key: key.Name, Value: textOf(key.Value.Unstructured())})
		default:
			return out
		}
	}
	return out
}

// Span is a time in which a hook of a release ran, as the API server notes times: to the second.
type Span struct{ From, To time.Time }

func within(spans []Span, at *metav1.Time) bool {
	return at != nil && slices.ContainsFunc(spans, func(s Span) bool {
		return !at.Time.Before(s.From.Truncate(time.Second)) && !at.Time.After(s.To)
	})
}

// ByRelease are fields to which a manifest gives another value than they have, and which belong to other writers of
// the release: all that somebody wrote while hooks of the release ran, and a caBundle, whoever wrote it, if the
// manifest's holds no certificate.
func ByRelease(live, want map[string]any, fields []metav1.ManagedFieldsEntry, manager string, ran []Span) (left []Edit) {
	for i := range fields {
		e := &fields[i]
		set := setOf(e)
		if set == nil || e.Subresource == "status" || e.Manager == manager && e.Subresource == "" {
			continue
		}
		during := within(ran, e.Time)
		set.Leaves().Iterate(func(at fieldpath.Path) {
			v, has := valueAt(want, at), valueAt(live, at)
			if v != nil && has != nil && !reflect.DeepEqual(v, has) && (during || isBundle(at) && !isCertificate(v)) {
				left = append(left, Edit{pathOf(at), e.Manager})
			}
		})
	}
	return left
}

// Paths are those of edits.
func Paths(edits []Edit) (paths []Path) {
	for _, e := range edits {
		paths = append(paths, e.Path)
	}
	return paths
}

func isBundle(at fieldpath.Path) bool {
	last := at[len(at)-1].FieldName
	return last != nil && *last == "caBundle"
}

// isCertificate says whether a value holds certificates, in base64 or as they are.
func isCertificate(v any) bool {
	text, _ := v.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil { // a kind that takes a text
		data = []byte(text)
	}
	block, _ := pem.Decode(data)
	return block != nil
}
