package live

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// siteTree has a run for each ConfigMap with the label site, which makes a part that it owns, and
// watches notes that name it.
func siteTree(key string) map[string]string {
	return map[string]string{
		"web/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", ["*"], namespaces = ["sites"])])
`,
		"web/hooks/a.star": `
def site(ctx):
    o = ctx.object
    meta = {"name": "part-of-" + o.metadata.name, "namespace": "sites", "labels": {"part": "true"}}
    k8s.apply_set("parts", [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"text": "ours"}}], owner = o)

hook(site, for_each = "sites", on = [
    k8s.watch("v1", "ConfigMap", name = "sites", labels = "site"),
    k8s.watch("v1", "ConfigMap", name = "parts", labels = "part", filter = ["data", "metadata.annotations"]),
    k8s.watch("v1", "ConfigMap", name = "notes", labels = "note", filter = ["data.text"], wakes = lambda o: ` + key + `),
])
`,
	}
}

func siteConfigMap(name string) store.Target {
	return store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "sites", Name: name}
}

// put has somebody apply an object.
func (f *fixture) put(obj map[string]any) {
	f.Helper()
	if _, err := f.driver.o.Client.Write(f.Context(), "test", effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(obj), Object: obj}); err != nil {
		f.Fatal(err)
	}
}

// make makes a ConfigMap with a label.
func (f *fixture) make(name, label string, data map[string]any) {
	f.Helper()
	obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "sites", "name": name, "labels": map[string]any{label: "true"}}}
	if data != nil {
		obj["data"] = data
	}
	f.put(obj)
}

// patch has somebody change a ConfigMap.
func (f *fixture) patch(name, patch string) {
	f.Helper()
	f.patchTarget(siteConfigMap(name), patch)
}

func (f *fixture) patchTarget(target store.Target, patch string) {
	f.Helper()
	if _, err := f.store.Patch(target, types.MergePatchType, []byte(patch), store.WriteOptions{Manager: "kubectl-edit"}); err != nil {
		f.Fatal(err)
	}
}

// siteRuns is how many runs the hook has had, once it is at rest.
func (f *fixture) siteRuns() int {
	f.Helper()
	time.Sleep(10 * time.Second)
	runs, err := ask(f.Context(), f.driver, func(e *engine.Engine) int { return e.Status().Hooks[0].Runs })
	if err != nil {
		f.Fatal(err)
	}
	return runs
}

// One event of a child is one run and at most two requests among many parents, and so is one of an
// object that wakes= names; also after a restart, and with another wakes.
func TestAnEventOfAChildIsOneRun(t *testing.T) {
	const sites = 300
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, siteTree("o.data.site"))
		var mu sync.Mutex
		var requests []string
		f.answered = func(r *http.Request, _ *http.Response) {
			mu.Lock()
			defer mu.Unlock()
			if !strings.Contains(r.URL.Path, "leases") && r.URL.Query().Get("watch") == "" {
				requests = append(requests, r.Method+" "+r.URL.Path)
			}
		}
		for i := range sites {
			f.make(fmt.Sprint("s", i), "site", nil)
		}
		f.make("n", "note", map[string]any{"site": "sites/s1", "text": "a"})
		one := func(what string, runs, most int, change func()) {
			t.Helper()
			before := f.siteRuns()
			mu.Lock()
			requests = nil
			mu.Unlock()
			change()
			if n := f.siteRuns() - before; n != runs {
				t.Errorf("%s: %d runs, want %d", what, n, runs)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(requests) > most {
				t.Errorf("%s: %d requests, want %d at most: %q", what, len(requests), most, requests)
			}
		}
		events := func(when string) {
			t.Helper()
			one(when+": a child", 1, 2, func() { f.patch("part-of-s7", `{"metadata": {"annotations": {"at": "`+when+`"}}}`) })
			one(when+": a note", 1, 2, func() { f.patch("n", `{"data": {"text": "`+when+`"}}`) })
			one(when+": a note that moves", 2, 4, func() { f.patch("n", `{"data": {"site": "sites/s2"}}`) })
			one(when+": a note for nobody", 1, 2, func() { f.patch("n", `{"data": {"site": "sites/none"}}`) })
			one(when+": a note for nobody again", 0, 0, func() { f.patch("n", `{"data": {"text": "none"}}`) })
			one(when+": a note that comes back", 1, 2, func() { f.patch("n", `{"data": {"site": "sites/s1"}}`) })
		}
		f.start()
		f.waitReady()
		events("first")
		f.stop()
		<-f.ended

		// While nobody watches, a child is deleted: it is back.
		if _, err := f.store.Delete(siteConfigMap("part-of-s9"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.driver = f.newDriver(siteTree("o.data.site"))
		f.start()
		f.waitReady()
		events("restarted")
		if _, err := f.store.Get(siteConfigMap("part-of-s9")); err != nil {
			t.Error(err)
		}

		// The same by other code.
		next := loadTree(t, siteTree(`[o.get("data.site")]`))
		if _, err := ask(t.Context(), f.driver, func(*engine.Engine) bool { f.driver.follow(f.driver.generation.Load(), next); return true }); err != nil {
			t.Fatal(err)
		}
		events("reloaded")
		f.stop()
		<-f.ended
	})
}
