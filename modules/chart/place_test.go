package chart

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A place in a rendered document leads to the line of the template that made it, and to how that is written.
func TestPlaceOf(t *testing.T) {
	const head = "kind: ConfigMap\nmetadata:\n  name: web\n"
	for name, test := range map[string]struct {
		template, rendered string
		line               int
		hint               string
	}{
		"indent":           {head + "  labels:\n    {{ toYaml .Values.labels | indent 4 }}\ndata: {}\n", head + "  labels:\n        a: b\n    c: d\ndata: {}\n", 5, "write {{- toYaml .Values.labels | nindent 4 }}"},
		"beside its key":   {head + "  labels: {{ toYaml .Values.labels }}\ndata: {}\n", head + "  labels: a: b\nc: d\ndata: {}\n", 4, "write labels: {{- toYaml .Values.labels | nindent 4 }}"},
		"of a list":        {"spec:\n  - name: a\n    env:\n{{ toYaml .Values.env | indent 2 }}\n", "spec:\n  - name: a\n    env:\n  - b\n   c: d\n", 4, "write {{- toYaml .Values.env | nindent 6 }}"},
		"text with colons": {head + "data:\n  greeting: {{ .Values.greeting }}\n", head + "data:\n  greeting: hello: world\n", 5, "put it in quotes: {{ .Values.greeting | quote }}"},
		"below an action":  {head + "  labels:\n    {{- toYaml .Values.labels | nindent 4 }}\n annotations: {}\n", head + "  labels:\n    a: b\n annotations: {}\n", 6, "indent the line as those beside it"},
		"below its key":    {head + "data:\n   a: b\n  c: d\n", head + "data:\n   a: b\n  c: d\n", 6, "indent the line as those beside it"},
		"an action below":  {head + "data:\n  a: {{ .Values.a }}\n   b: {{ .Values.b }}\n", head + "data:\n  a: 1\n   b: 2\n", 6, "indent the line as those beside it"},
		"in a loop":        {head + "data:\n  a: {{ .Values.a }}\n{{- range .Values.b }}\n   {{ . }}: c\n{{- end }}\n", head + "data:\n  a: 1\n   b: c\n   d: c\n", 7, "indent the line as those beside it"},
		"no action":        {head + "   labels: {}\n", head + "   labels: {}\n", 4, "indent the line as those beside it"},
		"an open quote":    {head + "data:\n  a: \"b\n  c: [\"d\"]\n  e: f\n", head + "data:\n  a: \"b\n  c: [\"d\"]\n  e: f\n", 6, `the quote " in line 5 has no end`},
		"an item alone":    {head + "data:\n  a: b\n  - c: d\n", head + "data:\n  a: b\n  - c: d\n", 6, "a list item where a key is expected: the key before it is missing"},
		"item of an item":  {"spec:\n- a: b\n  - c: d\n", "spec:\n- a: b\n  - c: d\n", 3, "a list item where a key is expected: the key before it is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := yaml.Unmarshal([]byte(test.rendered), &map[string]any{})
			if err == nil {
				t.Fatal("it is YAML")
			}
			problem, line := Problem(err, test.rendered)
			got := PlaceOf([]byte(test.template), test.rendered, line, problem)
			if got.Line != test.line || !strings.HasPrefix(got.Hint, test.hint) || len(got.Rendered) == 0 {
				t.Errorf("%s: got %d, %q, %q; want %d, %q", problem, got.Line, got.Hint, got.Rendered, test.line, test.hint)
			}
		})
	}
}

// The line of a block that has no end is that of the innermost one.
func TestOpenBlock(t *testing.T) {
	if got := openBlock([]byte("{{ if a }}\n{{- range b }}\n{{ end }}\nc\n")); got != 1 {
		t.Error(got)
	}
	if got := openBlock([]byte("{{ if a }}{{ end }}\n")); got != 0 {
		t.Error(got)
	}
}

// The line of an action that has no }} is that of its beginning; texts in quotes and comments end none.
func TestOpenAction(t *testing.T) {
	for text, line := range map[string]int{
		"a\n{{ if .a\nb: [\"}}\"]\n{{ end }}": 2,
		"a: {{ .b }\nc: {{ .d }}":             1,
		"a: {{ .b":                            1,
		"{{/* {{ a */}}\n{{- /* '\" */ -}}":   0,
		"{{ \"{{\" }}{{ `\n}}` }}{{ '\\'' }}": 0,
		"{{/* a }}":                           1,
		"a: \"{{ .b }}\"\n{{ \"\\\"}}\" }}":   0,
	} {
		if got := openAction(text); got != line {
			t.Errorf("%q: %d, want %d", text, got, line)
		}
	}
}
