package check

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/modules/scaffold"
	"github.com/starling-operator/starling/modules/tree"
)

var update = flag.Bool("update", false, "write the golden files")

func read(t *testing.T, file string) *tree.Tree {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for _, f := range archive.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	out, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func run(t testing.TB, o Options) Result {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// All that is wrong with a tree is told at once, with its lines, and what is fine
// beside it is not.
func TestAllFindings(t *testing.T) {
	for _, name := range []string{"broken", "calls", "examples"} {
		allFindings(t, "testdata/"+name)
	}
}

func allFindings(t *testing.T, name string) {
	t.Helper()
	r := run(t, Options{Tree: read(t, name+".txtar")})
	var got bytes.Buffer
	for _, f := range r.Findings {
		got.WriteString(f.Render(nil))
	}
	fmt.Fprintf(&got, "%d errors, %d warnings, %d notes\n", r.Count(Error), r.Count(Warning), r.Count(Note))
	golden := name + ".golden"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("not what %s holds (%v); run: go test ./modules/check -update\n%s", golden, err, got.String())
	}
}

// The examples are what people copy: nothing is wrong with them.
func TestExamplesAreClean(t *testing.T) {
	folders, err := filepath.Glob("../../examples/*/README.md")
	if err != nil || len(folders) < 5 {
		t.Fatal(folders, err)
	}
	for _, readme := range folders {
		dir := filepath.Dir(readme)
		read, err := tree.ReadDir(dir, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range run(t, Options{Tree: read}).Findings {
			if f.Severity != Note {
				t.Errorf("%s: %s", dir, f.Render(nil))
			}
		}
	}
}

func TestScaffoldsAreClean(t *testing.T) {
	root := t.TempDir()
	if _, err := scaffold.Module(root, "web"); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Controller(root, "web-app"); err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{"web", "global"} {
		if _, err := scaffold.Hook(root, module, "count"); err != nil {
			t.Fatal(err)
		}
	}
	read, err := tree.ReadDir(root, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range run(t, Options{Tree: read}).Findings {
		t.Error(f.Render(nil))
	}
}

func TestKinds(t *testing.T) {
	k := newKinds()
	k.add("example.com/v1", "Lamp")
	for name, want := range map[string]struct {
		near string
		sure bool
	}{
		"v1 Pod":                               {"", true},
		"apps/v1 Deployment":                   {"", true},
		"example.com/v1 Lamp":                  {"", true},
		"coordination.k8s.io/v1 Lease":         {"", true},
		"v1 Deployment":                        {"apps/v1 Deployment", true},
		"apps/v1 deployment":                   {"apps/v1 Deployment", true},
		"apps/v1beta1 Deployment":              {"apps/v1 Deployment", true},
		"networking.k8s.io/v1 Ingres":          {"networking.k8s.io/v1 Ingress", true},
		"example.com/v2 Lamp":                  {"example.com/v1 Lamp", true},
		"example.com/v1 Television":            {"", true},
		"monitoring.coreos.com/v1 Rule":        {"", false},
		"v1 PodList":                           {"v1 Pod", true},
		"meta.k8s.io/v1 Status":                {"", false},
		"apiregistration.k8s.io/v1 APIService": {"", true},
	} {
		apiVersion, kind, _ := strings.Cut(name, " ")
		_, near, sure := k.unknown(apiVersion, kind)
		if near != want.near || sure != want.sure {
			t.Errorf("%s: near %q, sure %v; want %+v", name, near, sure, want)
		}
	}
}

// The OpenAPI document of a cluster says which kinds it serves.
func TestOpenAPI(t *testing.T) {
	const dump = `{"definitions": {
		"a": {"x-kubernetes-group-version-kind": [{"group": "cert-manager.io", "version": "v1", "kind": "Certificate"}]},
		"b": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}]},
		"c": {"type": "object"},
		"d": {"x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "DeleteOptions"}, {"group": "apps", "version": "v1", "kind": "DeleteOptions"}]}}}`
	files := fstest.MapFS{"web/hooks/a.star": {Data: []byte(`hook(lambda ctx: None, name = "x", on = [
    k8s.watch("cert-manager.io/v1", "Certificate", name = "a"),
    k8s.watch("cert-manager.io/v1", "Issuer", name = "b"),
    k8s.watch("v1", "Pod", name = "c"),
    k8s.watch("apps/v1", "Deployment", name = "d"),
])
`)}}
	tr, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, Options{Tree: tr, OpenAPI: []byte(dump)})
	if len(r.Findings) != 2 || r.Findings[0].Line != 3 || r.Findings[1].Line != 5 || r.Count(Warning) != 2 {
		t.Errorf("%+v", r.Findings)
	}
	for _, bad := range []string{"", "openapi: v2", "{}", `{"definitions": 1}`, `[]`} {
		if _, err := Run(t.Context(), Options{Tree: tr, OpenAPI: []byte(bad)}); err == nil || !strings.Contains(err.Error(), "kubectl get --raw") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func BenchmarkCheck100Modules(b *testing.B) {
	root := manyModules(b)
	read := readDir(b, root)
	for b.Loop() {
		if r := run(b, Options{Tree: read}); len(r.Findings) > 0 {
			b.Fatal(r.Findings[0].Render(nil))
		}
	}
}

// One hook of one module differs each time, and the cache is that of the check before.
func BenchmarkCheckAgain100Modules(b *testing.B) {
	root := manyModules(b)
	cache := NewCache()
	run(b, Options{Tree: readDir(b, root), Cache: cache})
	file := filepath.Join(root, "module-50", "module.star")
	text, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if err := os.WriteFile(file, fmt.Appendf(nil, "%s\n# %d\n", text, i), 0o644); err != nil {
			b.Fatal(err)
		}
		read := readDir(b, root)
		b.StartTimer()
		if r := run(b, Options{Tree: read, Cache: cache}); len(r.Findings) > 0 {
			b.Fatal(r.Findings[0].Render(nil))
		}
	}
}

func manyModules(b *testing.B) string {
	b.Helper()
	root := b.TempDir()
	for i := range 100 {
		if _, err := scaffold.Module(root, fmt.Sprintf("module-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

func readDir(t testing.TB, dir string) *tree.Tree {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// A schema of the global values need not have the names of the modules that are on.
func TestWhichModulesAreOnIsThere(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	files := fstest.MapFS{
		"global/openapi/config-values.yaml": file("type: object\nproperties:\n  zone: {type: string}\n"),
		"web/Chart.yaml":                    file("apiVersion: v2\nname: web\nversion: 0.1.0\n"),
		"web/module.star":                   file("module(enabled = True, namespace = \"web\")\n\ndef enabled():\n    return \"db\" not in values.get(\"global.enabledModules\", [])\n"),
		"web/templates/a.yaml":              file("{{- if has \"db\" .Values.global.enabledModules }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n{{- end }}\n"),
	}
	read, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range run(t, Options{Tree: read}).Findings {
		t.Errorf("%s: %s", f.Severity, f.Render(nil))
	}
}
