package testrunner

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

func TestMatchesRules(t *testing.T) {
	deployment := store.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Plural: "deployments", Namespaced: true}
	rule := func(group, version, resource, operation string) *builtins.AdmissionBinding {
		return &builtins.AdmissionBinding{Rules: []builtins.AdmissionRule{
			{Groups: []string{group}, Versions: []string{version}, Resources: []string{resource}, Operations: []string{operation}}}}
	}
	kind := func(apiVersion, kind string, operations ...string) *builtins.AdmissionBinding {
		return &builtins.AdmissionBinding{APIVersion: apiVersion, Kind: kind, Operations: operations}
	}
	for _, c := range []struct {
		name    string
		binding *builtins.AdmissionBinding
		sub     string
		want    bool
	}{
		{"its kind", kind("apps/v1", "Deployment", "CREATE", "UPDATE"), "", true},
		{"its kind in another version", kind("apps/v1beta1", "Deployment", "CREATE"), "", true},
		{"another operation", kind("apps/v1", "Deployment", "DELETE"), "", false},
		{"another group", kind("v1", "Deployment", "CREATE"), "", false},
		{"another kind", kind("apps/v1", "DaemonSet", "CREATE"), "", false},
		{"its resource", rule("apps", "v1", "deployments", "CREATE"), "", true},
		{"all", rule("*", "*", "*", "*"), "", true},
		{"another resource", rule("apps", "v1", "daemonsets", "CREATE"), "", false},
		{"a resource in another version", rule("apps", "v1beta1", "deployments", "CREATE"), "", false},
		{"all resources, but no subresources", rule("*", "*", "*", "*"), "scale", false},
		{"all subresources", rule("*", "*", "*/*", "*"), "scale", true},
		{"its subresource", rule("apps", "v1", "deployments/scale", "CREATE"), "scale", true},
		{"this subresource of all", rule("apps", "v1", "*/scale", "CREATE"), "scale", true},
		{"its resource, not its subresource", rule("apps", "v1", "deployments/scale", "CREATE"), "", false},
		{"another subresource", rule("apps", "v1", "deployments/status", "CREATE"), "scale", false},
		{"its kind, not its subresource", kind("apps/v1", "Deployment", "CREATE"), "scale", false},
		{"a resource and all its subresources", rule("apps", "v1", "deployments/*", "CREATE"), "", true},
	} {
		if got := matchesRules(c.binding, deployment, c.sub, "CREATE"); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

func TestSelects(t *testing.T) {
	have := map[string]any{"app": "web"}
	for selector, want := range map[string]bool{"": true, "app=web": true, "app in (db, web)": true, "app!=web": false, "x": false, "(": false} {
		if got := selects(selector, have); got != want {
			t.Errorf("%q: got %v", selector, got)
		}
	}
	if selects("app=web", nil) || !selects("", nil) {
		t.Error("an object without labels")
	}
}

func TestCompareText(t *testing.T) {
	if err := CompareText("a\nb\n", "a\nb\n"); err != nil {
		t.Error(err)
	}
	err := CompareText("a\nc\n", "a\nb\nd\n")
	want := "    line 2: got \"c\", want \"b\"\n    line 3: got \"\", want \"d\"\n    line 4: missing, want \"\"\n"
	if got := Differences(err); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

// runTests runs the tests of a tree, which must pass.
func runTests(t *testing.T, files map[string]string) {
	t.Helper()
	runOrders(t, 0, files)
}

// runOrders runs them in so many other orders, too.
func runOrders(t *testing.T, orders int, files map[string]string) {
	t.Helper()
	runTree(t, orders, files, func(f File) {
		if f.Failed() {
			t.Errorf("%s: %v, %+v", f.Path, f.Err, f.Tests)
		}
	})
}

// runTree runs the tests of a tree, and reports each file.
func runTree(t *testing.T, orders int, files map[string]string, report func(File)) {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	tests := 0
	if err := Run(t.Context(), Options{Tree: read, Generation: gen, Std: stdlib.FS, Explore: orders}, func(f File) {
		tests += len(f.Tests)
		report(f)
	}); err != nil || tests == 0 {
		t.Errorf("%d tests, %v", tests, err)
	}
}

// Of two kinds of one group each has its own conversion.
func TestConversionsOfOneGroup(t *testing.T) {
	crd := func(plural, kind string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + ".example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n" +
			"  names: {kind: " + kind + ", plural: " + plural + "}\n  versions:\n" +
			"  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n" +
			"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	}
	runTests(t, map[string]string{
		"web/module.star":    "module(enabled = True, grants = [grant(\"apiextensions.k8s.io/v1\", \"CustomResourceDefinition\", verbs = [\"convert\"])])\n",
		"web/crds/lamp.yaml": crd("lamps", "Lamp"),
		"web/crds/desk.yaml": crd("desks", "Desk"),
		"web/hooks/a.star": `
def to(by, version):
    def up(o):
        o = dict(o)
        o["apiVersion"] = "example.com/" + version
        o["by"] = by
        return o
    return up

hook(name = "lamps", on = [k8s.convert("lamps.example.com", {("v1", "v2"): to("lamps", "v2"), ("v2", "v1"): to("lamps", "v1")})])
hook(name = "desks", on = [k8s.convert("desks.example.com", {("v1", "v2"): to("desks", "v2"), ("v2", "v1"): to("desks", "v1")})])
`,
		"web/hooks/a_test.star": `
def test_each_its_own(t):
    t.start()
    for kind in ["Lamp", "Desk"]:
        obj = {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", "namespace": "default"}}
        t.expect(t.convert(obj, "v2")["by"]).equals(kind.lower() + "s")
`,
	})
}

// Labels of a metric go as metrics.set takes them, or by keyword.
func TestLabelsOfMetrics(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `
def measure(ctx):
    metrics.set("days", 3, labels = {"name": "a", "zone": "north"})
    metrics.set("labelled", 1, labels = {"labels": "b"})

hook(measure, on = [startup()])
`,
		"web/hooks/a_test.star": `
def test_labels(t):
    t.start()
    t.expect(t.metrics.get("days", labels = {"name": "a", "zone": "north"})).equals(3)
    t.expect(t.metrics.get("days", labels = {"name": "a"}, zone = "north")).equals(3)
    t.expect(t.metrics.get("days", labels = {"name": "b", "zone": "north"})).is_none()
    t.expect(t.metrics.get("labelled", labels = {"labels": "b"})).equals(1)
    t.expect_error(lambda: t.metrics.get("days", labels = {"zone": "south"}, zone = "north"), "labels: zone is given twice")
    t.expect_error(lambda: t.metrics.get("days", labels = {1: "south"}), "labels: key: got int, want string")
`,
	})
}

// The pattern of an expected failure may name the subject, as the text that people see does; one that
// does not match is shown beside that text.
func TestExpectedFailuresNameTheSubject(t *testing.T) {
	files := map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `
def expiry(ctx):
    if ctx.object["bad"]:
        fail("no certificate")

hook(expiry, for_each = "all", on = [k8s.watch("v1", "ConfigMap", name = "all", namespaces = ["shop"],
    filter = lambda o: {"bad": "bad" in o.get("data", {})})])
`,
		"web/hooks/a_test.star": `
load("@std//testing.star", "configmap")

def test_named(t):
    t.cluster.apply(configmap("bad", "shop", data = {"bad": "x"}), configmap("good", "shop"))
    t.expect_failure("expiry", "fails for shop/bad: .*no certificate")
    t.start()
    t.restart()
    t.quiet()

def test_mended(t):
    t.cluster.apply(configmap("bad", "shop", data = {"bad": "x"}))
    t.expect_failure("expiry", "shop/bad.*no certificate")
    t.start()
    t.cluster.apply(configmap("bad", "shop"))
    t.clock.advance("1m")
`,
	}
	runTests(t, files)
	files["web/hooks/a_test.star"] = `
load("@std//testing.star", "configmap")

def test_fails(t):
    t.cluster.apply(configmap("bad", "shop", data = {"bad": "x"}))
    t.expect_failure("expiry", "shop/bid")
    t.start()

def test_failed(t):
    t.cluster.apply(configmap("bad", "shop", data = {"bad": "x"}))
    t.expect_failure("expiry", "shop/bid")
    t.expect_error(t.start, "shop/bad")
    t.cluster.apply(configmap("bad", "shop"))
    t.clock.advance("1m")
`
	const text = `hook web/hooks/a.star:expiry fails for shop/bad: web/hooks/a.star:4:13: no certificate`
	wants := []string{
		text + `; t.expect_failure("expiry") expected "shop/bid", got this`,
		`t.expect_failure: expected "shop/bid" of expiry, got "` + text + `"`,
	}
	runTree(t, 0, files, func(f File) {
		for i, want := range wants {
			if got := f.Tests[i].Err; got == nil || !strings.HasSuffix(got.Error(), want) {
				t.Errorf("got %v, want %s", got, want)
			}
		}
	})
}

// A test makes certificates, by its clock, and the same ones whenever it runs.
func TestCertificatesOfTests(t *testing.T) {
	var keys []string
	for range 2 {
		runTree(t, 2, map[string]string{
			"web/module.star": "module(enabled = True, grants = [grant(\"v1\", \"Secret\", verbs = [\"list\", \"watch\"], namespaces = [\"*\"])])\n",
			"web/hooks/a.star": `
def expiry(ctx):
    metrics.set("days", int((tls.info(base64.decode(ctx.object["crt"])).not_after - ctx.now).hours / 24))

hook(expiry, for_each = "all", on = [k8s.watch("v1", "Secret", name = "all", filter = lambda o: {"crt": o.data["tls.crt"]})])
`,
			"web/hooks/a_test.star": `
load("@std//testing.star", "secret")

def test_expiry(t):
    ca = tls.ca("CA")
    c = tls.cert(ca, dns = ["a.example.com"], days = 20)
    t.expect(tls.verify(c.cert, ca.cert, key = c.key, dns = ["a.example.com"])).is_true()
    t.expect(tls.cert(ca, dns = ["a.example.com"]).cert == c.cert).equals(False)
    t.cluster.apply(secret("a", "shop", type = "kubernetes.io/tls", data = {"tls.crt": c.cert, "tls.key": reveal(c.key)}))
    t.start()
    t.expect(t.metrics.get("days")).equals(20)
    t.clock.advance("480h")
    t.expect(tls.verify(c.cert, ca.cert)).is_true()
    t.clock.advance("1s")
    t.expect(tls.verify(c.cert, ca.cert)).equals(False)
    log.info(tls.info(c.cert).sha256)
`,
		}, func(f File) {
			if f.Failed() {
				t.Fatalf("%v, %+v", f.Err, f.Tests)
			}
			keys = append(keys, f.Tests[0].Log[len(f.Tests[0].Log)-1])
		})
	}
	if keys[0] != keys[1] {
		t.Errorf("certificates are %v", keys)
	}
}

// A review of a subresource asks the hooks that name it, those of the kind not.
func TestReviewsOfSubresources(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `
def says(name, **on):
    def check(ctx):
        r = ctx.request
        return warn("%s: %s %s of %s %s" % (name, r.kind, r.subresource, r.resource_api_version, r.resource))
    hook(check, name = name, on = [k8s.validate(failure_policy = "ignore", **on)])

says("kind", api_version = "v1", kind = "Pod")
says("ephemeral", api_version = "v1", resources = ["pods/ephemeralcontainers"])
says("all", api_version = "v1", resources = ["pods/*"])
says("scale", api_version = "apps/*", resources = ["*/scale", "*"], match_conditions = {"scale": "request.subResource == 'scale'"})
`,
		"web/hooks/a_test.star": `
load("@std//testing.star", "pod")

def scale(name):
    return {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": 2}}

def test_subresources(t):
    t.start()
    web = pod("web", "shop")
    t.expect(sorted(t.admit(web).warnings)).equals(["all: Pod  of v1 pods", "kind: Pod  of v1 pods"])
    t.expect(sorted(t.admit(web, "UPDATE", old = web, subresource = "ephemeralcontainers").warnings)).equals(
        ["all: Pod ephemeralcontainers of v1 pods", "ephemeral: Pod ephemeralcontainers of v1 pods"])
    t.expect(t.admit(web, "UPDATE", old = web, subresource = "status").warnings).equals(["all: Pod status of v1 pods"])
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": "shop"}}
    t.expect(t.admit(eviction, subresource = "pods/eviction").warnings).equals(["all: Eviction eviction of v1 pods"])
    t.expect(t.admit(scale("web"), "UPDATE", subresource = "deployments/scale").warnings).equals(["scale: Scale scale of apps/v1 deployments"])
    t.expect_error(lambda: t.admit(scale("web"), subresource = "desks/scale"), 'subresource: the cluster of the test serves no "desks"')
    t.expect_error(lambda: t.admit(web, subresource = "a/b/c"), 'subresource: "a/b/c" is none; write "status" or, of another kind than that of obj, "pods/eviction"')
`,
	})
}

// The API server takes a Namespace for one that lies in itself.
func TestReviewsOfNamespaces(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `
def check(ctx):
    return deny("reviewed in " + ctx.request.namespace)

hook(check, on = [k8s.validate("v1", "Namespace", namespace_labels = {"team": "a"}, exclude_namespaces = ["spared"], failure_policy = "fail")])
`,
		"web/hooks/a_test.star": `
def review(t, name, **labels):
    return t.admit({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

def test_namespaces(t):
    t.start()
    t.expect(review(t, "x", team = "a").message).equals("reviewed in x")
    t.expect(review(t, "x", team = "b").allowed).is_true()
    t.expect(review(t, "spared", team = "a").allowed).is_true()
    t.expect(review(t, "kube-system", team = "a").allowed).is_true()
`,
	})
}

// The API server asks a webhook with labels about a change that takes them off, too.
func TestReviewsOfLabelsThatGo(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `
hook(lambda ctx: deny("no"), name = "a", on = [k8s.validate("v1", "ConfigMap", ["UPDATE"], labels = "keep=true", failure_policy = "fail")])
`,
		"web/hooks/a_test.star": `
def config(**labels):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "labels": labels}}

def test_labels(t):
    t.start()
    t.expect(t.admit(config(), "UPDATE", old = config(keep = "true")).message).equals("no")
    t.expect(t.admit(config(keep = "true"), "UPDATE", old = config()).message).equals("no")
    t.expect(t.admit(config(), "UPDATE", old = config()).allowed).is_true()
`,
	})
}

// A failure that never comes has a test pass, whatever happens: what cannot be is an error.
func TestFailuresThatNeverCome(t *testing.T) {
	runTests(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/a_test.star": `
def test_verbs_and_kinds(t):
    t.expect_error(lambda: t.cluster.fail_next("remove", "ConfigMap", "internal"), "verb: \"remove\" is none .want get, list")
    t.expect_error(lambda: t.cluster.fail_next("delete", "configmap", "internal"), "kind: \"configmap\" is none .did you mean ConfigMap")
    t.expect_error(lambda: t.cluster.fail_next("delete", "deployments", "internal"), "did you mean Deployment")
    t.cluster.fail_next("write", "*", "internal", times = 0)
    t.cluster.fail_next("delete", "Gadget", "internal", times = 0)
`,
	})
}
