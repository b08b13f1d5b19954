package object

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/releaseutil"
)

// Texts come apart as in Helm.
func TestDocumentsAsInHelm(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"---", "\n", " ", "\t", "a: b", "--- # x", "x---", "\r\n", "- c", "# d", "|", "\u00a0", "\v"}
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		text := b.String()
		helm := releaseutil.SplitManifests(text)
		var want []string
		for i := range len(helm) {
			want = append(want, helm[fmt.Sprintf("manifest-%d", i)])
		}
		if got := Documents(text); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, in Helm %q", text, got, want)
		}
	}
}
