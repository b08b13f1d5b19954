package release

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/chart"
)

func TestSize(t *testing.T) {
	random := func(n int) string {
		r := rand.New(rand.NewPCG(1, 2))
		var b strings.Builder
		for range n {
			b.WriteByte(byte('a' + r.IntN(26)))
		}
		return b.String()
	}
	tests := []struct {
		name  string
		chart *chart.Chart
		want  string
	}{
		{"small", chartOf("web", ""), ""},
		{"large and dull", with(chartOf("web", ""), "big.txt", strings.Repeat("a", 4<<20)), ""},
		{"large", with(chartOf("web", ""), "big.txt", random(2<<20)), "of its Secret's 1024 KiB (chart files 2048 KiB, manifest 0 KiB, before packing)"},
		{"large manifest", chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: "+random(800<<10)+"}"), "of its Secret's 1024 KiB (chart files 800 KiB, manifest 800 KiB, before packing)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := newSimulatedDrift(t)
			target := Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: tt.chart}}
			_, err := w.Reconcile(t.Context(), target)
			if got := errorText(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if last, err := w.Last(t.Context(), "apps", "web"); err != nil || (last == nil) != (tt.want != "") {
				t.Errorf("a revision: %v, %v", last != nil, err)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
