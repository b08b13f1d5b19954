package live

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// The API server takes no write but those of Leases for an hour, as when it sheds load or its etcd is full. A hook that
// keeps nothing, and waits for minutes by then, is done within seconds of its return, and all is quiet after that.
func TestAHookThatOnlyAppliesIsDoneOnceTheServerIsBack(t *testing.T) {
	for name, keeps := range map[string]string{"keeps nothing": "", "kept something before": "    values.set(\"internal.x\", 1)\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var full atomic.Bool
				var writes atomic.Int64
				f := newFixture(t, map[string]string{
					"web/module.star": "module(enabled = True, namespace = \"shop\", grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
					"web/hooks/a.star": "def copy(ctx):\n" + keeps +
						"    k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"out\"}, \"data\": {\"text\": ctx.snapshots[\"in\"][0]}})\n" +
						"hook(copy, on = [k8s.watch(\"v1\", \"ConfigMap\", name = \"in\", object_names = [\"in\"], namespaces = [\"shop\"], filter = lambda o: o.data.text)])\n",
				}, renewsSeldom, func(f *fixture) {
					f.before = func(r *http.Request) int {
						if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases") {
							return 0
						}
						if writes.Add(1); full.Load() {
							return http.StatusServiceUnavailable
						}
						return 0
					}
				})
				in := store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "shop", Name: "in"}
				obj := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "in"}, "data": map[string]any{"text": "before"}}
				if _, err := f.store.Create(in, obj, store.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
				f.start()
				f.waitReady()
				time.Sleep(time.Minute)
				if got := f.text("out"); got != "before" {
					t.Fatalf("the object has %q", got)
				}
				full.Store(true)
				if _, err := f.store.Patch(in, types.MergePatchType, []byte(`{"data": {"text": "after"}}`), store.WriteOptions{Manager: "kubectl-edit"}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				full.Store(false)
				time.Sleep(20 * time.Second)
				if got := f.text("out"); got != "after" {
					t.Errorf("20 s after the API server is back the object has %q", got)
				}
				time.Sleep(time.Minute)
				before := writes.Load()
				time.Sleep(time.Hour)
				if n := writes.Load() - before; n > 0 {
					t.Errorf("%d writes in an hour of rest", n)
				}
				kept := store.Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Namespace: "ops", Name: "starling-kept-web"}
				if _, err := f.store.Get(kept); (err == nil) != (keeps != "") {
					t.Errorf("reading what is kept of the module: %v", err)
				}
				f.stop()
				if err := <-f.ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
