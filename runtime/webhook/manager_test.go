package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func load(t *testing.T, files map[string]string) *generation.Generation {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, text := range files {
		if module, _, _ := strings.Cut(path, "/"); files[module+"/module.star"] == "" && strings.HasSuffix(path, ".star") {
			fsys[module+"/module.star"] = &fstest.MapFile{Data: []byte("module(" + granted + ")")}
		}
		fsys[path] = &fstest.MapFile{Data: []byte(text)}
	}
	read, err := tree.Read(fsys, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
}

const twoHooks = `
def f(ctx):
    pass

def up(o):
    return o

hook(f, on = [
    k8s.validate("v1", "ConfigMap", failure_policy = "fail", namespaces = ["a"], labels = {"x": "y"}),
    k8s.mutate("apps/v1", resources = ["deployments/scale"], failure_policy = "ignore", name = "Scale it", match_conditions = {"c": "true"}),
])
hook(on = [k8s.convert("lamps.example.com.x", {("v1", "v2"): up, ("v2", "v1"): up})])
`

// granted are the grants that hooks of these tests need.
const granted = `grants = [grant("apps/v1", "Deployment", verbs = ["mutate"]), grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"])]`

// buffer keeps log lines.
type buffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// world is an API server with a manager.
type world struct {
	t       *testing.T
	api     *apitest.Server
	client  *cluster.Client
	gen     *generation.Generation
	manager *Manager
	standby bool           // the manager does not lead
	keeps   bool           // it takes nothing away
	prepare func(*Manager) // may be nil
	log     buffer
	stop    func()
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return newWorldOn(&world{t: t, api: apitest.New(t), gen: load(t, files)})
}

// newWorldOn is another process, which knows nothing of the cluster yet.
func newWorldOn(old *world) *world {
	old.t.Helper()
	w := &world{t: old.t, api: old.api, gen: old.gen}
	var err error
	if w.client, err = cluster.New(cluster.Options{Config: w.api.Config(), Log: zerolog.Nop()}); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// run starts a manager; with a change of its options.
func (w *world) run(change ...func(*Options)) {
	w.t.Helper()
	o := Options{
		Client: w.client, Generation: w.gen, Namespace: "ns", Name: "starling", Instance: "ns.starling",
		Endpoint: Endpoint{Address: "127.0.0.1:0", Reach: Reach{Service: "starling", Port: 443}}, Log: zerolog.Nop(),
		Answer: func(context.Context, string, *builtins.Request) (builtins.Response, error) {
			return builtins.Response{}, nil
		},
		Observe: func(Observation) {},
	}
	for _, c := range change {
		c(&o)
	}
	var err error
	if w.manager, err = New(o); err != nil {
		w.t.Fatal(err)
	}
	if w.prepare != nil {
		w.prepare(w.manager)
	}
	if !w.standby {
		w.manager.Lead(w.t.Context())
		if !w.keeps {
			w.manager.TakeAway()
		}
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.manager.Run(ctx) }()
	w.stop = func() { cancel(); <-done }
	w.t.Cleanup(w.stop)
}

// serve tells the manager that the hooks of a module take requests.
func (w *world) serve(module string, on bool) {
	m := w.gen.Modules[module]
	if on {
		w.manager.Serve(m, m.Hooks, nil)
	} else {
		w.manager.Serve(m, nil, nil)
	}
}

// eventually waits for what the manager does beside the test; the API server tells of
// each request.
func (w *world) eventually(what string, check func() error) {
	w.t.Helper()
	requests := make(chan struct{}, 1)
	w.api.OnRequest(func(*http.Request) {
		select {
		case requests <- struct{}{}:
		default:
		}
	})
	deadline := time.After(2 * time.Minute)
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-requests:
		case <-time.After(20 * time.Millisecond): // what was asked may be answered now
		case <-deadline:
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (w *world) names() (names []string) {
	for _, kind := range []string{kindValidating, kindMutating} {
		for _, n := range w.api.Snapshot(registration, kind, func(o map[string]any) any { return o["metadata"].(map[string]any)["name"] }) {
			names = append(names, n.(string))
		}
	}
	return names
}

func (w *world) hasNames(want ...string) func() error {
	return func() error {
		if got := w.names(); !slices.Equal(got, want) {
			return fmt.Errorf("there are %q, want %q", got, want)
		}
		return nil
	}
}

func putDefinition(w *world, more map[string]any) {
	version := func(name string) any {
		return map[string]any{"name": name, "served": true, "storage": name == "v2", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	}
	spec := map[string]any{"group": "example.com.x", "scope": "Namespaced", "names": map[string]any{"plural": "lamps", "kind": "Lamp"},
		"versions": []any{version("v1"), version("v2")}}
	maps.Copy(spec, more)
	w.api.Put(map[string]any{"apiVersion": definitions, "kind": kindDefinition,
		"metadata": map[string]any{"name": "lamps.example.com.x"}, "spec": spec})
}

const (
	validating = "ns.starling.web.a.f.validate"
)

func TestConfigurationsAreKeptAsTheyShouldBe(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks, "web/module.star": `module(labels = {"heritage": "us"}, ` + granted + `)`})
	putDefinition(w, map[string]any{"conversion": map[string]any{"strategy": "None"}})
	w.run()
	w.serve("web", true)
	scale := objectName("ns.starling", w.gen.Hook("web/hooks/a.star:f"), &w.gen.Hook("web/hooks/a.star:f").Bindings[1])
	w.eventually("registered", w.hasNames(validating, scale))
	own := effect.Instance{Namespace: "ns", Name: "starling"}
	for kind, name := range map[string]string{kindValidating: validating, kindMutating: scale} {
		if !own.Owns(effect.Ref{APIVersion: registration, Kind: kind, Name: name}) {
			t.Errorf("%s %s is not seen as Starling's own", kind, name)
		}
	}
	secret := w.api.Object("v1", "Secret", "ns", "starling-webhooks")
	bundle := secret["data"].(map[string]any)[keyBundle]
	got := w.api.Object(registration, kindValidating, "", validating)
	want := []any{map[string]any{
		"name": "validate.a.f.web.starling.dev", "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None", "timeoutSeconds": int64(10),
		"admissionReviewVersions": []any{"v1"},
		"clientConfig": map[string]any{"caBundle": bundle, "service": map[string]any{
			"name": "starling", "namespace": "ns", "path": "/validate/web/a.f/validate", "port": int64(443)}},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"},
			"operations": []any{"CREATE", "UPDATE"}, "scope": "*"}},
		"objectSelector": map[string]any{"matchLabels": map[string]any{"x": "y"}},
		"namespaceSelector": map[string]any{"matchExpressions": []any{
			map[string]any{"key": "kubernetes.io/metadata.name", "operator": "In", "values": []any{"a"}},
			map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"kube-system", "ns"}},
		}},
	}}
	if diff := cmp.Diff(want, got["webhooks"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	labels := got["metadata"].(map[string]any)["labels"]
	if diff := cmp.Diff(map[string]any{"starling.dev/instance": "ns.starling", "starling.dev/module": "web", "heritage": "us"}, labels); diff != "" {
		t.Error(diff)
	}
	w.eventually("the definition is converted", func() error {
		spec := w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")["spec"].(map[string]any)
		if text := fmt.Sprint(spec); !strings.Contains(text, "strategy:Webhook") || !strings.Contains(text, "path:/convert/web/a.lamps.example.com.x-") {
			return fmt.Errorf("%s", text)
		}
		return nil
	})
	w.stop()

	// Another process that finds all in place writes nothing.
	before := len(writes(w.api))
	w.run()
	w.serve("web", true)
	w.eventually("it has looked", func() error {
		if w.api.Count("watch validatingwebhookconfigurations") < 2 {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	// Mistakes are mended, which shows that it is at work.
	w.api.Remove(registration, kindValidating, "", validating)
	w.eventually("mended", w.hasNames(validating, scale))
	if after := writes(w.api)[before:]; len(after) != 1 {
		t.Errorf("it has written %v", after)
	}
	// A definition that loses its conversion has it again.
	putDefinition(w, map[string]any{"conversion": map[string]any{"strategy": "None"}})
	w.eventually("converted again", func() error {
		if spec := w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")["spec"]; !strings.Contains(fmt.Sprint(spec), "strategy:Webhook") {
			return fmt.Errorf("%v", spec)
		}
		return nil
	})
	// Off: no webhooks, but objects can be read.
	w.serve("web", false)
	w.eventually("removed", w.hasNames())
	if spec := w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x")["spec"]; !strings.Contains(fmt.Sprint(spec), "strategy:Webhook") {
		t.Errorf("the conversion is gone: %v", spec)
	}
}

// writes are the requests that change something.
func writes(api *apitest.Server) (out []string) {
	for _, r := range api.Requests() {
		if verb, _, _ := strings.Cut(r, " "); slices.Contains([]string{"patch", "create", "delete", "update"}, verb) {
			out = append(out, r)
		}
	}
	return out
}

func putStale(w *world, name, module string) {
	w.api.Put(map[string]any{"apiVersion": registration, "kind": kindValidating, "metadata": map[string]any{
		"name": name, "labels": map[string]any{"starling.dev/instance": "ns.starling", "starling.dev/module": module}}})
}

// Objects of modules that are gone go; those of a module that does not load, of a
// folder that holds nothing of a module, and of one that has not been asked stay.
func TestWhatEarlierTreesHaveLeft(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a tree with webhooks":    {"web/hooks/a.star": twoHooks},
		"a tree without webhooks": {"web/hooks/a.star": "def f(ctx):\n    pass\nhook(f, on = [startup])\n"},
	} {
		files["broken/hooks/a.star"] = "hook("
		files["hollow/README.md"] = "nothing"
		w := newWorld(t, files)
		for _, module := range []string{"gone", "broken", "hollow"} {
			putStale(w, module, module)
		}
		w.run()
		w.eventually(name, w.hasNames("broken", "hollow"))
		w.stop()
	}
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
	putStale(w, "before", "web")
	putStale(w, "gone", "gone")
	w.run()
	w.eventually("web was not asked", w.hasNames("before"))
	w.serve("web", false)
	w.eventually("web wants none", w.hasNames())
}

// While another process may have a newer tree, all stays registered that this tree lacks, and goes later. Hooks of
// the tree that are off lose theirs at once.
func TestAnOlderTreeKeepsWhatIsRegistered(t *testing.T) {
	const none = "def f(ctx):\n    pass\nhook(f, on = [startup])\n"
	for name, files := range map[string]map[string]string{
		"a tree with webhooks":    {"web/hooks/a.star": twoHooks},
		"a tree without webhooks": {"web/hooks/a.star": none},
	} {
		w := newWorld(t, files)
		w.keeps = true
		newer := []string{"ns.starling.gone.a.f.validate", "ns.starling.web.b.f.validate"}
		putStale(w, newer[0], "gone")
		putStale(w, newer[1], "web")
		putStale(w, validating, "web") // with another body, as an older tree has it
		w.run()
		w.serve("web", true)
		if files["web/hooks/a.star"] == twoHooks {
			w.eventually(name+" registers", func() error {
				if hooks, _ := w.api.Object(registration, kindValidating, "", validating)["webhooks"].([]any); len(hooks) != 1 {
					return fmt.Errorf("%v", hooks)
				}
				return nil
			})
			w.serve("web", false)
			w.eventually(name+", off", w.hasNames(newer...))
		}
		time.Sleep(50 * time.Millisecond)
		for _, stays := range newer {
			if !slices.Contains(w.names(), stays) {
				t.Errorf("%s: there are %q", name, w.names())
			}
		}
		if text := w.api.Object(registration, kindValidating, "", newer[0]); text["webhooks"] != nil {
			t.Errorf("%s: it has changed: %v", name, text)
		}
		w.manager.TakeAway()
		w.eventually(name+" takes away", w.hasNames())
		w.stop()
	}
}

func TestNobodyIsRegisteredWhoCannotBeReached(t *testing.T) {
	w := newWorld(t, map[string]string{"web/hooks/a.star": twoHooks})
	w.run(func(o *Options) { o.Unreachable = "outside"; o.Log = zerolog.New(&w.log) })
	w.serve("web", true)
	w.eventually("the log says so", func() error {
		if !strings.Contains(w.log.String(), "nothing is registered: outside") {
			return fmt.Errorf("%s", w.log.String())
		}
		return nil
	})
	w.stop()
	if got := writes(w.api); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestNamesAreUniqueAndFit(t *testing.T) {
	for id, want := range map[string]string{
		"hooks/pods.star:check":   "pods.check",
		"hooks/a/b.star:my_check": "a.b.my-check",
		"plain":                   "plain",
	} {
		got := slug(id)
		if got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	seen := map[string]string{}
	for _, id := range []string{
		"hooks/pods.star:check", "pods.check", "hooks/pods.star:Check", "hooks/pods.star:_check", "hooks/a.b.star:c", "hooks/a/b.star:c", "a.b.c", "Ä",
		"hooks/" + strings.Repeat("x", 100) + ".star:f", "hooks/" + strings.Repeat("x", 101) + ".star:f", "....", "hooks/.star:x", "a-", "hooks/a..b.star:c",
	} {
		got := slug(id)
		if other, taken := seen[got]; taken || len(got) > maxSlug || !slugPattern.MatchString(got) {
			t.Errorf("%s: %s (%s)", id, got, other)
		}
		seen[got] = id
	}
}

// Webhooks come and go with generations, also where there were none before.
func TestWebhooksFollowGenerations(t *testing.T) {
	const none = "def f(ctx):\n    pass\nhook(f, on = [startup()])\n"
	const one = "def f(ctx):\n    pass\nhook(f, on = [k8s.validate(\"v1\", \"ConfigMap\", failure_policy = \"fail\")])\n"
	const convert = "def up(o):\n    return o\nhook(on = [k8s.convert(\"lamps.example.com.x\", {(\"v1\", \"v2\"): up, (\"v2\", \"v1\"): up})])\n"
	w := newWorld(t, map[string]string{"web/hooks/a.star": none})
	putDefinition(w, map[string]any{"conversion": map[string]any{"strategy": "None"}})
	putStale(w, "gone", "gone")
	w.run(func(o *Options) { o.Log = zerolog.New(&w.log) })
	w.eventually("what was left is swept", w.hasNames())

	use := func(files map[string]string) {
		w.gen = load(t, files)
		w.manager.Use(w.gen)
	}
	use(map[string]string{"web/hooks/a.star": one, "shop/hooks/a.star": one})
	w.serve("web", true)
	w.serve("shop", true)
	w.eventually("webhooks have come", w.hasNames("ns.starling.shop.a.f.validate", validating))

	use(map[string]string{"web/hooks/a.star": none, "lamps/hooks/a.star": convert})
	w.serve("web", false)
	w.serve("lamps", true)
	w.eventually("they have gone", w.hasNames())
	w.eventually("a conversion has come", func() error {
		if got := w.api.Object(definitions, kindDefinition, "", "lamps.example.com.x"); !strings.Contains(fmt.Sprint(got), "clientConfig") {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
	use(map[string]string{"web/hooks/a.star": none})
	said := func(w *world) func() error {
		return func() error {
			if !strings.Contains(w.log.String(), "nobody converts CustomResourceDefinition lamps.example.com.x any more") {
				return fmt.Errorf("%s", w.log.String())
			}
			return nil
		}
	}
	w.eventually("it is said that it is nobody's now", said(w))
	w.stop()

	// So it is by a process that begins with such a tree, and it answers.
	next := newWorldOn(w)
	next.run(func(o *Options) { o.Log = zerolog.New(&next.log) })
	next.serve("web", false)
	next.eventually("it is said again", said(next))
	next.eventually("it listens", func() error {
		if !strings.Contains(next.log.String(), "answers the API server") {
			return fmt.Errorf("%s", next.log.String())
		}
		return nil
	})
}
