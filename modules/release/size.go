package release

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
)

const (
	// maxRelease is the limit of the API server for the data of one Secret, in
	// bytes; Helm keeps a revision in one.
	maxRelease = 1 << 20
	// surelyFits is a size of the raw text from which no encoding of Helm's
	// (base64 of the files, gzip, base64) grows past maxRelease.
	surelyFits = maxRelease / 2
	// headroom is for what Helm adds while it works: states of hooks, a description.
	headroom = 8 << 10
)

// checkSize says that a release will not fit before Helm writes half of it.
func checkSize(ch *helm.Chart, values map[string]any, rendered map[string]string) error {
	raw := 0
	for _, text := range rendered {
		raw += len(text)
	}
	raw += chartSize(ch)
	if raw <= surelyFits {
		if data, err := json.Marshal(values); err == nil && raw+len(data) <= surelyFits {
			return nil
		}
	}
	var manifest strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		fmt.Fprintf(&manifest, "---\n# Source: %s\n%s\n", name, rendered[name])
	}
	size, err := helm.Size(&helm.Release{Chart: ch, Config: values, Manifest: manifest.String()})
	if err != nil {
		return err
	}
	if size+headroom <= maxRelease {
		return nil
	}
	return fmt.Errorf("the release would take %d KiB of its Secret's 1024 KiB (chart files %d KiB, manifest %d KiB, before packing): "+
		"take files that templates do not use out of the chart, or split it", size>>10, chartSize(ch)>>10, manifest.Len()>>10)
}

// chartSize is the length of the files that Helm stores with a release; it does
// not store subcharts.
func chartSize(ch *helm.Chart) int {
	n := len(ch.Schema)
	for _, f := range slices.Concat(ch.Templates, ch.Files) {
		n += len(f.Data)
	}
	return n
}
