package owned

import (
	"encoding/base64"
	"encoding/pem"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Span is a time in which a hook of a release ran, as the API server notes times: to the second.
type Span struct{ From, To time.Time }

func within(spans []Span, at *metav1.Time) bool {
	for _, s := range spans {
		if at != nil && !at.Time.Before(s.From.Truncate(time.Second)) && !at.Time.After(s.To) {
			return true
		}
	}
	return false
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
