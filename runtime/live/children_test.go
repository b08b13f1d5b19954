package live

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// Complaints of people who write controllers elsewhere, as far as hooks with for_each answer them.

func (f *fixture) is(target store.Target) bool {
	_, err := f.store.Get(target)
	return err == nil
}

const tenants = `
def tenant(ctx):
    o = ctx.object
    labels = {"part": "true"}
    k8s.apply_set("parts", [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits", "namespace": o.metadata.name, "labels": labels}},
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "of-" + ctx.key, "labels": labels}, "value": 7},
    ], owner = o)

hook(tenant, for_each = "tenants", on = [
    k8s.watch("v1", "Namespace", name = "tenants", labels = "tenant"),
    k8s.watch("v1", "ConfigMap", labels = "part", filter = ["data"]),
    k8s.watch("scheduling.k8s.io/v1", "PriorityClass", labels = "part", filter = ["value"]),
])
`

// Children of cluster-scoped parents, in namespaces and in none, wake their parent: a deleted one is
// back, also when it went while no process ran.
func TestChildrenOfClusterScopedParents(t *testing.T) {
	files := map[string]string{
		"web/module.star": `module(enabled = True, grants = [
    grant("v1", "ConfigMap", ["*"], namespaces = ["*"]),
    grant("scheduling.k8s.io/v1", "PriorityClass", ["*"], namespaces = ["*"]),
])
`,
		"web/hooks/a.star": tenants,
	}
	limits := func(name string) store.Target {
		return store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: name, Name: "limits"}
	}
	class := func(name string) store.Target {
		return store.Target{GVR: schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}, Name: "of-" + name}
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, files)
		const n = 30
		for i := range n {
			f.put(map[string]any{"apiVersion": "v1", "kind": "Namespace",
				"metadata": map[string]any{"name": fmt.Sprint("t", i), "labels": map[string]any{"tenant": "true"}}})
		}
		gone := func(child store.Target) {
			t.Helper()
			before := f.siteRuns()
			if _, err := f.store.Delete(child, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			// One for the deletion, and one for the child that is back.
			if runs := f.siteRuns() - before; runs != 2 || !f.is(child) {
				t.Errorf("%s: %d runs, it is there: %t", child.Name, runs, f.is(child))
			}
		}
		f.start()
		f.waitReady()
		gone(limits("t3"))
		gone(class("t4"))
		f.stop()
		<-f.ended
		for _, child := range []store.Target{limits("t5"), class("t6")} {
			if _, err := f.store.Delete(child, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f.driver = f.newDriver(files)
		f.start()
		f.waitReady()
		if f.siteRuns(); !f.is(limits("t5")) || !f.is(class("t6")) {
			t.Error("children that went while no process ran are not back")
		}
		gone(limits("t7"))
		f.stop()
		<-f.ended
	})
}

const workloads = `
def app(ctx):
    name, labels = ctx.object.metadata.name, {"app": ctx.object.metadata.name}
    meta = {"name": name, "namespace": "sites", "labels": labels}
    pod = {"containers": [{"name": "web", "image": "web", "livenessProbe": {"httpGet": {"port": 80}}}]}
    k8s.apply_set("parts", [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": labels, "ports": [{"port": 80}]}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }},
    ], owner = ctx.object)

hook(app, for_each = "apps", on = [
    k8s.watch("v1", "ConfigMap", name = "apps", labels = "site"),
    k8s.watch("v1", "Service"),
    k8s.watch("apps/v1", "Deployment"),
])
`

// Fields that the API server fills in, and a status that others write, are no reason to write: there
// is no loop, and nothing happens at rest.
func TestChildrenWithDefaultsComeToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star": `module(enabled = True, grants = [
    grant("v1", "Service", ["*"], namespaces = ["sites"]),
    grant("apps/v1", "Deployment", ["*"], namespaces = ["sites"]),
])
`,
			"web/hooks/a.star": workloads,
		}, renewsSeldom)
		var writes atomic.Int64
		f.answered = func(r *http.Request, _ *http.Response) {
			if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "leases") {
				writes.Add(1)
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			f.make(name, "site", nil)
		}
		f.start()
		f.waitReady()
		before, wrote := f.siteRuns(), writes.Load()
		time.Sleep(6 * time.Hour)
		if runs := f.siteRuns() - before; runs != 0 || writes.Load() != wrote {
			t.Errorf("%d runs and %d writes at rest", runs, writes.Load()-wrote)
		}
		deployment := store.Target{GVR: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "sites", Name: "b"}
		for i := range 3 {
			f.patchTarget(deployment, fmt.Sprintf(`{"metadata": {"annotations": {"seen": "%d"}}}`, i))
			time.Sleep(time.Second)
		}
		if runs := f.siteRuns() - before; runs != 3 || writes.Load() != wrote {
			t.Errorf("%d runs and %d writes for three changes by others, of fields that the hook does not set", runs, writes.Load()-wrote)
		}
		// A parent that is new among them has its run at once.
		f.make("new", "site", nil)
		time.Sleep(time.Second)
		deployment.Name = "new"
		if !f.is(deployment) {
			t.Error("a new parent waits")
		}
		f.stop()
		<-f.ended
	})
}

const onlyChild = `
def child(ctx):
    mine = [c for c in ctx.snapshots["children"] if c["of"] == ctx.key]
    if ctx.object.get("data.none"):
        for c in mine:
            k8s.delete("v1", "ConfigMap", c["name"], "sites")
    elif not mine:
        n = ctx.state.get("n", 0)
        ctx.state.set("n", n + 1)
        meta = {"name": "child-%d" % n, "namespace": "sites", "labels": {"part": "true"}, "annotations": {"of": ctx.key}}
        k8s.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})

hook(child, for_each = "sites", on = [
    k8s.watch("v1", "ConfigMap", name = "sites", labels = "site"),
    k8s.watch("v1", "ConfigMap", name = "children", labels = "part", wakes = lambda o: o.metadata.annotations.of,
              filter = lambda o: {"name": o.metadata.name, "of": o.metadata.annotations.of}),
])
`

// gates are those of watches: each lets through what its watch brings, unless it is shut.
type gates struct {
	mu    sync.Mutex
	gates []*gate
}

type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it opens; nil: it is open
}

// behind puts the answer of a watch behind a gate.
func (g *gates) behind(r *http.Request, body io.ReadCloser) io.ReadCloser {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := &gate{}
	g.gates = append(g.gates, one)
	return &gated{body, one, r.Context()}
}

// close shuts all gates that there are until the function that it returns is called.
func (g *gates) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	for _, one := range g.gates {
		one.mu.Lock()
		one.shut = shut
		one.mu.Unlock()
	}
	return sync.OnceFunc(func() { close(shut) })
}

type gated struct {
	io.ReadCloser
	gate *gate
	ctx  context.Context
}

func (b *gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.Lock()
	shut := b.gate.shut
	b.gate.mu.Unlock()
	if shut != nil {
		select {
		case <-shut:
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	return n, err
}

// gateWatches puts all watches whose selector begins so behind gates.
func (f *fixture) gateWatches(selector string) *gates {
	g := &gates{}
	f.answered = func(r *http.Request, resp *http.Response) {
		if q := r.URL.Query(); q.Get("watch") != "" && strings.HasPrefix(q.Get("labelSelector"), selector) {
			resp.Body = g.behind(r, resp.Body)
		}
	}
	return g
}

// A run sees what the one before it has written and deleted, however late the watch is: nothing is
// made twice.
func TestARunSeesWhatTheOneBeforeHasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, map[string]string{
			"web/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", [\"*\"], namespaces = [\"sites\"])])\n",
			"web/hooks/a.star": onlyChild,
		})
		g := f.gateWatches("part")
		children := func() (out string) {
			for i := range 5 {
				if name := fmt.Sprint("child-", i); f.is(siteConfigMap(name)) {
					out += name + " "
				}
			}
			return strings.TrimSpace(out)
		}
		f.make("s", "site", nil)
		f.start()
		f.waitReady()
		open := g.close()
		defer open()
		for _, step := range []struct{ data, want string }{
			{`{"a": "1"}`, "child-0"}, {`{"a": "2"}`, "child-0"}, {`{"none": "1"}`, ""}, {`{"none": null}`, "child-1"}, {`{"a": "3"}`, "child-1"},
		} {
			f.patch("s", `{"data": `+step.data+`}`)
			time.Sleep(time.Second)
			if got := children(); got != step.want {
				t.Errorf("after %s there are %q, want %q", step.data, got, step.want)
			}
		}
		open()
		if f.siteRuns(); children() != "child-1" {
			t.Errorf("once the watch has told all, there are %q", children())
		}
		f.stop()
		<-f.ended
	})
}

// A watch of children that has gone deaf is noticed, and what happened meanwhile wakes the parents.
func TestADeafWatchOfChildrenIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, siteTree("None"), renewsSeldom)
		g := f.gateWatches("part")
		for i := range 5 {
			f.make(fmt.Sprint("s", i), "site", nil)
		}
		f.start()
		f.waitReady()
		before := f.siteRuns()
		open := g.close()
		defer open()
		if _, err := f.store.Delete(siteConfigMap("part-of-s3"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if f.siteRuns() != before {
			t.Error("the watch is not deaf")
		}
		time.Sleep(10 * time.Minute)
		if runs := f.siteRuns() - before; runs != 2 || !f.is(siteConfigMap("part-of-s3")) {
			t.Errorf("%d runs, the child is there: %t", runs, f.is(siteConfigMap("part-of-s3")))
		}
		open()
		f.stop()
		<-f.ended
	})
}
