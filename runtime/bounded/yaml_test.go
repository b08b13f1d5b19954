package bounded

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// bomb is a text whose last list holds 10^levels values.
func bomb(levels int) string {
	text, last := "l0: &l0 x\n", "l0"
	for i := 1; i <= levels; i++ {
		name := fmt.Sprintf("l%d", i)
		text += fmt.Sprintf("%s: &%s [%s]\n", name, name, strings.Repeat("*"+last+",", 10))
		last = name
	}
	return text
}

func TestCheckYAML(t *testing.T) {
	large, lists := "is too large: with its aliases", "is too large: it holds more than some 100000 values"
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"a map", "a: {b: [1, 2]}\n", ""},
		{"aliases", "a: &a {x: 1}\nb: *a\nc:\n  <<: *a\n  y: 2\n", ""},
		{"no aliases", "a: \"* & *\"\nb: R&D *\n", ""},
		{"no YAML, that is not ours to say", "a: [*b, &", ""},
		{"few levels", bomb(4), ""},
		{"many levels", bomb(6), large},
		{"so many that a number overflows", bomb(60), large},
		{"one text often", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 33) + "]\n", large},
		{"a key often", "? &a " + strings.Repeat("x", 1<<20) + "\n: [" + strings.Repeat("*a,", 33) + "]\n", large},
		{"in the second document", "a: 1\n---\n" + bomb(6), large},
		{"merged", "a: &a {x: 1}\nb:\n  <<: [" + strings.Repeat("*a,", 400_000/2) + "]\n", large},
		{"endless", "a: &a [*a]\n", "is endless"},
		{"deep by aliases", deepAliases(1100), "is too large"}, // all of it is in the outermost list, too
		{"deep", "a: &a 1\nb: *a\nc: " + strings.Repeat("[", 1100) + strings.Repeat("]", 1100), "is nested deeper than 1000 levels"},
		{"broken aliases", "a: &a [*a\n" + strings.Repeat("*a ", 1<<20), "in a form that cannot be checked"},
		{"long", strings.Repeat("#", MaxYAML+1), "is larger than 4 MiB"},
		{"many lists", strings.Repeat("[],", 400_000), lists},
		{"many maps", strings.Repeat("{},", 100_000), lists},
		{"many lines", strings.Repeat("- a: b\n", 140_000), lists},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckYAML([]byte(tt.text))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func deepAliases(levels int) string {
	var b strings.Builder
	b.WriteString("- &l0 x\n")
	for i := range levels {
		fmt.Fprintf(&b, "- &l%d [*l%d]\n", i+1, i)
	}
	return b.String()
}

func TestYAMLDocuments(t *testing.T) {
	docs, err := YAMLDocuments([]byte("a: 1\n---\n\n---\nb: 2\n"))
	if err != nil || len(docs) != 2 {
		t.Errorf("%q, %v", docs, err)
	}
	if _, err := YAMLDocuments([]byte("a: 1\n---\n" + bomb(6))); err == nil || !strings.HasPrefix(err.Error(), "document 2 is too large") {
		t.Error(err)
	}
}

// A text that passes takes no more than it may, in the form that grows most: JSON.
func FuzzCheckYAML(f *testing.F) {
	for _, text := range []string{"a: 1", bomb(3), bomb(7), deepAliases(20), "a: &a [*a]", "? &a x\n: *a", "a: &a {b: 1}\nc: {<<: [*a, *a]}", "--- &a\n- *a", "a: !!binary &a eA==\nb: *a", "&a a: *a"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 || CheckYAML(text) != nil {
			return
		}
		data, err := yaml.YAMLToJSON(text)
		// A byte of text is at most six of JSON, a value at most some tens.
		if limit := 6*maxYAMLBytes + 32*maxYAMLValues; err == nil && len(data) > limit {
			t.Errorf("%d bytes of YAML are %d of JSON", len(text), len(data))
		}
	})
}
