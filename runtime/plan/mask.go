package plan

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/sim"
)

// MaskManifest is the manifest of a release without what Secrets hold: of those that it
// makes, and of those that the world has seen.
func MaskManifest(w *sim.World, r *sim.Release) (string, error) {
	m := newMasker(w, map[string]*sim.Release{"": r})
	docs := strings.Split(strings.TrimLeft(r.Manifest, "\n"), "---\n")
	for i, doc := range docs {
		var obj map[string]any
		if err := yaml.Unmarshal([]byte(doc), &obj); err != nil {
			return "", fmt.Errorf("the manifest of release %s: %w", r.Name, err)
		}
		if obj["kind"] != "Secret" {
			docs[i] = m.Text(doc)
			continue
		}
		for _, field := range []string{"data", "stringData"} {
			data, _ := obj[field].(map[string]any)
			for key := range data {
				data[key] = "***"
			}
		}
		text, err := yaml.Marshal(obj)
		if err != nil {
			return "", err
		}
		source, _, _ := strings.Cut(doc, "\n") // # Source: …
		docs[i] = source + "\n" + string(text)
	}
	return strings.Join(docs, "---\n"), nil
}
