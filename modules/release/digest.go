package release

import (
	"bytes"
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

// digestLength is how much of a sha256 in hex goes into a label: all 64 characters are one too many.
const digestLength = 60

// inputs are the digests by which it is known that nothing has to be rendered.
type inputs struct {
	// Digest covers all that a render depends on, lookups aside: the chart, the values without global ones that the chart
	// does not read, the release's name and namespace, the version of Kubernetes and what a chart has asked of the API
	// server.
	Digest string
	// Former is the digest as it was made when each chart that asks had all that is served among its inputs.
	Former string
	// asks says what that is, with what values may ask for.
	asks facts
}

func inputsOf(t Target, f facts, caps *helm.Capabilities) (inputs, error) {
	values, err := json.Marshal(t.read()) // sorted keys, 1 and 1.0 alike
	if err != nil {
		return inputs{}, fmt.Errorf("the values are not plain data: %w", err)
	}
	labels, err := json.Marshal(t.Labels)
	if err != nil {
		return inputs{}, err
	}
	digest := func(f facts) string {
		h := sha256.New()
		part(h, "starling inputs 1")
		part(h, t.Name)
		part(h, t.Namespace)
		part(h, f.digest)
		part(h, string(values))
		part(h, caps.KubeVersion.Version)
		if f.all || f.has != "" {
			part(h, f.answer(caps))
		}
		if len(t.Labels) > 0 {
			part(h, string(labels))
		}
		return sum(h)
	}
	if capabilitiesWord.Match(values) { // tpl
		f.capabilities, f.all = true, true
	}
	former := f
	former.all = f.capabilities || f.former || bytes.Contains(values, formerWord)
	return inputs{Digest: digest(f), Former: digest(former), asks: f}, nil
}

// read are the values that the chart reads. No global values count as empty ones, which charts were given once.
func (t Target) read() map[string]any {
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

// chartDigest is the digest of the chart's files, whatever their order.
func chartDigest(files []File) string {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range files {
		part(h, f.Path)
		part(h, string(f.Data))
	}
	return sum(h)
}

// manifestDigest covers what a chart rendered to, hooks included, notes not. Files
// that are empty, and white space around the text, do not count.
func manifestDigest(rendered map[string]string) string {
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

// textDigest is fit for a label.
func textDigest(text string) string {
	h := sha256.New()
	part(h, text)
	return sum(h)
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:digestLength] }
