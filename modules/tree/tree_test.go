package tree

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// files makes a tree of "path" or "path: content".
func mapFS(list ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range list {
		name, data, _ := strings.Cut(f, ": ")
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

func read(t *testing.T, list ...string) *Tree {
	t.Helper()
	tr, err := Read(mapFS(list...), Options{Name: "addons"})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// A tree that is known is read for its digest alone.
func TestATreeThatIsKnown(t *testing.T) {
	files := fstest.MapFS{"web/module.star": &fstest.MapFile{Data: []byte("module()\n")}}
	first, err := Read(files, Options{})
	if err != nil || len(first.Modules) != 1 {
		t.Fatalf("%v, %v", first, err)
	}
	for known, modules := range map[string]int{first.Digest: 0, "another": 1} {
		again, err := Read(files, Options{Known: known})
		if err != nil || again.Digest != first.Digest || len(again.Modules) != modules {
			t.Errorf("known %s: %d modules, %v", known, len(again.Modules), err)
		}
	}
}

func TestFullModule(t *testing.T) {
	tr := read(t,
		"values.yaml: {global: {domain: a}, ingressNginx: {replicas: 2}, ingressNginxEnabled: true}",
		"README.md: x", ".git/config: x", "_old/module.star: x", "lib/x.star: x",
		"global/module.star: x", "global/cluster.star: x", "global/hooks/more.star: x", "global/lib/x.star: x", "global/cluster_test.star: x",
		"global/openapi/values.yaml: x",
		"020-ingress-nginx/module.star: x",
		"020-ingress-nginx/hooks/nodes.star: x", "020-ingress-nginx/hooks/nodes_test.star: x", "020-ingress-nginx/hooks/deep/a.star: x", "020-ingress-nginx/hooks/lib/b.star: x",
		"020-ingress-nginx/lib/c.star: x",
		"020-ingress-nginx/openapi/values.yaml: schema", "020-ingress-nginx/openapi/config-values.yaml: config",
		"020-ingress-nginx/crds/crd.yaml: crd", "020-ingress-nginx/crds/README.md: x",
		"020-ingress-nginx/crds/doc-ru-crd.yaml: x", "020-ingress-nginx/crds/_part.yaml: x", "020-ingress-nginx/crds/kustomization.yaml: x", "020-ingress-nginx/crds/old/Kustomization.yml: x",
		"020-ingress-nginx/Chart.yaml: {apiVersion: v2, name: nginx, version: 1.2.3}",
		"020-ingress-nginx/values.yaml: {big: 9007199254740993, half: 0.5, list: [1, {a: 2}]}",
		"020-ingress-nginx/templates/_helpers.tpl: x", "020-ingress-nginx/templates/a.yaml: x",
		"020-ingress-nginx/files/conf.txt: x", "020-ingress-nginx/.helmignore: x", "020-ingress-nginx/.hidden: x",
		"020-ingress-nginx/charts/sub/Chart.yaml: x", "020-ingress-nginx/charts/sub/crds/s.yaml: subcrd",
		"020-ingress-nginx/values.schema.json: {}",
	)
	if len(tr.Problems) > 0 || len(tr.Modules) != 1 {
		t.Fatalf("problems %v, modules %v", tr.Problems, tr.Modules)
	}
	m := tr.Modules[0]
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	var chart []string
	for _, f := range m.Chart.Files {
		chart = append(chart, f.Path)
	}
	got := []any{m.Name, *m.Weight, m.Dir, m.Key, m.ModuleFile, m.HookFiles, m.CRDs, string(m.ConfigSchema.Data), m.ValuesSchema.Path, m.Chart.Name + " " + m.Chart.Version, chart, m.Values, m.ValuesFile, m.Chart.ValuesFile}
	want := []any{"ingress-nginx", 20, "020-ingress-nginx", "ingressNginx", "020-ingress-nginx/module.star",
		[]string{"020-ingress-nginx/hooks/deep/a.star", "020-ingress-nginx/hooks/nodes.star"},
		[]File{{Path: "020-ingress-nginx/crds/crd.yaml", Data: []byte("crd")}},
		"config", "020-ingress-nginx/openapi/values.yaml", "nginx 1.2.3",
		[]string{".helmignore", "Chart.yaml", "charts/sub/Chart.yaml", "charts/sub/crds/s.yaml", "files/conf.txt", "templates/_helpers.tpl", "templates/a.yaml", "values.schema.json", "values.yaml"},
		map[string]any{"big": int64(9007199254740993), "half": 0.5, "list": []any{int64(1), map[string]any{"a": int64(2)}}},
		"020-ingress-nginx/values.yaml", "020-ingress-nginx/values.yaml"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"global/cluster.star", "global/hooks/more.star"}, tr.Global.HookFiles); d != "" {
		t.Error(d)
	}
	if tr.Values["ingressNginxEnabled"] != true || tr.ValuesFile != "values.yaml" {
		t.Errorf("values: %v", tr.Values)
	}
	if err := fstest.TestFS(tr.Files, "values.yaml", "020-ingress-nginx/hooks/nodes_test.star"); err != nil {
		t.Error(err)
	}
}

func TestChartForms(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		chart string // name and files; "" for none
		err   string
	}{
		{"hooks only", []string{"web/hooks/a.star", "web/values.yaml: a: 1"}, "", ""},
		{"chart folder", []string{"web/chart/Chart.yaml: name: w", "web/chart/hooks/x.yaml", "web/chart/crds/c.yaml", "web/hooks/a.star"}, "w Chart.yaml hooks/x.yaml", ""},
		{"no Chart.yaml", []string{"web/templates/a.yaml", "web/hooks/a.star"}, "web Chart.yaml templates/a.yaml", ""},
		{"no Chart.yaml in chart folder", []string{"web/chart/templates/a.yaml"}, "web Chart.yaml templates/a.yaml", ""},
		{"two", []string{"web/chart/Chart.yaml: name: w", "web/Chart.yaml: name: w"}, "", "web: two charts"},
		{"a name that is no string", []string{"web/Chart.yaml: name: on"}, "", "web/Chart.yaml: name must be a string, not true or false: put it in quotes"},
		{"no name", []string{"web/Chart.yaml: version: 1"}, "", "web/Chart.yaml: name is missing"},
		{"broken", []string{"web/Chart.yaml: [", "web/module.star"}, "", "web/Chart.yaml:1: "},
		{"values list", []string{"web/Chart.yaml: name: w", "web/values.yaml: [a]"}, "", "web/values.yaml: values must be a map, not a list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := read(t, tt.files...).Modules[0]
			if tt.err != "" {
				if m.Err == nil || !strings.Contains(m.Err.Error(), tt.err) {
					t.Errorf("got %v, want %s", m.Err, tt.err)
				}
				return
			}
			if m.Err != nil {
				t.Fatal(m.Err)
			}
			got := ""
			if m.Chart != nil {
				got = m.Chart.Name
				for _, f := range m.Chart.Files {
					got += " " + f.Path
				}
			}
			if got != tt.chart {
				t.Errorf("got %q, want %q", got, tt.chart)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	tr := read(t,
		"values.yaml: {webb: {}, web: 5, api: {}, apiEnabled: \"true\"}",
		"web/module.star", "api/nodes.star", "api/module.star", "docs/readme.md", "api/openapi/value.yaml",
		"010-db/module.star", "020-db/module.star", "a-b/module.star", "a--b/module.star", "Big/module.star",
		"api-enabled/module.star", "api-paused/module.star", "5-/module.star", "020-global/module.star")
	var got []string
	for _, p := range tr.Problems {
		got = append(got, p.String())
	}
	for _, m := range tr.Modules {
		got = append(got, fmt.Sprintf("%s: %v", m.Name, m.Err))
	}
	want := []string{
		"api/nodes.star: not loaded: the files with hooks are in api/hooks/, what they share in lib/",
		"api/openapi/value.yaml: not used: the schemas are openapi/config-values.yaml and openapi/values.yaml",
		"docs: no module: a module has module.star, hooks/, Chart.yaml or templates/; the folder is ignored",
		`values.yaml: "webb" belongs to no module; did you mean web?`,
		"020-global: 020-global: no module may be named global: that is the folder of the global hooks",
		"5-: 5-: the folder has a weight and no name: call it like 020-web",
		"Big: Big: a module's name is made of a-z, 0-9 and -, with no - at an end: rename the folder",
		"a--b: a--b: a-b has the values key aB too: rename one",
		"a-b: a-b: a--b has the values key aB too: rename one",
		"api: values.yaml: apiEnabled must be true or false, not text; write apiEnabled: true",
		"api-enabled: api-enabled: its values key apiEnabled is the switch of module api: rename one",
		"api-paused: api-paused: its values key apiPaused is a setting of module api: rename one",
		"db: 010-db: 020-db has the name db too: rename one",
		"db: 020-db: 010-db has the name db too: rename one",
		"web: values.yaml: web must be a map, not a number",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReadFails(t *testing.T) {
	deep := strings.Repeat("d/", 40)
	tests := []struct {
		name string
		fsys fs.FS
		o    Options
		want string
	}{
		{"empty", mapFS(), Options{}, "modules folder addons is empty: no module in it"},
		{"a module", mapFS("module.star", "hooks/a.star"), Options{}, "addons is the folder of one module: name the folder that it lies in"},
		{"only odd folders", mapFS("docs/a.md"), Options{}, "modules folder addons is empty: no module in it"},
		{"vanished", os.DirFS(filepath.Join(t.TempDir(), "gone")), Options{}, "cannot read the modules folder addons: no such file or directory"},
		{"values", mapFS("values.yaml: a: b: c", "web/module.star"), Options{}, "modules folder addons: values.yaml"},
		{"values twice", mapFS("values.yaml: a: 1\na: 2", "web/module.star"), Options{}, "modules folder addons: values.yaml:2: key \"a\" already set in map"},
		{"global", mapFS("values.yaml: global: []", "web/module.star"), Options{}, "values.yaml: global must be a map, not a list"},
		{"large values", mapFS("values.yaml: {a: 12345678901234567890}", "web/module.star"), Options{MaxFileBytes: 10}, "values.yaml: the file is larger than 10 bytes"},
		{"modules", mapFS("a/module.star", "b/module.star", "c/module.star"), Options{MaxModules: 2}, "more than 2 files and folders beside each other, at c"},
		{"bytes", mapFS("web/module.star: 0123456789", "web/templates/a: 0"), Options{MaxBytes: 10}, "more than 10 bytes in all files, at web/templates/a"},
		{"depth", mapFS("web/" + deep + "a"), Options{}, "folders lie more than 32 deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Name = "addons"
			_, err := Read(tt.fsys, tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

// A thousand modules have more files together than one may have.
func TestFilesAreCountedPerModule(t *testing.T) {
	files := fstest.MapFS{}
	for i := range 1000 {
		for j := range 11 {
			files[fmt.Sprintf("m%03d/templates/%d.yaml", i, j)] = &fstest.MapFile{Data: []byte("a: 1")}
		}
	}
	tr, err := Read(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Modules) != 1000 {
		t.Errorf("%d modules", len(tr.Modules))
	}
	tr, err = Read(mapFS("web/templates/a", "web/templates/b", "api/module.star"), Options{MaxFiles: 2})
	if err != nil {
		t.Fatal(err)
	}
	api, web := tr.Modules[0], tr.Modules[1]
	if want := "web: the folder has more than 2 files and folders, at web/templates/b"; api.Err != nil || web.Err == nil || !strings.HasPrefix(web.Err.Error(), want) {
		t.Errorf("api: %v, web: %v", api.Err, web.Err)
	}
}

func TestLargeFileIsItsModulesError(t *testing.T) {
	tr, err := Read(mapFS("web/templates/a.yaml: 0123456789", "api/module.star: 0"), Options{MaxFileBytes: 5})
	if err != nil {
		t.Fatal(err)
	}
	if api, web := tr.Modules[0], tr.Modules[1]; api.Err != nil || web.Err == nil || web.Err.Error() != "web/templates/a.yaml: the file is larger than 5 bytes" {
		t.Errorf("api: %v, web: %v", api.Err, web.Err)
	}
}

func TestDigests(t *testing.T) {
	base := []string{"web/templates/a.yaml: 1", "web/hooks/a.star: 1", "api/module.star: 1"}
	a, b := read(t, base...), read(t, base...)
	if a.Digest != b.Digest || len(a.Digest) != 64 {
		t.Errorf("digests of one tree: %s, %s", a.Digest, b.Digest)
	}
	hooks := read(t, base[0], "web/hooks/a.star: 2", base[2])
	if hooks.Digest == a.Digest || hooks.Modules[1].Chart.Digest != a.Modules[1].Chart.Digest {
		t.Error("a changed hook must change the tree's digest and not the chart's")
	}
	if chart := read(t, "web/templates/a.yaml: 2", base[1], base[2]); chart.Modules[1].Chart.Digest == a.Modules[1].Chart.Digest {
		t.Error("a changed template must change the chart's digest")
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// TestConfigMapVolume reads a folder as the kubelet mounts it.
func TestConfigMapVolume(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/..2026_01/web/module.star", "x = 1")
	write(t, dir+"/..2026_01/values.yaml", "webEnabled: true")
	link(t, "..2026_01", dir+"/..data")
	link(t, "..data/web", dir+"/web")
	link(t, "..data/values.yaml", dir+"/values.yaml")
	for name, read := range map[string]func() (*Tree, error){
		"through the links": func() (*Tree, error) { return Read(os.DirFS(dir), Options{}) },
		"resolved":          func() (*Tree, error) { return ReadDir(dir, Options{}) },
	} {
		tr, err := read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(tr.Modules) != 1 || tr.Modules[0].ModuleFile != "web/module.star" || tr.Modules[0].Err != nil || tr.Values["webEnabled"] != true {
			t.Errorf("%s: %+v %v", name, tr.Modules, tr.Values)
		}
	}
}

func TestLinks(t *testing.T) {
	outside := t.TempDir()
	write(t, outside+"/module.star", "x")
	dir := t.TempDir()
	write(t, dir+"/api/module.star", "x")
	link(t, outside, dir+"/out")
	link(t, "nowhere", dir+"/broken")
	link(t, "api", dir+"/same")
	link(t, "..", dir+"/api/templates")
	tr, err := ReadDir(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range tr.Modules {
		got = append(got, fmt.Sprintf("%s: %v", m.Name, m.Err))
	}
	for _, p := range tr.Problems {
		got = append(got, p.String())
	}
	want := []string{
		"api: <nil>", "broken: broken: the link leads nowhere",
		"out: out: cannot follow the link: path escapes from parent; --follow-links follows links that lead out of the folder",
		"same: <nil>",
		"api/templates: the link leads to a folder above it and is ignored",
		"same/templates: the link leads to a folder above it and is ignored",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestUnreadableModuleIsNotRemoved(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	dir := t.TempDir()
	write(t, dir+"/web/module.star", "x")
	if err := os.Chmod(dir+"/web", 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir+"/web", 0o755)
	tr, err := ReadDir(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Modules) != 1 || tr.Modules[0].Err == nil {
		t.Errorf("%+v", tr.Modules)
	}
}

// A folder that is there, but holds nothing of a module yet, is not a module that was
// removed.
func TestHollowFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/web/module.star", "module()")
	write(t, dir+"/020-half-written/notes.txt", "x")
	if err := os.MkdirAll(dir+"/empty", 0o700); err != nil {
		t.Fatal(err)
	}
	tr, err := ReadDir(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(tr.Hollow)
	if diff := cmp.Diff([]string{"empty", "half-written"}, tr.Hollow); diff != "" {
		t.Error(diff)
	}
}
