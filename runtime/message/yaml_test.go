package message

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The line that is named is the one that has to be edited.
func TestYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  b: 1\n c: 2\n":           "line 3: did not find expected key",
		"a:\n   b: 1\n  c: 2\nd: 1\n":   "line 3: did not find expected key",
		"a:\n  - x: 1\n - y: 2\n":       "line 3: did not find expected key",
		"a:\n  - b\n  c: d\n":           "line 3: did not find expected '-' indicator",
		"a: |\n  x\n y\nb: 1\n":         "line 3: did not find expected key",
		"a: b\nc\nd: e\n":               "line 2: could not find expected ':'",
		"a: b\nc\n\n# more\nd: e\n":     "line 2: could not find expected ':'",
		"a:\n  - {x: 1}\n  y\n":         "line 3: could not find expected ':'",
		"a:\n- x: 1\n  y: 2\n   z: 3\n": "line 4: mapping values are not allowed",
		"a: [1, 2\nb: 3\n":              "line 1: did not find expected ',' or ']'",
		"a: 1\nb: \"x\" y\n":            "line 2: did not find expected key",
		"a: \"x\" y\n":                  "did not find expected key",
	} {
		_, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			t.Fatalf("%q is YAML", text)
		}
		got := YAML(err.Error(), []byte(text))
		if !strings.Contains(got, "yaml: "+want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
