package release

import (
	"math/rand/v2"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
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
		chart *Chart
		want  string
	}{
		{"small", chartOf("web", "a: b"), ""},
		{"large and dull", with(chartOf("web", "a: b"), "big.txt", strings.Repeat("a", 4<<20)), ""},
		{"large", with(chartOf("web", "a: b"), "big.txt", random(2<<20)), "of its Secret's 1024 KiB (chart files 2048 KiB, manifest 0 KiB, before packing)"},
		{"large manifest", chartOf("web", "a: "+random(800<<10)), "of its Secret's 1024 KiB (chart files 800 KiB, manifest 800 KiB, before packing)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := renderer().render(t.Context(), Target{Name: "web", Namespace: "apps", Chart: tt.chart}, chartutil.DefaultCapabilities, false)
			if got := errorText(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
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
