package tree

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/wording"
)

// Each row of the table is about something that the YAML parser says.
func TestEachRowIsSaid(t *testing.T) {
	said := map[*wording.Row]bool{}
	for _, doc := range []string{"a:\n\tb: 1\n", "a: b: c", "a: b\nc\nd: e\n", "a: 1\na: 2\n", "a: [1, 2\nb: 3\n"} {
		_, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err == nil {
			t.Fatalf("%q is YAML", doc)
		}
		better, found := yamlHints().Find(wording.Mistake{Said: err.Error()})
		if !found || said[better.Row] {
			t.Errorf("%q: no row, or that of another text, is about %v", doc, err)
		}
		said[better.Row] = true
	}
	for _, row := range yamlHints() {
		if !said[row] {
			t.Errorf("nothing says what this row is about; make something say it, or leave it out: %s", row.Text)
		}
	}
}
