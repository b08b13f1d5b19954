package release

import (
	"context"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/chart"
)

// An object that a release holds no more is deleted, also if a process with the older chart, which holds it, has begun a
// revision meanwhile, and nobody wanted that any more before it was made. Once that is made, the object stays.
func TestWhatIsLeftOutlivesAnOlderChart(t *testing.T) {
	cm := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	w, f := newSimulatedDrift(t)
	older := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", cm("a"), cm("b"))}}
	newer := older
	newer.Chart = chartOf("web", cm("a"))
	server := f.server
	reconcile := func(ctx context.Context, target Target, fails bool, want string) {
		t.Helper()
		if _, err := w.Reconcile(ctx, target); (err != nil) != fails {
			t.Fatal(err)
		}
		all, err := w.client.Resource(configMaps).Namespace("apps").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for _, o := range all.Items {
			names += o.GetName()
		}
		if names != want {
			t.Errorf("%q are there, want %q", names, want)
		}
	}
	left := func() {
		t.Helper()
		f.server = answers(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/b") { // as for a process that ends before
				return refusal(r, "not now"), nil
			}
			return server.RoundTrip(r)
		})
		reconcile(t.Context(), newer, true, "ab")
		f.server = server
	}
	overtaken, overtake := Overtakable(t.Context())
	overtake()
	reconcile(t.Context(), older, false, "ab")
	left()
	reconcile(t.Context(), older, false, "ab")
	left()
	reconcile(overtaken, older, true, "ab")
	reconcile(t.Context(), newer, false, "a")
}
