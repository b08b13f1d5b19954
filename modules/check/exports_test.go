package check

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Reads of another module are held to its exports=.
func TestExportsOfModules(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"auth/module.star":     file("module(enabled = True, namespace = \"auth\", exports = [\"url\", \"issuer\"])\n"),
		"auth/Chart.yaml":      file("apiVersion: v2\nname: auth\nversion: 0.1.0\n"),
		"auth/values.yaml":     file("issuer: {name: main}\n"),
		"web/module.star":      file("module(enabled = True, namespace = \"web\", config = [\"tls\"])\n"),
		"web/Chart.yaml":       file("apiVersion: v2\nname: web\nversion: 0.1.0\n"),
		"web/hooks/a.star":     file("def f(ctx):\n    log.info(values.of(\"auth\", \"url\"))\n    log.info(values.of(\"auth\", \"issuer.name\"))\n    log.info(values.of(\"auth\", \"token\"))\n    log.info(values.of(\"auht\", \"url\"))\n    config.set(\"tls.mode\", 1)\n    config.remove(\"password\")\n\nhook(f, on = [startup()])\n"),
		"web/templates/a.yaml": file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: {{ .Values.global.exports.auth.issuer.name }}\n  b: {{ .Values.global.exports.auth.token }}\n"),
	}
	read, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range run(t, Options{Tree: read}).Findings {
		if strings.Contains(f.Message, "export") || strings.Contains(f.Message, "no module") || strings.Contains(f.Message, "user's config") {
			got = append(got, fmt.Sprintf("%s %s:%d: %s (%s)", f.Severity, f.File, f.Line, f.Message, f.Hint))
		}
	}
	want := []string{
		"error web/hooks/a.star:4: module auth does not export token (add it to module(exports = […]) of auth/module.star)",
		"warning web/hooks/a.star:5: there is no module auht (did you mean auth?)",
		"error web/hooks/a.star:7: hooks of web may not change password in the user's config (add it to module(config = […]) of web/module.star)",
		"warning web/templates/a.yaml:6: .Values.global.exports.auth.token is never there: module auth does not export token ()",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
