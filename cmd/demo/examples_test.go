package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

const examples = "../../examples/"

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func loadExample(t *testing.T, name string) *generation.Generation {
	t.Helper()
	read, err := tree.ReadDir(examples+name, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} },
	})
	for _, p := range g.Problems {
		t.Error(p.String())
	}
	for _, m := range g.Modules {
		if m.Err != nil {
			t.Errorf("module %s: %v", m.Name, m.Err)
		}
		if !m.Decl.Enabled {
			t.Errorf("module %s is off as it comes; people copy examples to see them work", m.Name)
		}
	}
	if g.Global != nil && g.Global.Err != nil {
		t.Error(g.Global.Err)
	}
	return g
}

func TestExamplesLoad(t *testing.T) {
	folders, err := filepath.Glob(examples + "*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range folders {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(f, "README.md")); err != nil {
				t.Error(err)
			}
			loadExample(t, name)
		})
	}
}

// Pages say of these examples that they have at most 80 lines: module.star and hooks, without tests.
func TestSmallExamples(t *testing.T) {
	seen := 0
	for _, name := range []string{"application", "controllers", "from-go"} {
		read, err := tree.ReadDir(examples+name, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range read.Modules {
			seen++
			lines := 0
			err := filepath.WalkDir(filepath.Join(examples+name, m.Dir), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || filepath.Ext(path) != ".star" || strings.HasSuffix(path, "_test.star") {
					return err
				}
				text, err := os.ReadFile(path)
				lines += bytes.Count(text, []byte("\n"))
				return err
			})
			if err != nil || lines == 0 || lines > 80 {
				t.Errorf("%s/%s has %d lines, want at most 80 (%v)", name, m.Dir, lines, err)
			}
		}
	}
	if seen != 12 {
		t.Errorf("%d modules were counted, want 12", seen)
	}
}

// render returns the objects of a module's chart by kind, with the values that its
// files and these configs and hooks give.
func render(t *testing.T, m *generation.Module, global, config map[string]any, hooks ...values.HookLayer) map[string]*unstructured.Unstructured {
	t.Helper()
	var files []*loader.BufferedFile
	for _, f := range m.Tree.Chart.Files {
		files = append(files, &loader.BufferedFile{Name: f.Path, Data: f.Data})
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	section := values.Section{
		Name: m.Name, Key: m.Key, Config: config, Hooks: hooks,
		Static:       []values.Layer{{Name: "chart values.yaml", Data: m.Tree.Chart.Values}},
		ConfigSchema: schemaOf(t, m, m.Tree.ConfigSchema),
		Schema:       schemaOf(t, m, m.Tree.ValuesSchema),
	}
	composer := values.NewComposer(section)
	problems := composer.CheckConfig(config, nil)
	for _, h := range hooks {
		problems = append(problems, composer.CheckHook(h.Hook, h.Ops)...)
	}
	for _, p := range append(problems, composer.CheckHelm()...) {
		t.Error(p.String())
	}
	chart.Values = nil // the composed values hold them, less what was taken out
	view := values.ModuleView(composer.Compose(), global)
	top, err := chartutil.ToRenderValues(chart, view, chartutil.ReleaseOptions{
		Name: m.Name, Namespace: m.Decl.Namespace, Revision: 1, IsInstall: true,
	}, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := engine.Engine{Strict: true}.Render(chart, top)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*unstructured.Unstructured{}
	for name, text := range texts {
		if strings.HasSuffix(name, ".tpl") {
			continue
		}
		dec := k8syaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := dec.Decode(&u.Object); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			out[u.GetKind()] = u
		}
	}
	return out
}

func schemaOf(t *testing.T, m *generation.Module, f *tree.File) *values.Schema {
	t.Helper()
	if f == nil {
		return nil
	}
	s, err := values.ParseSchema(f.Path, f.Data, func(name string) ([]byte, error) {
		return os.ReadFile(examples + "dependencies/" + m.Tree.Dir + "/openapi/" + name)
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t *testing.T, u *unstructured.Unstructured, path ...string) any {
	t.Helper()
	if u == nil {
		t.Fatal("the chart has no such object")
	}
	v, _, err := unstructured.NestedFieldNoCopy(u.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestQuickstartChart(t *testing.T) {
	g := loadExample(t, "quickstart")
	objects := render(t, g.Modules["hello"], map[string]any{"readyNodes": int64(3), "nodeNames": []any{"a", "b", "c"}},
		map[string]any{"greeting": "Ahoy"})
	if got := at(t, objects["Deployment"], "spec", "replicas"); fmt.Sprint(got) != "3" {
		t.Errorf("replicas %v", got)
	}
	if got := at(t, objects["ConfigMap"], "data", "nodes"); got != "a\nb\nc" {
		t.Errorf("nodes %q", got)
	}
	if got := at(t, objects["ConfigMap"], "data", "greeting"); got != "Ahoy" {
		t.Errorf("greeting %q", got)
	}
}

func TestSysctlChart(t *testing.T) {
	m := loadExample(t, "sysctl-tuner").Modules["sysctl-tuner"]
	objects := render(t, m, nil, map[string]any{
		"sleep":  int64(300),
		"params": map[string]any{"vm.max_map_count": int64(1048576), "net.core.somaxconn": nil, "net.ipv4.tcp_rmem": "4096 131072 6291456"},
	})
	want := "kernel.numa_balancing=0\nnet.ipv4.tcp_rmem=4096 131072 6291456\nvm.max_map_count=1048576\nvm.swappiness=1\n"
	if got := at(t, objects["ConfigMap"], "data", "params"); strings.TrimSpace(got.(string)) != strings.TrimSpace(want) {
		t.Errorf("params:\n%s\nwant:\n%s", got, want)
	}
	script, err := os.ReadFile(examples + "sysctl-tuner/sysctl-tuner/files/tune.sh")
	if err != nil {
		t.Fatal(err)
	}
	if got := at(t, objects["ConfigMap"], "data", "tune.sh"); strings.TrimSpace(got.(string)) != strings.TrimSpace(string(script)) {
		t.Error("the script in the ConfigMap is not files/tune.sh")
	}
	spec := at(t, objects["DaemonSet"], "spec", "template", "spec").(map[string]any)
	if spec["hostNetwork"] != true || spec["hostPID"] != nil {
		t.Errorf("hostNetwork %v, hostPID %v", spec["hostNetwork"], spec["hostPID"])
	}

	schema := schemaOf(t, m, m.Tree.ConfigSchema)
	composer := values.NewComposer(values.Section{Name: m.Name, Key: m.Key, ConfigSchema: schema})
	for name, bad := range map[string]map[string]any{
		"sleep below the bound": {"sleep": int64(1)},
		"sleep as text":         {"sleep": "60"},
		"a path as a name":      {"params": map[string]any{"../../etc/passwd": int64(1)}},
		"a name with a slash":   {"params": map[string]any{"vm/swappiness": int64(1)}},
		"an unknown field":      {"parms": map[string]any{}},
		"a list as a value":     {"params": map[string]any{"vm.swappiness": []any{int64(1)}}},
	} {
		if len(composer.CheckConfig(bad, nil)) == 0 {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestDependenciesCharts(t *testing.T) {
	g := loadExample(t, "dependencies")
	objects := render(t, g.Modules["database"], nil, map[string]any{"port": int64(5433)})
	ports := at(t, objects["Service"], "spec", "ports").([]any)
	if got := ports[0].(map[string]any)["port"]; fmt.Sprint(got) != "5433" {
		t.Errorf("port %v", got)
	}
	service := objects["Service"].Object
	service["metadata"].(map[string]any)["namespace"] = "database"
	ops, _ := runExample(context.Background(), t, g, "app/hooks/database.star:find_database", map[string][]map[string]any{"database": {service}}, nil)
	objects = render(t, g.Modules["app"], nil, nil, values.HookLayer{Hook: "app/hooks/database.star:find_database", Ops: ops.Values})
	containers := at(t, objects["Deployment"], "spec", "template", "spec", "containers").([]any)
	env := containers[0].(map[string]any)["env"].([]any)[0].(map[string]any)
	if env["value"] != "database.database.svc:5433" {
		t.Errorf("address %v", env["value"])
	}
	if _, err := runExample(context.Background(), t, g, "app/hooks/database.star:find_database", nil, nil); err == nil || !strings.Contains(err.Error(), "no Service labelled") {
		t.Errorf("without the Service: %v", err)
	}
}
