package migrate

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// archive is one of testdata: old trees, and what is expected of the new one.
type archive struct {
	old, global fstest.MapFS
	want        map[string]string
	absent      []string
	notes       []string
}

func readArchive(t *testing.T, file string) *archive {
	t.Helper()
	parsed, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{old: fstest.MapFS{}, want: map[string]string{}}
	for _, f := range parsed.Files {
		first, rest, _ := strings.Cut(f.Name, "/")
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o755
		}
		made := &fstest.MapFile{Data: f.Data, Mode: mode}
		switch first {
		case "old":
			a.old[rest] = made
		case "global":
			if a.global == nil {
				a.global = fstest.MapFS{}
			}
			a.global[rest] = made
		case "want":
			a.want[rest] = string(f.Data)
		case "absent":
			a.absent = strings.Fields(string(f.Data))
		case "notes":
			a.notes = strings.Split(strings.TrimSpace(string(f.Data)), "\n")
		}
	}
	return a
}

func TestTrees(t *testing.T) {
	for name, run := range map[string]func(a *archive) (*Result, error){
		"addon": func(a *archive) (*Result, error) {
			return AddonOperator(t.Context(), a.old, a.global, Options{Lambdas: true})
		},
		"shell": func(a *archive) (*Result, error) { return ShellOperator(t.Context(), a.old, "hooks", Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			a := readArchive(t, filepath.Join("testdata", name+".txtar"))
			r, err := run(a)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, f := range r.Files {
				got[f.Path] = string(f.Data)
			}
			for file, lines := range a.want {
				for line := range strings.Lines(lines) {
					if line = strings.TrimSpace(line); !strings.Contains(got[file], line) {
						t.Errorf("%s lacks %q:\n%s", file, line, got[file])
					}
				}
			}
			for _, file := range a.absent {
				if text, is := got[file]; is {
					t.Errorf("%s is there:\n%s", file, text)
				}
			}
			for _, want := range a.notes {
				if !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.HasPrefix(n.String(), want) }) {
					t.Errorf("no note %q in %v", want, r.Notes)
				}
			}
			loads(t, r)
		})
	}
}

// loads makes sure that the new tree is one.
func loads(t *testing.T, r *Result) {
	t.Helper()
	read, err := r.Tree()
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	for _, m := range g.All() {
		for _, refused := range apart(m.Err) {
			t.Error(refused)
		}
	}
}

func TestWhatIsNoTree(t *testing.T) {
	for want, fsys := range map[string]fs.FS{
		"there is no module in the folder": fstest.MapFS{"a.txt": {}},
		"cannot read the modules":          failingFS{},
	} {
		if _, err := AddonOperator(t.Context(), fsys, nil, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := ShellOperator(t.Context(), fstest.MapFS{"a.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}}, "hooks", Options{}); err == nil {
		t.Error("a folder without a config is taken")
	}
	if _, err := ShellOperator(t.Context(), fstest.MapFS{}, "Hooks", Options{}); err == nil || !strings.Contains(err.Error(), `module "Hooks"`) {
		t.Errorf("got %v", err)
	}
}

// A tree with nothing but broken files is one with notes.
func TestBrokenFilesStopNobodyElse(t *testing.T) {
	r, err := AddonOperator(t.Context(), fstest.MapFS{
		"values.yaml":                     {Data: []byte("a: [")},
		"010-web/values.yaml":             {Data: []byte("web: {")},
		"010-web/openapi/values.yaml":     {Data: []byte("type: [")},
		"010-web/hooks/a":                 {Data: []byte("\x7fELF\x00"), Mode: 0o755},
		"010-web/templates/large.yaml":    {Data: make([]byte, tree.MaxFileBytes+1)},
		"010-web/templates/other.yaml":    {Data: []byte("a: 1\n")},
		"020-Bad_Name/templates/all.yaml": {Data: []byte("a: 1\n")},
		"lib/templates/all.yaml":          {Data: []byte("a: 1\n")},
	}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"values.yaml: it is broken", "010-web/values.yaml: it is broken", "010-web/openapi/values.yaml: the schema", "010-web/hooks/a: it is a binary", "010-web/templates/large.yaml: it is no file of at most", "020-Bad_Name: ", "lib: no module may be"} {
		if !slices.ContainsFunc(r.Notes, func(n Note) bool { return n.Fate == Left && strings.HasPrefix(n.String(), want) }) {
			t.Errorf("no note %q in %v", want, r.Notes)
		}
	}
	loads(t, r)
}

// A module waits while anything is missing that its chart may need, and only then.
func TestAnIncompleteModuleWaits(t *testing.T) {
	chart := func(more fstest.MapFS) fstest.MapFS {
		more["web/templates/a.yaml"] = &fstest.MapFile{Data: []byte("a: 1\n")}
		return more
	}
	hook := hookScript("schedule: [{crontab: \"@daily\"}]")
	for name, tt := range map[string]struct {
		modules, global fstest.MapFS
		want            string
	}{
		"complete":        {chart(fstest.MapFS{}), nil, ""},
		"hook":            {chart(fstest.MapFS{"web/hooks/a.sh": hook}), nil, "its hooks"},
		"binary":          {chart(fstest.MapFS{"web/hooks/a": {Data: []byte("\x7fELF"), Mode: 0o755}}), nil, "web/hooks/a"},
		"values":          {chart(fstest.MapFS{"web/values.yaml": {Data: []byte("web: 1")}}), nil, "web/values.yaml"},
		"schema":          {chart(fstest.MapFS{"web/openapi/values.yaml": {Data: []byte("$ref: x")}}), nil, "web/openapi/values.yaml"},
		"global hook":     {chart(fstest.MapFS{}), fstest.MapFS{"a.sh": hook}, "the global hooks"},
		"large":           {chart(fstest.MapFS{"web/x": {Data: make([]byte, tree.MaxFileBytes+1)}}), nil, "web/x"},
		"without a chart": {fstest.MapFS{"web/hooks/a.sh": hook}, nil, ""},
		"reviews":         {fstest.MapFS{"web/hooks/a.sh": hookScript(review)}, nil, "hooks that answer the API server"},
		"refused":         {chart(fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: 1")}}), nil, "web/Chart.yaml"},
	} {
		var global fs.FS
		if tt.global != nil {
			global = tt.global
		}
		r, err := AddonOperator(t.Context(), tt.modules, global, Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Files, func(f tree.File) bool { return f.Path == "web/module.star" })
		text := string(r.Files[i].Data)
		if tt.want == "" && strings.Contains(text, "waiting(") || !strings.Contains(text, tt.want) || tt.want != "" && !strings.Contains(text, "return waiting(\"not yet written: "+tt.want+"\")") {
			t.Errorf("%s: got\n%s\nwant it to wait for %q", name, text, tt.want)
		}
	}
}

const review = `kubernetesValidating: [{rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]`

const conversion1 = `kubernetes: [{name: settings, kind: ConfigMap, group: all}, {kind: Pod, group: all}]
kubernetesCustomResourceConversion:
- {crdName: lamps.example.com, includeSnapshotsFrom: [settings], conversions: [{fromVersion: v1alpha1, toVersion: v1}, {fromVersion: v1, toVersion: v1alpha1}]}`

// hookScript is a hook with this config.
func hookScript(config string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("#!/bin/sh\ncat <<'END'\nconfigVersion: v1\n" + config + "\nEND\n"), Mode: 0o755}
}

// All that Starling refuses is taken out, with a note, and the rest loads.
func TestTheResultLoads(t *testing.T) {
	many := fstest.MapFS{}
	for i := range 12 {
		many[fmt.Sprintf("web/hooks/%d.sh", i)] = hookScript(fmt.Sprintf("schedule: [{crontab: \"@daily\", queue: q%d}]", i))
	}
	good := hookScript("onStartup: 1")
	for name, tt := range map[string]struct {
		modules, global fstest.MapFS
		want            string // a note
		in, text        string // a file of the new tree, and what it holds
	}{
		"rule": {fstest.MapFS{"web/hooks/a.sh": hookScript("kubernetesValidating: [{rules: [{apiGroups: [x]}]}]")}, nil,
			"web/hooks/a.sh: Starling refuses the new file, so it stands there as comments: k8s.validate: rules", "web/hooks/a.star", "# hook("},
		"binding": {fstest.MapFS{"web/hooks/a.sh": hookScript("kubernetes: [{kind: Pod, namespace: {nameSelector: {matchNames: [A_b]}}}]")}, nil,
			"web/hooks/a.sh: Starling refuses", "web/hooks/a.star", "#     fail("},
		"queues": {many, nil, "web/hooks/9.sh: the queue \"q9\" is left out: the hooks of a module have at most 8", "web/hooks/9.star", "\nhook("},
		"conditions": {fstest.MapFS{"web/templates/a.yaml": {Data: []byte("a: 1")}, "db/hooks/a.sh": good, "web/enabled": {Data: []byte("function __main__() {\n  enabled::disable_module_if_cluster_is_not_bootstraped\n  enabled::disable_module_in_kubernetes_versions_less_than 1.19.0\n  enabled::fail_if_values_are_not_set global.discovery.podSubnet\n  if values::array_has global.enabledModules db; then\n    echo true > $MODULE_ENABLED_RESULT\n  else\n    echo false > $MODULE_ENABLED_RESULT\n  fi\n}\nenabled::run $@\n")}}, nil,
			"web/enabled: it is module(requires", "web/module.star", "requires = [\"db\"],\n    values_key = \"web\",  # templates read .Values.web\n    adopt = True,  # takes the release over that addon-operator has installed\n)\n\ndef enabled():\n    if values.get(\"global.clusterIsBootstrapped\") != True:\n        return waiting(\"global.clusterIsBootstrapped is not true\")\n    if values.get(\"global.discovery.podSubnet\") == None:\n        return waiting(\"global.discovery.podSubnet is not set\")\n    return True\n"},
		"conditions of an incomplete module": {fstest.MapFS{"web/templates/a.yaml": {Data: []byte("a: 1")}, "web/hooks/a.sh": good, "web/enabled": {Data: []byte("enabled::disable_module_if_cluster_is_not_bootstraped\necho true > $MODULE_ENABLED_RESULT\n")}}, nil,
			"web/enabled: the script switched the module off while", "web/module.star", "is not true\")\n    # TODO: return True once all that MIGRATION.md lists is written. Until then nothing happens.\n    return waiting(\"not yet written: its hooks\")"},
		"a condition amid others": {fstest.MapFS{"web/hooks/a.sh": good, "web/enabled": {Data: []byte("if true; then\n  enabled::disable_module_if_cluster_is_not_bootstraped\nfi\necho true > $MODULE_ENABLED_RESULT\n")}}, nil,
			"web/enabled: the script decides as it runs", "web/module.star", "return waiting(\"not yet written: web/enabled\")"},
		"no kind": {fstest.MapFS{"web/hooks/a.sh": hookScript("kubernetes: [{name: some}, {kind: Pod}]")}, nil,
			"web/hooks/a.sh: the watch \"some\": its kind is not in the file", "web/hooks/a.star", "k8s.watch(\"v1\", \"Pod\""},
		"objects": {fstest.MapFS{"web/hooks/a.sh": {Data: []byte(string(hookScript("kubernetes: [{kind: Pod, name: pods, jqFilter: .spec}]").Data) + "jq '.[0].snapshots.pods[0].object' $BINDING_CONTEXT_PATH\n"), Mode: 0o755}}, nil,
			"web/hooks/a.sh: rows of the snapshot \"pods\" have .object and .result", "web/hooks/a.star", "keep = \"both\""},
		"constants": {fstest.MapFS{
			"web/hooks/go/go.mod":          {Data: []byte("module example.com/hooks\n")},
			"web/hooks/go/consts/names.go": {Data: []byte("package consts\n\nconst (\n\tName = \"web\"\n\tLong = \"d8-\" + Name\n)\n")},
			"web/hooks/go/run/shared.go":   {Data: []byte("package run\n\nimport . \"example.com/hooks/consts\"\n\nconst queue = \"/modules/\" + Name\n")},
			"web/hooks/go/run/run.go":      {Data: []byte("package run\n\nimport c \"example.com/hooks/consts\"\n\nvar _ = sdk.RegisterFunc(&go_hook.HookConfig{Queue: queue, Kubernetes: []go_hook.KubernetesConfig{{Name: \"a\", ApiVersion: \"v1\", Kind: \"Pod\", NamespaceSelector: &t.NamespaceSelector{NameSelector: &t.NameSelector{MatchNames: []string{fmt.Sprintf(\"%s-x\", c.Long)}}}}}}, run)\n")},
		}, nil, "web/hooks/go/run/run.go: the queue \"/modules/web\"", "web/hooks/go/run/run.star", "namespaces = [\"d8-web-x\"]"},
		"library": {fstest.MapFS{"web/hooks/a.sh": good, "web/hooks/b.go": {Data: []byte("package hooks\n\nvar _ = tls_certificate.RegisterInternalTLSHook(conf())\n")}, "web/hooks/c.go": {Data: []byte("package hooks\n\nvar errNotRegistered = 1\n")}}, nil,
			"web/hooks/b.go: tls_certificate.RegisterInternalTLSHook, a library, registers its hook", "web/hooks/b.star", "namespaces = [\"todo\"]"},
		"conversion with snapshots": {fstest.MapFS{"web/hooks/a.sh": hookScript(conversion1)}, nil,
			"web/hooks/a.sh: the conversion of lamps.example.com reads snapshots", "web/hooks/a.star", `snapshots = ["settings"]`},
		"functions with snapshots": {fstest.MapFS{"web/hooks/a.sh": hookScript(conversion1)}, nil,
			"web/hooks/a.sh: 3 bindings", "web/hooks/a.star", "def convert_v1alpha1_to_v1(obj, snapshots):\n"},
		"conversion with a group": {fstest.MapFS{"web/hooks/a.sh": hookScript(strings.Replace(conversion1, "includeSnapshotsFrom: [settings]", "group: all", 1))}, nil,
			"web/hooks/a.sh: the conversion of lamps.example.com reads snapshots", "web/hooks/a.star", `snapshots = ["settings", "pod"]`},
		"conversion without its watch": {fstest.MapFS{"web/hooks/a.sh": hookScript(strings.Replace(conversion1, "[settings]", "[others]", 1))}, nil,
			"web/hooks/a.sh: the conversion of lamps.example.com reads the snapshot \"others\"", "web/hooks/a.star", "def convert_v1alpha1_to_v1(obj):\n"},
		"global conversion with snapshots": {fstest.MapFS{"web/hooks/a.sh": good}, fstest.MapFS{"a.sh": hookScript(conversion1)},
			"global/a.sh: it answers the API server", "global/hooks/a.star", "\n# hook(\n"},
		"one name": {fstest.MapFS{"web/hooks/a.sh": good, "web/hooks/a.py": good, "web/hooks/a_test.sh": good}, nil,
			"web/hooks/a.sh: its body", "web/hooks/a-3.star", "web/hooks/a_test.sh"},
		"chart": {fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: [")}, "web/templates/a.yaml": {Data: []byte("a: 1")}}, nil,
			"web/Chart.yaml: Starling refuses it:", "web/templates/a.yaml", "a: 1"},
		"two charts": {fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: web")}, "web/chart/Chart.yaml": {Data: []byte("name: web")}, "jobs/hooks/a.sh": good}, nil,
			"web: the module is not brought over: web: two charts", "jobs/hooks/a.star", "startup(order = 1)"},
		"required": {fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: web")}, "web/chart/Chart.yaml": {Data: []byte("name: web")}, "jobs/hooks/a.sh": good, "jobs/enabled": {Data: []byte("if values::array_has global.enabledModules web; then\necho true > $MODULE_ENABLED_RESULT\nelse\necho false > $MODULE_ENABLED_RESULT\nfi\n")}}, nil,
			"jobs/enabled: it is module(requires", "jobs/module.star", "return waiting(\"not yet written: the module web, which it requires\")"},
		"switch": {fstest.MapFS{"web/hooks/a.sh": good, "web-enabled/hooks/a.sh": good}, nil,
			"web-enabled: the module is not brought over", "web/hooks/a.star", "startup"},
		"crd": {fstest.MapFS{"web/hooks/a.sh": good, "web/crds/a.yaml": {Data: []byte("kind: Pod")}}, nil,
			"web/crds/a.yaml: nothing but CustomResourceDefinitions may be in crds/", "web/hooks/a.star", "startup"},
		"values": {fstest.MapFS{"web/hooks/a.sh": good, "values.yaml": {Data: []byte("web: [1]\nglobal: 1\nother: 1")}}, nil,
			"values.yaml: the section web is a list: it stands under items: now", "values.yaml", "web:\n  items: [1]"},
		"list of the module": {fstest.MapFS{"web/templates/a.yaml": {}, "web/values.yaml": {Data: []byte("web:\n- 1\n")}}, nil,
			"web/values.yaml: the section web is a list: it stands under items: now", "web/module.star", `chart["web"] = v["web"].get("items", [])`},
		"list of the tree": {fstest.MapFS{"web/templates/a.yaml": {}, "values.yaml": {Data: []byte("web: [1]\nwebEnabled: 3\n")}}, nil,
			"values.yaml: webEnabled is neither", "web/module.star", `chart["web"] = v["web"].get("items", [])`},
		"deep": {fstest.MapFS{"web/hooks/a.sh": good, "web/templates/" + strings.Repeat("a/", 40) + "b.yaml": {}}, nil,
			"web/templates/a/a/a", "web/hooks/a.star", "startup"},
		"review of all": {fstest.MapFS{"web/hooks/a.sh": good}, fstest.MapFS{"a.sh": hookScript(review)},
			"global/a.sh: it answers the API server", "global/hooks/a.star", "\n# hook(\n"},
		"namespace": {fstest.MapFS{"web/hooks/a.sh": good, "web/.namespace": {Data: []byte("web")}, "web/.env": {}}, nil,
			"web/.namespace: addon-operator does not read it", "web/module.star", "module("},
		"values of the chart": {fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: web")}, "web/values.yaml": {Data: []byte("web: {a: 1}\nredis: {port: 6379, list: [true, null, 1.5]}")}}, nil,
			"web/values.yaml: redis stands beside", "web/module.star", `chart["redis"] = {"list": [True, None, 1.5], "port": 6379}`},
	} {
		t.Run(name, func(t *testing.T) {
			var global fs.FS
			if tt.global != nil {
				global = tt.global
			}
			r, err := AddonOperator(t.Context(), tt.modules, global, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Notes, func(n Note) bool { return strings.HasPrefix(n.String(), tt.want) }) {
				t.Errorf("no note %q in %v", tt.want, r.Notes)
			}
			if i := slices.IndexFunc(r.Files, func(f tree.File) bool { return f.Path == tt.in }); i < 0 || !strings.Contains(string(r.Files[i].Data), tt.text) {
				t.Errorf("%s lacks %q", tt.in, tt.text)
			}
			loads(t, r)
		})
	}
	if _, err := AddonOperator(t.Context(), fstest.MapFS{"web/Chart.yaml": {Data: []byte("name: a")}, "web/chart/Chart.yaml": {Data: []byte("name: a")}}, nil, Options{}); err == nil || !strings.Contains(err.Error(), "no module could be brought over: web: two charts") {
		t.Errorf("got %v", err)
	}
}

// The hooks of shell-operator that docs/hooks.md shows are brought over, but for their bodies.
func TestHooksOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```bash\n(.*?)^```").FindAllStringSubmatch(string(page), -1)
	if len(found) < 10 {
		t.Errorf("there are %d hooks", len(found))
	}
	old, global := fstest.MapFS{"web/templates/a.yaml": {}}, fstest.MapFS{}
	for i, m := range found {
		file := &fstest.MapFile{Data: []byte("#!/bin/bash\n" + m[1]), Mode: 0o755}
		if name := fmt.Sprintf("h%d.sh", i); strings.Contains(m[1], "beforeAll") {
			global[name] = file
		} else {
			old["web/hooks/"+name] = file
		}
	}
	r, err := AddonOperator(t.Context(), old, global, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Notes {
		if n.Fate == Left && !strings.Contains(n.Text, "see TODO in the new file") {
			t.Error(n)
		}
	}
	loads(t, r)
}

// Grants that charts need go to module.star.
func TestAllow(t *testing.T) {
	r, err := AddonOperator(t.Context(), fstest.MapFS{"web/templates/a.yaml": {Data: []byte("a: 1\n")}}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Allow(map[string][]string{"web": {`grant("v1", "Namespace")`, `grant("v1", "Namespace")`}}, map[string][]string{"web": {`grant("v1", "Node")`}})
	i := slices.IndexFunc(r.Files, func(f tree.File) bool { return f.Path == "web/module.star" })
	text := string(r.Files[i].Data)
	if !strings.Contains(text, "installs = [\n        grant(\"v1\", \"Namespace\"),\n    ],\n    lookup = [\n        grant(\"v1\", \"Node\"),\n    ],") {
		t.Errorf("got %s", text)
	}
	loads(t, r)
}

func TestWriteOverwritesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	r := &Result{Files: []tree.File{{Path: "a/b.star", Data: []byte("x = 1\n")}}}
	made, err := Write(dir, r)
	if err != nil || len(made) != 1 || made[0] != filepath.Join(dir, "a", "b.star") {
		t.Errorf("got %v, %v", made, err)
	}
	if _, err := Write(dir, r); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("got %v", err)
	}
}

type failingFS struct{}

func (failingFS) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}
