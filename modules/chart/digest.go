package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
)

// DigestLength is how much of a sha256 in hex goes into a label: all 64
// characters are one too many.
const DigestLength = 60

// Inputs are the digests by which it is known that nothing has to be rendered.
type Inputs struct {
	// Digest covers all that a render depends on, lookups aside: the chart, the values without global ones that the chart
	// does not read, the release's name and namespace, the version of Kubernetes and what a chart has asked of the API
	// server.
	Digest string
	// Asks says what that is, with what values may ask for.
	Asks Facts
}

// InputsOf are the digests of an input, whose chart has these facts, for a cluster with these capabilities.
func InputsOf(t Input, f Facts, caps *helm.Capabilities) (Inputs, error) {
	values, err := json.Marshal(t.Read()) // sorted keys, 1 and 1.0 alike
	if err != nil {
		return Inputs{}, fmt.Errorf("the values are not plain data: %w", err)
	}
	labels, err := json.Marshal(t.Labels)
	if err != nil {
		return Inputs{}, err
	}
	if capabilitiesWord.Match(values) { // tpl
		f.Asks, f.All = true, true
	}
	h := sha256.New()
	part(h, "starling inputs 1")
	part(h, t.Name)
	part(h, t.Namespace)
	part(h, f.Digest)
	part(h, string(values))
	part(h, caps.KubeVersion.Version)
	if f.All || f.Has != "" {
		part(h, f.Answer(caps))
	}
	if len(t.Labels) > 0 {
		part(h, string(labels))
	}
	return Inputs{Digest: sum(h), Asks: f}, nil
}

// Read are the values that the chart reads. No global values count as empty ones, which charts were given once.
func (t Input) Read() map[string]any {
	global, isMap := t.Values["global"].(map[string]any)
	if _, given := t.Values["global"]; given && !isMap {
		return t.Values
	}
	if global == nil {
		global = map[string]any{}
	}
	out := map[string]any{}
	maps.Copy(out, t.Values)
	out["global"] = t.Reads.Of(global)
	return out
}

// DigestOf is the digest of the chart's files, whatever their order.
func DigestOf(files []File) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range files {
		part(h, f.Path)
		part(h, string(f.Data))
	}
	return sum(h)
}

// ManifestDigest covers what a chart rendered to, hooks included, notes not. Files
// that are empty, and white space around the text, do not count.
func ManifestDigest(rendered map[string]string) string {
	h := sha256.New()
	part(h, "starling manifest 1")
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if text := strings.TrimSpace(rendered[name]); text != "" {
			part(h, name)
			part(h, text)
		}
	}
	return sum(h)
}

// part adds s so that no other split of the same bytes gives the same digest.
func part(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:", len(s))
	io.WriteString(h, s)
}

// Digest is that of texts, in their order; it is fit for a label.
func Digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		part(h, text)
	}
	return sum(h)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:DigestLength] }
