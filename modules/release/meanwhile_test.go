package release

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/release/owned"
)

// meeting has others write an object just before an apply of it, or another patch, arrives, as often as the encounter
// says.
type meeting struct {
	next http.RoundTripper
	with atomic.Pointer[encounter]
}

type encounter struct {
	object string
	most   int64
	others func()
	form   types.PatchType // "": an apply
	met    atomic.Int64    // such patches of the object
}

func (m *meeting) RoundTrip(r *http.Request) (*http.Response, error) {
	e := m.with.Load()
	if e != nil && r.Header.Get("Content-Type") == string(cmp.Or(e.form, types.ApplyPatchType)) && strings.HasSuffix(r.URL.Path, e.object) && e.met.Add(1) <= e.most {
		e.others()
	}
	return m.next.RoundTrip(r)
}

// testMeanwhile has others write objects between the look of an upgrade, or a repair, and its write.
func testMeanwhile(t *testing.T, w *driftWorld, m *meeting) {
	target := w.target("red")
	target.Chart = chartOf("web", leftChart)
	upgrade := func(values map[string]any) Result {
		t.Helper()
		target.Values = values
		res, err := w.Reconcile(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	meets := func(object string, most int64, others func()) {
		m.with.Store(&encounter{object: object, most: most, others: others})
	}
	met := func() int64 { return m.with.Load().met.Load() }
	wantTold := func(what string, got map[Key][]owned.Edit, kind, field, by string) {
		t.Helper()
		for key, edits := range got {
			for _, e := range edits {
				if key.Kind == kind && e.Path.String() == field && e.By == by {
					return
				}
			}
		}
		t.Errorf("%s: not told of %s: %v", what, field, got)
	}
	annotation := func() string { return (&others{w, configMaps}).get().GetAnnotations()["a.io/x"] }
	replicas := func() int64 {
		n, _, _ := unstructured.NestedInt64((&others{w, deployments}).get().Object, "spec", "replicas")
		return n
	}
	upgrade(map[string]any{"color": "red"})

	edit := func() {
		(&others{w, configMaps}).patch("somebody", types.MergePatchType, `{"metadata":{"annotations":{"a.io/x":"theirs"}}}`)
	}
	meets("/configmaps/web", 1, edit)
	res := upgrade(map[string]any{"color": "green"})
	wantTold("an upgrade", res.Undone, "ConfigMap", `metadata.annotations["a.io/x"]`, "somebody")
	if annotation() != "ours" || met() != 2 {
		t.Errorf("an upgrade that somebody meets leaves %q, after %d tries", annotation(), met())
	}

	meets("/deployments/web", 1, func() {
		(&others{w, deployments}).patch("kube-controller-manager", types.MergePatchType, `{"spec":{"replicas":7}}`, "scale")
	})
	res = upgrade(map[string]any{"color": "blue"})
	if len(res.Undone) > 0 || replicas() != 7 {
		t.Errorf("an autoscaler has scaled meanwhile: %d replicas, told is %v", replicas(), res.Undone)
	}

	status := 0
	meets("/deployments/web", 100, func() {
		status++
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Seen","status":"True","reason":"N%d"}]}}`, status)
		if _, err := w.client.Resource(deployments).Namespace(w.apps).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			t.Error(err)
		}
	})
	upgrade(map[string]any{"color": "white"})
	if met() != mostMeetings+1 {
		t.Errorf("beside a controller that writes the status all the time it took %d tries", met())
	}
	m.with.Store(nil)
	if color, _, _ := unstructured.NestedString((&others{w, deployments}).get().Object, "spec", "template", "metadata", "annotations", "color"); color != "white" {
		t.Errorf("it is %s then", color)
	}

	(&others{w, configMaps}).merge(`{"data":{"color":"black"}}`)
	meets("/configmaps/web", 1, edit)
	out := w.repair()
	wantTold("a repair", out.Edits, "ConfigMap", "data.color", "somebody")
	wantTold("a repair", out.Edits, "ConfigMap", `metadata.annotations["a.io/x"]`, "somebody")
	if (&others{w, configMaps}).color() != "white" || annotation() != "ours" {
		t.Errorf("a repair that somebody meets leaves %q", annotation())
	}

	// Another release has taken it over by then, and another object its name.
	meets("/configmaps/web", 1, func() {
		(&others{w, configMaps}).merge(`{"metadata":{"annotations":{"` + helmName + `":"thief","` + helmNamespace + `":"elsewhere"}}}`)
	})
	target.Values = map[string]any{"color": "black"}
	if _, err := w.Reconcile(t.Context(), target); err == nil || !strings.Contains(err.Error(), "is there already and belongs to the helm release thief") {
		t.Errorf("an object that another release has taken over: %v", err)
	}
}

func TestOthersWriteMeanwhile(t *testing.T) {
	w, f := newSimulatedDrift(t)
	m := &meeting{next: f.server}
	f.server = m
	testMeanwhile(t, w, m)
}
