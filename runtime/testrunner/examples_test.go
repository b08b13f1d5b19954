package testrunner

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// exampleModule is what the tests among the examples are tests of.
const exampleModule = `
def count(ctx):
    nodes = len(ctx.snapshots["nodes"])
    values.set("nodes", nodes)
    metrics.set("nodes_ready", nodes, labels = {"zone": "north"})
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nodes", "namespace": "default"}, "data": {"count": str(nodes)}})

def tick(ctx):
    uses = values.get("uses", "")
    values.set("ticks", 1)
    if uses == "http":
        values.set("zone", http.get("https://api.example.com/zone").body)
    elif uses == "send":
        http.send("POST", "https://api.example.com/tick", json = {})
    elif uses == "env":
        values.set("region", env("REGION"))
    elif uses == "exec":
        values.set("db", k8s.exec("db-0", ["status"], namespace = "default").stdout)
    elif uses == "logs":
        values.set("log", k8s.logs("db-0", namespace = "default"))
    elif uses == "ask":
        values.set("allowed", k8s.ask({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": "ann"}}).allowed)

def owned(ctx):
    if not ctx.request.object.get("metadata.labels.owner"):
        return deny("a Namespace needs the label owner")

def up(o):
    backup = dict(o)
    backup["spec"]["at"] = " ".join(backup["spec"]["at"])
    return backup

def ping(ctx):
    return reply(200, {"pong": ctx.request.query.get("n", "")})

def quota(ctx, space):
    return [part({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "default", "namespace": space.metadata.name}})]

hook(count, name = "count", on = [k8s.watch("v1", "Node", name = "nodes")])
hook(tick, name = "tick", on = [schedule("@hourly")])
hook(owned, name = "owned", on = [k8s.validate("v1", "Namespace", ["CREATE"], failure_policy = "ignore")])
hook(name = "up", on = [k8s.convert("archives.example.com", {("v1alpha1", "v1"): up})])
hook(ping, name = "ping", on = [http.receive("/ping", public = True, methods = ["GET"])])
controller("quota", parent = k8s.watch("v1", "Namespace", labels = "team"), desired = quota, owns = [owns("v1", "ResourceQuota")])
`

// The examples of builtins that no session calls are files: each loads, its tests pass, and its hooks run.
func TestExamplesOfBuiltinsRun(t *testing.T) {
	files, tests, switches := exampleFiles(t)
	read, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	for _, m := range gen.All() {
		if m.Err != nil {
			t.Fatalf("%s: %v", m.Name, m.Err)
		}
	}
	kinds := store.NewBuiltins()
	if err := Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Golden: anyGolden{}, Builtins: kinds}, func(f File) {
		if f.Err != nil {
			t.Errorf("%s: %v", f.Path, f.Err)
		}
		for _, test := range f.Tests {
			tests--
			if test.Err != nil {
				t.Errorf("%s: %s: %v", f.Path, test.Name, test.Err)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if tests > 0 {
		t.Errorf("%d examples have a test that has not run", tests)
	}
	w, err := sim.New(sim.Options{Generation: gen, Builtins: kinds, Log: func(module, hook string, level builtins.Level, msg string, _ []builtins.Field) {
		if level == builtins.LevelError {
			t.Errorf("%s %s: %s", module, hook, msg)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Configure(switches); err != nil {
		t.Fatal(err)
	}
	for _, do := range []func() error{
		func() error { return w.Start(t.Context()) },
		func() error { return w.Advance(t.Context(), 25*time.Hour) },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

// exampleFiles are the examples as files of one tree, a module each, and as tests of one module.
func exampleFiles(t *testing.T) (files fstest.MapFS, tests int, switches map[string]string) {
	t.Helper()
	files, switches = fstest.MapFS{}, map[string]string{}
	put := func(path, text string) { files[path] = &fstest.MapFile{Data: []byte(text)} }
	put("web/module.star", "module(http = [\"api.example.com\"], grants = [grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\", verbs = [\"convert\"]), grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], namespaces = [\"*\"]), grant(\"v1\", \"Pod\", verbs = [\"exec\", \"logs\"], namespaces = [\"*\"]), grant(\"authorization.k8s.io/v1\", \"SubjectAccessReview\", verbs = [\"create\"])])\n")
	put("web/hooks/web.star", exampleModule)
	for _, s := range docs.Documented() {
		text := s.Example
		if text == "" {
			t.Errorf("%s: there is no example", s.Name)
		}
		if strings.HasPrefix(text, ">>> ") || text == "" {
			continue
		}
		name := strings.ToLower(strings.NewReplacer(".", "-", "_", "-").Replace(s.Name))
		module := "example-" + name
		switch {
		case strings.Contains(text, "def test_"):
			tests++
			put("web/hooks/"+strings.ReplaceAll(name, "-", "_")+"_test.star", text)
			continue
		case strings.Contains(text, "before_all(") || strings.Contains(text, "after_all("):
			put("global/hooks/"+name+".star", text)
			continue
		case strings.Contains(text, "module("):
			put(module+"/module.star", text)
		default:
			put(module+"/module.star", "module(grants = [grant(\"v1\", \"Namespace\", verbs = [\"mutate\"]), grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\", verbs = [\"convert\"])])\n")
			put(module+"/hooks/x.star", text)
		}
		put(module+"/files/motd.txt", "hello")
		key := ""
		for i, word := range strings.Split(module, "-") {
			if i > 0 {
				word = strings.ToUpper(word[:1]) + word[1:]
			}
			key += word
		}
		switches[key+"Enabled"] = "true"
	}
	return files, tests, switches
}

// anyGolden has every text as its golden file.
type anyGolden struct{}

func (anyGolden) Compare(string, string, string) error { return nil }
