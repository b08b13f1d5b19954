package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// explained is one line a value: who says what, what wins first.
func explained(t *testing.T, w *World, module string) []string {
	t.Helper()
	in, err := w.Explain(module)
	if err != nil {
		t.Fatal(err)
	}
	x := in.Explain()
	out := append([]string{}, x.Notes...)
	for _, e := range x.Values {
		line := e.Path
		for _, s := range e.Chain {
			line += fmt.Sprintf(" | %v %s", s.Value, s.From())
			if s.Removed {
				line += " removes"
			}
			if p := s.Place(); p != "" {
				line += " " + p
			}
			if s.At != nil {
				line += s.At.Format(" 15:04:05")
				if s.Run == 0 {
					line += " no run"
				}
			}
		}
		out = append(out, line)
	}
	return out
}

func explainTree(t *testing.T, files map[string]string) *World {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	return world(t, read, err)
}

func configMap(t *testing.T, w *World, data map[string]any) {
	t.Helper()
	if err := w.Apply(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "starling", "namespace": "starling-system"}, "data": data}); err != nil {
		t.Fatal(err)
	}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExplainNamesLayersLinesAndRuns(t *testing.T) {
	w := explainTree(t, map[string]string{
		"values.yaml":                    "# all\nglobal:\n  domain: x\ningressNginx:\n  size: 2\n",
		"global/cluster.star":            "def f(ctx):\n    values.set(\"global.nodes\", 3)\n    values.set(\"ingressNginxEnabled\", True)\nhook(f, on = [startup()])\n",
		"ingress-nginx/Chart.yaml":       "name: ingress-nginx\nversion: 0.1.0\n",
		"ingress-nginx/templates/a.yaml": "",
		"ingress-nginx/values.yaml":      "size: 1\nglobal:\n  domain: chart\n",
		"ingress-nginx/module.star":      "\nmodule(values_key = \"ingressNginx\")\n",
		"ingress-nginx/openapi/config-values.yaml": "properties:\n  size: {type: integer}\n  mode: {type: string, default: auto}\n" +
			"  port: {type: integer}\n  legacy: {type: string}\n",
		"ingress-nginx/openapi/values.yaml": "x-extend: {schema: config-values.yaml}\nproperties:\n  internal:\n    type: object\n    x-kubernetes-preserve-unknown-fields: true\n" +
			"  global:\n    type: object\n    x-kubernetes-preserve-unknown-fields: true\n",
		"ingress-nginx/hooks/h.star": "def f(ctx):\n    values.default(\"port\", 80)\n    values.merge(\"internal\", {\"a\": 1})\n    values.remove(\"legacy\")\nhook(f, on = [schedule(\"0 * * * *\"), startup()])\n",
	})
	configMap(t, w, map[string]any{"ingressNginx": "\nlegacy: \"yes\"\nsize: 5\n"})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const hook = "hook ingress-nginx/hooks/h.star:f ingress-nginx/hooks/h.star:"
	lines := func(at string) []string {
		return []string{
			"the chart sees these values, those below global aside, below ingressNginx",
			"global.domain | x tree values.yaml values.yaml:3 | chart chart values.yaml ingress-nginx/values.yaml:3",
			"global.nodes | 3 hook global/cluster.star:f global/cluster.star:2 00:00:00",
			"ingressNginxEnabled | true hook global/cluster.star:f global/cluster.star:3 00:00:00 | false module.star ingress-nginx/module.star:2",
			"internal.a | 1 " + hook + "3" + at,
			"legacy | <nil> hook ingress-nginx/hooks/h.star:f removes ingress-nginx/hooks/h.star:4" + at + " | yes config ConfigMap starling-system/starling, ingressNginx, line 2",
			"mode | auto schema default ingress-nginx/openapi/config-values.yaml:3",
			"port | 80 hook default ingress-nginx/hooks/h.star:f ingress-nginx/hooks/h.star:2" + at,
			"size | 5 config ConfigMap starling-system/starling, ingressNginx, line 3 | 2 tree values.yaml values.yaml:5 | 1 chart values.yaml ingress-nginx/values.yaml:1",
		}
	}
	wantLines(t, explained(t, w, "ingress-nginx"), lines(" 00:00:00")...)

	// Another run that asks for the same is who gives it now.
	if err := w.Advance(t.Context(), 3600e9); err != nil {
		t.Fatal(err)
	}
	wantLines(t, explained(t, w, "ingress-nginx"), lines(" 01:00:00")...)
	wantLines(t, explained(t, w, "global"),
		"global.domain | x tree values.yaml values.yaml:3",
		"global.nodes | 3 hook global/cluster.star:f global/cluster.star:2 00:00:00",
		"ingressNginxEnabled | true hook global/cluster.star:f global/cluster.star:3 00:00:00 | false module.star ingress-nginx/module.star:2",
	)
	if _, err := w.Explain("ingres-nginx"); err == nil || err.Error() != `there is no module "ingres-nginx"; did you mean ingress-nginx?` {
		t.Errorf("no such module: %v", err)
	}
	w.Stop()
	if _, err := w.Explain("global"); err == nil {
		t.Error("values without a process")
	}
}

// After a restart the layer of a hook that has not run again is there without its run;
// what it holds of secrets is known all the same.
func TestExplainAfterARestart(t *testing.T) {
	w := explainTree(t, map[string]string{
		"web/module.star":     "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"])])\n",
		"web/hooks/a.star":    "def f(ctx):\n    values.set(\"token\", k8s.secret(\"t\", \"key\"))\n    values.set(\"url\", \"http://me:\" + k8s.secret(\"t\", \"key\"))\n    values.set(\"plain\", 1)\nhook(f, on = [schedule(\"0 * * * *\")])\n",
		"web/hooks/each.star": "def g(ctx):\n    values.set(\"by.\" + ctx.object.metadata.name, 1)\nhook(g, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"maps\", namespaces = [\"x\"], keep = \"object\")], for_each = \"maps\")\n",
	})
	for _, obj := range []map[string]any{
		{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "t", "namespace": "starling-system"}, "stringData": map[string]any{"key": "s3cr3t-text"}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "m", "namespace": "x"}},
	} {
		if err := w.Apply(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(t.Context(), 3600e9); err != nil {
		t.Fatal(err)
	}
	hook := func(value string, line int, at string) string {
		return fmt.Sprintf("%s hook web/hooks/a.star:f web/hooks/a.star:%d %s", value, line, at)
	}
	wantLines(t, explained(t, w, "web"),
		"by.m | 1 hook web/hooks/each.star:g of x/m web/hooks/each.star:2 00:00:00",
		"plain | "+hook("1", 4, "01:00:00"),
		"token | "+hook("***", 2, "01:00:00"),
		"url | "+hook("***", 3, "01:00:00"),
		"webEnabled | true module.star web/module.star:1",
	)
	w.Stop()
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, explained(t, w, "web"),
		"by.m | 1 hook web/hooks/each.star:g of x/m web/hooks/each.star:2 01:00:00",
		"plain | 1 hook web/hooks/a.star:f",
		"token | *** hook web/hooks/a.star:f",
		"url | *** hook web/hooks/a.star:f",
		"webEnabled | true module.star web/module.star:1",
	)
}

// A value of an earlier run stands with the run that has set it.
func TestExplainKeptValues(t *testing.T) {
	w := explainTree(t, map[string]string{
		"web/module.star":  "module(enabled = True)\n",
		"web/hooks/a.star": "def f(ctx):\n    values.set(\"h\" + str(ctx.now.hour), 1)\nhook(f, on = [startup(), schedule(\"0 * * * *\")], values = \"keep\")\n",
	})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Advance(t.Context(), 3600e9); err != nil {
		t.Fatal(err)
	}
	wantLines(t, explained(t, w, "web"),
		"h0 | 1 hook web/hooks/a.star:f web/hooks/a.star:2 00:00:00",
		"h1 | 1 hook web/hooks/a.star:f web/hooks/a.star:2 01:00:00",
		"webEnabled | true module.star web/module.star:1",
	)
}

// A section that is refused leaves the last good one in force, of which no line is known.
func TestExplainARefusedConfig(t *testing.T) {
	w := explainTree(t, map[string]string{
		"web/module.star":                "module(enabled = True)\n",
		"web/openapi/config-values.yaml": "properties:\n  size: {type: integer}\n",
		"web/hooks/a.star":               "def f(ctx):\n    pass\nhook(f, on = [startup()])\n",
	})
	configMap(t, w, map[string]any{"web": "size: 2\n", "webEnabled": "false"})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	configMap(t, w, map[string]any{"web": "\nsize: no\n", "webEnabled": "false"})
	if err := w.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, explained(t, w, "web"),
		"the module is off, its hooks do not run: webEnabled: false in config",
		"size | 2 config ConfigMap starling-system/starling, web",
		"webEnabled | false config ConfigMap starling-system/starling, webEnabled | true module.star web/module.star:1",
	)
}

// The plan asks the same: why a value is another than before.
func TestChangesOfAWorldSayWhy(t *testing.T) {
	w := hooks(t, "def f(ctx):\n    values.set(\"nodes\", len(ctx.snapshots[\"nodes\"]))\nhook(f, on = [k8s.watch(\"v1\", \"Node\", name = \"nodes\")])\n")
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := w.Values("web")
	if err := w.Apply(node("a")); err != nil {
		t.Fatal(err)
	}
	if err := w.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	in, err := w.Explain("web")
	if err != nil {
		t.Fatal(err)
	}
	changes := values.Changes(before, w.Values("web"), in.Explain())
	if len(changes) != 1 || changes[0].Path != "nodes" || changes[0].Old != int64(0) || changes[0].New != int64(1) || changes[0].Why.Place() != "web/hooks/a.star:2" {
		t.Errorf("%+v", changes)
	}
}

// The data of Secrets that a hook watches is in no status and no explanation,
// nor is what a filter says of them; after a restart as well.
func TestSecretsOfAWatchAreHidden(t *testing.T) {
	w := explainTree(t, map[string]string{
		"web/module.star": "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"get\", \"list\", \"watch\"], namespaces = [\"x\"])])\n",
		"web/hooks/a.star": `
def text(ctx):
    return base64.decode(ctx.snapshots["s"][0].data["key"])
def sets(ctx):
    values.set("token", text(ctx))
    values.set("url", "http://me:" + text(ctx))
    values.set("plain", "host")
hook(sets, on = [k8s.watch("v1", "Secret", name = "s", namespaces = ["x"])])
def fails(ctx):
    fail("no login with " + text(ctx), permanent = True)
hook(fails, on = [k8s.watch("v1", "Secret", name = "s", namespaces = ["x"])])
def unfiltered(ctx):
    pass
hook(unfiltered, on = [k8s.watch("v1", "Secret", name = "s", namespaces = ["x"], filter = lambda o: {}[base64.decode(o.data["key"])])])
`,
	})
	if err := w.Apply(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "t", "namespace": "x"}, "stringData": map[string]any{"key": "s3cr3t-text"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		shown := fmt.Sprintf("%+v", w.Status()) + strings.Join(explained(t, w, "web"), "\n")
		for _, want := range []string{"no login with ***", `key "***" not in dict`, "token | ***", "url | ***", "plain | host"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is not in\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "s3cr3t") {
			t.Error(shown)
		}
		w.Stop()
	}
}
