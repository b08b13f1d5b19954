package chart

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/tree"
)

const typos = `{{- if .Values.on }}
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  replcias: 2
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {{- include "labels" . | nindent 4 }}
spec:
  # replcias: of nobody
  replcias: {{ .Values.replicas }}
  template:
    spec:
      containers:
        - name: web
          imgae: nginx
        - imgae: busybox
          resources:
            limit: {}
{{- end }}
`

// A field that the API server drops has the line of its template, in the object of its kind.
func TestLineOf(t *testing.T) {
	for _, tt := range []struct {
		kind, path string
		want       int
	}{
		{"Deployment", "spec.replcias", 16},
		{"Service", "spec.replcias", 7},
		{"Deployment", "spec.template.spec.containers[0].imgae", 21},
		{"Deployment", "spec.template.spec.containers[1].resources.limit", 24},
		{"Deployment", "spec.template.replcias", 0}, // it is elsewhere
		{"Deployment", "spec.nothing", 0},
		{"ConfigMap", "spec.replcias", 0},
	} {
		if got := LineOf([]byte(typos), tt.kind, tt.path); got != tt.want {
			t.Errorf("%s %s: line %d, want %d", tt.kind, tt.path, got, tt.want)
		}
	}
	flow := "kind: Deployment\nspec: {template: {spec: {imgae: a}}}\nmore: {a: 1, a: 2}\n"
	if LineOf([]byte(flow), "Deployment", "spec.template.spec.imgae") != 2 || LineOf([]byte(flow+flow), "Deployment", "spec.imgae") != 0 {
		t.Error("in brackets")
	}
	if got := LineOf([]byte("{{ define \"spec\" }}\nreplcias: 2\n{{ end }}\n"), "Deployment", "spec.replcias"); got != 2 {
		t.Errorf("in a definition: line %d, want 2", got)
	}
}

// Warnings name no object: the objects that were rendered do.
func TestUnknownFields(t *testing.T) {
	target := Input{Chart: &tree.Chart{Files: []tree.File{{Path: "templates/web.yaml", Data: []byte(typos)}}}}
	rendered := map[string]string{
		"web/templates/web.yaml":            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {replcias: 2, template: {spec: {containers: [{name: a}, {imgae: b}]}}}\n",
		"web/charts/sub/templates/sub.yaml": "kind: Service\nmetadata: {name: sub}\nspec: {prots: []}\n---\nkind: Service\nmetadata: {name: fine}\nspec: {ports: []}\n",
	}
	got := UnknownFields(target, rendered, []string{
		`unknown field "spec.template.spec.containers[1].imgae"`, `unknown field "spec.replcias"`, `unknown field "spec.prots"`,
		`unknown field "spec.elsewhere"`, "policy/v1beta1 PodSecurityPolicy is deprecated",
	})
	want := strings.Join([]string{
		`unknown field "spec.elsewhere": the API server drops it`,
		"web/charts/sub/templates/sub.yaml: Service sub has no field spec.prots: the API server drops it",
		"web/templates/web.yaml:16: Deployment shop/web has no field spec.replcias: the API server drops it (did you mean replicas?)",
		"web/templates/web.yaml:21: Deployment shop/web has no field spec.template.spec.containers[1].imgae: the API server drops it (did you mean image?)",
	}, "\n")
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
	for i, own := range []bool{false, false, true, true} {
		if OfTheTree(target.Chart, got[i]) != own {
			t.Errorf("of the tree: %q", got[i])
		}
	}
	var many []string
	for i := range 30 {
		many = append(many, `unknown field "spec.`+strings.Repeat("x", i+1)+`"`)
	}
	if got := UnknownFields(target, rendered, many); len(got) != maxUnknown+1 || got[maxUnknown] != "10 more unknown fields" {
		t.Errorf("of many: %d, the last is %q", len(got), got[len(got)-1])
	}
}

// A key with a colon in it is a key that the first line of its value stands beside: the hint says how the line is
// written, and names no other field, however near one is.
func TestFieldAt(t *testing.T) {
	const head, path = "kind: Deployment\nspec:\n  image: a\n", "spec.resources:requests"
	for name, test := range map[string]struct {
		template, rendered string
		line               int
		hint               string
	}{
		"an action":   {head + "  resources:\n    {{- toYaml .Values.r }}\n", head + "  resources:requests:\n  cpu: 1\n", 5, "write {{- toYaml .Values.r | nindent 4 }}"},
		"in a list":   {head + "  - resources:\n      {{- toYaml .Values.r }}\n", head + "  - resources:requests:\n  cpu: 1\n", 5, "write {{- toYaml .Values.r | nindent 6 }}"},
		"by hand":     {head + "  resources:requests: {}\n", head + "  resources:requests: {}\n", 4, "begin a line after resources:"},
		"no template": {"", head + "  resources:requests: {}\n", 0, "begin a line after resources:"},
	} {
		t.Run(name, func(t *testing.T) {
			line, hint := FieldAt([]byte(test.template), "Deployment", test.rendered, path, "resources")
			if line != test.line || hint != test.hint {
				t.Errorf("got %d, %q; want %d, %q", line, hint, test.line, test.hint)
			}
		})
	}
	if line, hint := FieldAt([]byte(head), "Deployment", head, "spec.image", "images"); line != 3 || hint != "did you mean images?" {
		t.Errorf("a near field: %d, %q", line, hint)
	}
}
