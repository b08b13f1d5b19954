package release

import (
	"context"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/chart"
)

// An action that begins to wait says what it holds: manifests as large as those of its chart, as texts and as objects.
func TestAnActionSaysWhatItHolds(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	large := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {large: " + strings.Repeat("x", 100<<10) + "}\n"
	said := []int64{}
	ctx := OnWait(t.Context(), func(_ context.Context, holds int64, _ bool) { said = append(said, holds) })
	for _, text := range []string{large, large + "---\n" + strings.Replace(large, "name: a", "name: b", 1)} {
		of := chartOf("web", text)
		of.Digest = text[len(text)-10:] + text[:len(text)/1000]
		if _, err := w.Reconcile(ctx, Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: of}, Wait: true}); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 2 || said[0] < inMemory*100<<10 || said[1] < 3*said[0] { // an upgrade reads the manifest of before, too
		t.Errorf("said are %v", said)
	}
}
