package sim

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/modules"
)

// Data that a hook has read from a Secret is hidden wherever people look, also once it stands in
// values and ctx.state: in later runs, after a restart, in enabled(), chart_values() and a
// chart's errors.
func TestWhatWasReadFromSecretsStaysHidden(t *testing.T) {
	w := explainTree(t, map[string]string{
		"values.yaml": "webEnabled: true\nasksEnabled: true\nbrokenEnabled: true\nrefusedEnabled: true\n",
		"global/module.star": `module(grants = [grant("v1", "Secret", verbs = ["get"], namespaces = ["x"])])
`,
		"global/hooks.star": `
def read(ctx):
    values.merge("global", {"login": {"password": base64.decode(k8s.get("v1", "Secret", "t", "x").data["key"])}})
hook(read, on = [startup()])
`,
		"web/module.star": `
module(grants = [grant("v1", "Secret", verbs = ["get"], namespaces = ["x"]), grant("v1", "Event", verbs = ["create"])], http = ["example.com"])
def chart_values(v):
    fail("chart_values: " + v["global"]["login"]["password"])
`,
		"web/Chart.yaml": "name: web\nversion: 0.1.0\n", "web/templates/a.yaml": "",
		"web/hooks/a.star": `
def first(ctx):
    p = reveal(k8s.secret("t", "key", "x"))
    if not ctx.state.get("p"):
        ctx.state.set("p", {"deep": [p]})
    metrics.set("login", 1, labels = {"by": p, "to": "x"})
    k8s.event("v1", "ConfigMap", "c", reason = "Tried", message = "as " + p)
    http.send("POST", "https://example.com/hooks/" + p, body = "x")
hook(first, on = [startup()])
def later(ctx):
    print("values: " + values.get("global.login.password"))
    metrics.set("again", 1, labels = {"by": values.get("global.login.password")})
hook(later, on = [schedule("0 * * * *")])
def remembers(ctx):
    if ctx.state.get("p"):
        print("state: " + ctx.state.get("p")["deep"][0] + ", " + base64.encode("me:" + ctx.state.get("p")["deep"][0]))
    ctx.state.set("p", {"deep": [reveal(k8s.secret("t", "key", "x"))]})
hook(remembers, on = [schedule("0 * * * *")])
`,
		"asks/module.star": `
module()
def enabled():
    print("enabled sees " + values.get("global.login.password", "nothing"))
    return waiting("no login as " + values.get("global.login.password", "nothing"))
`,
		"broken/module.star": "module()\n", "broken/Chart.yaml": "name: broken\nversion: 0.1.0\n",
		"broken/templates/a.yaml":     `{{ fail (printf "chart: %s" .Values.global.login.password) }}`,
		"refused/module.star":         "module(grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"x\"])])\n",
		"refused/openapi/values.yaml": "properties:\n  word: {type: string, x-kubernetes-validations: [{rule: 'self == \"a\"', messageExpression: '\"it is \" + self'}]}\n",
		"refused/hooks/a.star": `
def sets(ctx):
    values.set("word", reveal(k8s.secret("t", "key", "x")))
hook(sets, on = [startup()])
`,
	})
	var said []string
	w.Listen(func(module, hook string, _ builtins.Level, msg string, fields []builtins.Field) {
		said = append(said, fmt.Sprint(module, " ", hook, ": ", msg, fields))
	})
	if err := w.Apply(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "t", "namespace": "x"}, "stringData": map[string]any{"key": "s3cr3t-text"}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		said = nil
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wait(t, 2*time.Hour)
		shown := fmt.Sprintf("%+v", w.Status()) + strings.Join(said, "\n")
		for _, m := range []string{"web", "asks"} {
			shown += strings.Join(explained(t, w, m), "\n")
		}
		for key := range w.Metrics.Values() {
			shown += "\n" + key
		}
		events, err := w.List("v1", "Event", nil, "", "")
		if err != nil || len(events) == 0 {
			t.Fatal(events, err)
		}
		shown += fmt.Sprint(events)
		for _, sent := range w.Sent {
			for _, m := range sent.Messages {
				shown += "\n" + m.Where()
			}
		}
		for _, r := range w.Runs {
			shown += fmt.Sprint("\n", r.Err, r.Committed)
		}
		for _, want := range []string{
			"chart_values: ***", "enabled sees ***", "no login as ***", "chart: ***", "values: ***", "state: ***, ***", "as ***", "POST https://example.com/***", "word: it is ***",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is not in\n%s", want, shown)
			}
		}
		if strings.Contains(shown, "s3cr3t") || strings.Contains(shown, "czNjcjN0") {
			i := strings.Index(shown, "s3cr3t")
			t.Error(shown[max(0, i-300):])
		}
		w.Stop()
	}
}

// A Secret of Starling's namespace with the token of a ServiceAccount gives the rights of that
// account: no hook may ask for one, or read one, whatever grants say, nor may a chart.
func TestTokensOfStarlingsNamespaceAreNotForModules(t *testing.T) {
	const token = `{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "starling"}}}`
	calls := []string{
		`k8s.apply(` + token + `)`, `k8s.create(` + token + `)`, `k8s.apply_set("s", [` + token + `])`, `k8s.get("v1", "Secret", "there")`, `k8s.secret("there", "token")`,
		`k8s.patch("v1", "Secret", "plain", merge = {"type": "kubernetes.io/service-account-token"})`,
		`k8s.patch("v1", "Secret", "plain", strategic = {"metadata": {"annotations": {"kubernetes.io/service-account.name": "starling"}}})`,
		`k8s.patch("v1", "Secret", "plain", json = [{"op": "add", "path": "/metadata/annotations/kubernetes.io~1service-account.name", "value": "starling"}])`,
	}
	files := map[string]string{
		"values.yaml":               "chartEnabled: true\n",
		"thief/module.star":         "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"*\"], namespaces = [\"starling-system\"])])\n",
		"thief/hooks/list.star":     "def f(ctx):\n    print([o.metadata.name for o in k8s.list(\"v1\", \"Secret\", [\"starling-system\"])], ctx.snapshots[\"s\"])\nhook(f, on = [k8s.watch(\"v1\", \"Secret\", name = \"s\", namespaces = [\"starling-system\"], filter = lambda o: o.metadata.name)])\n",
		"chart/module.star":         "module()\n",
		"chart/Chart.yaml":          "name: chart\nversion: 0.1.0\n",
		"chart/templates/token.yml": token,
	}
	for i, call := range calls {
		files[fmt.Sprintf("thief/hooks/a%d.star", i)] = "def f(ctx):\n    " + call + "\nhook(f, on = [startup()], allow_failure = True)\n"
	}
	w := explainTree(t, files)
	var said []string
	w.Listen(func(_, hook string, _ builtins.Level, msg string, _ []builtins.Field) {
		said = append(said, hook+": "+msg)
	})
	if err := w.Apply(map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
		"metadata": map[string]any{"name": "there", "namespace": "starling-system", "annotations": map[string]any{"kubernetes.io/service-account.name": "x"}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := strings.Join(said, "\n") + fmt.Sprintf("%+v", w.Status())
	if n := strings.Count(strings.Join(said, "\n"), "it belongs to Starling itself, and no grant covers that"); n != len(calls) {
		t.Errorf("%d of %d calls are refused:\n%s", n, len(calls), shown)
	}
	if !strings.Contains(shown, `hooks/list.star:f: [] ()`) && !strings.Contains(shown, `hooks/list.star:f: [] []`) {
		t.Errorf("lists or watches show one:\n%s", shown)
	}
	if !strings.Contains(shown, "the chart holds Secret t with the token of a ServiceAccount in Starling's namespace") {
		t.Errorf("the chart may:\n%s", shown)
	}
}

// Objects that another instance keeps are not for hooks, whatever their grants say: they have the label of that one.
func TestObjectsOfAnotherInstanceAreNotForModules(t *testing.T) {
	const lease, secret, records = `"coordination.k8s.io/v1", "Lease", "second", "other"`, `"v1", "Secret", "second-kept-web", "other"`, `"v1", "ConfigMap", "second-releases", "other"`
	calls := []string{
		`k8s.patch(` + lease + `, merge = {"spec": {"holderIdentity": "me"}})`,
		`k8s.patch(` + lease + `, jq = ".spec.holderIdentity = \"me\"")`,
		`k8s.delete(` + lease + `)`,
		`k8s.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "second", "namespace": "other"}, "spec": {"holderIdentity": "me"}})`,
		`k8s.apply_set("s", [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "second-kept-web", "namespace": "other"}}])`,
		`k8s.patch(` + secret + `, json = [{"op": "remove", "path": "/data"}])`,
		`k8s.delete(` + secret + `)`,
		`k8s.patch(` + records + `, merge = {"data": None})`,
	}
	files := map[string]string{"thief/module.star": "module(enabled = True, grants = [grant(v, k, verbs = [\"*\"], namespaces = [\"other\"]) for v, k in [(\"v1\", \"Secret\"), (\"v1\", \"ConfigMap\"), (\"coordination.k8s.io/v1\", \"Lease\")]])\n",
		"fine/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"write\"], namespaces = [\"other\"])])\n",
		"fine/hooks/a.star": "def f(ctx):\n    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"my-webhooks\", \"namespace\": \"other\"}})\nhook(f, on = [startup()])\n"}
	for i, call := range calls {
		files[fmt.Sprintf("thief/hooks/a%d.star", i)] = "def f(ctx):\n    " + call + "\nhook(f, on = [startup()], allow_failure = True)\n"
	}
	w := explainTree(t, files)
	refused := map[string]bool{}
	w.Listen(func(_, hook string, _ builtins.Level, msg string, _ []builtins.Field) {
		if strings.Contains(msg, "it belongs to Starling itself, and no grant covers that") || strings.Contains(msg, "somebody else") {
			refused[hook] = true
		}
	})
	theirs := func(apiVersion, kind, name string, more map[string]any) map[string]any {
		obj := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "other", "labels": map[string]any{"starling.dev/instance": "other.second"}}}
		maps.Copy(obj, more)
		return obj
	}
	all := []map[string]any{
		theirs("coordination.k8s.io/v1", "Lease", "second", map[string]any{"spec": map[string]any{"holderIdentity": "them"}}),
		theirs("v1", "Secret", "second-kept-web", map[string]any{"data": map[string]any{"a": "eA=="}}),
		theirs("v1", "ConfigMap", "second-releases", map[string]any{"data": map[string]any{"a": "x"}}),
	}
	for _, obj := range all {
		if err := w.Apply(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(refused) != len(calls) {
		t.Errorf("%d of %d calls are refused: %v", len(refused), len(calls), refused)
	}
	for _, was := range all {
		meta := was["metadata"].(map[string]any)
		now, err := w.Get(effect.Ref{APIVersion: was["apiVersion"].(string), Kind: was["kind"].(string), Namespace: "other", Name: meta["name"].(string)})
		if err != nil || now == nil || fmt.Sprint(now["spec"], now["data"]) != fmt.Sprint(was["spec"], was["data"]) {
			t.Errorf("%s is %v, %v", meta["name"], now, err)
		}
	}
	if made, err := w.Get(effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "other", Name: "my-webhooks"}); err != nil || made == nil {
		t.Errorf("a Secret of a like name is not made: %v", err)
	}
}

// The config of another instance is not for modules, whatever their grants say. It has no mark: the Module
// objects tell which instances there are.
func TestTheConfigOfAnotherInstanceIsNotForModules(t *testing.T) {
	const it = `"v1", "ConfigMap", "second", "other"`
	object := func(name string) string {
		return `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "` + name + `", "namespace": "other"}, "data": {"webEnabled": "false"}}`
	}
	grants := `[grant("v1", "ConfigMap", verbs = ["*"], namespaces = ["other"]), grant("v1", "Service", verbs = ["list", "watch"])]`
	files := map[string]string{
		"chart/module.star":      "module(enabled = True, installs = [grant(\"v1\", \"ConfigMap\", namespaces = [\"other\"])])\n",
		"chart/Chart.yaml":       "{apiVersion: v2, name: chart, version: 0.1.0}\n",
		"chart/templates/a.yaml": object("second"),
		"thief/module.star":      "module(enabled = True, grants = " + grants + ")\n",
		"fine/module.star":       "module(enabled = True, grants = " + grants + ")\n",
		"fine/hooks/a.star":      "def f(ctx):\n    k8s.apply(" + object("third") + ")\nhook(f, on = [startup()])\n",
		"thief/hooks/parent.star": "def desired(ctx, parent):\n    return [" + object("second") + "]\n" +
			"controller(\"parent\", parent = k8s.watch(\"v1\", \"Service\"), desired = desired, owns = [owns(\"v1\", \"ConfigMap\")])\n",
	}
	calls := []string{
		`k8s.apply(` + object("second") + `)`,
		`k8s.apply(` + object("second") + `, force = False)`,
		`k8s.create(` + object("second") + `)`,
		`k8s.create(` + object("second") + `, if_absent = True)`,
		`k8s.patch(` + it + `, merge = {"data": None})`,
		`k8s.patch(` + it + `, json = [{"op": "remove", "path": "/data"}])`,
		`k8s.patch(` + it + `, jq = ".data = {}")`,
		`k8s.delete(` + it + `)`,
		`k8s.apply_set("s", [` + object("second") + `])`,
	}
	for i, call := range calls {
		files[fmt.Sprintf("thief/hooks/a%d.star", i)] = "def f(ctx):\n    " + call + "\nhook(f, on = [startup()], allow_failure = True)\n"
	}
	w := explainTree(t, files)
	refused := map[string]bool{}
	w.Listen(func(_, hook string, _ builtins.Level, msg string, _ []builtins.Field) {
		if strings.Contains(msg, "another Starling takes its config from it") {
			refused[hook] = true
		}
	})
	if _, err := modules.Define(t.Context(), w.Client()); err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "second", "namespace": "other"}, "data": map[string]any{"webEnabled": "true"}}
	for _, obj := range []map[string]any{
		{"apiVersion": modules.APIVersion, "kind": modules.Kind, "metadata": map[string]any{"name": "web", "labels": map[string]any{effect.InstanceLabel: "other.second"}}},
		{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}},
		config,
	} {
		if err := w.Apply(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(refused) != len(calls)+1 { // and the controller
		t.Errorf("%d of %d calls are refused: %v", len(refused), len(calls)+1, refused)
	}
	for _, m := range w.Status().Modules {
		if m.Name == "chart" && !strings.Contains(m.LastError, "another Starling takes its config from it") {
			t.Errorf("the chart: %s", m.LastError)
		}
	}
	ref := func(name string) effect.Ref {
		return effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: name}
	}
	if now, err := w.Get(ref("second")); err != nil || now == nil || fmt.Sprint(now["data"]) != fmt.Sprint(config["data"]) {
		t.Errorf("it is %v, %v", now, err)
	}
	if made, err := w.Get(ref("third")); err != nil || made == nil {
		t.Errorf("another ConfigMap is not made: %v", err)
	}
}
