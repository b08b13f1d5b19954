package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

// copyNames applies one object for each that it watches.
const copyNames = `
def copy_names(ctx):
    k8s.apply_set("copies", [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-" + name, "namespace": "copies"}}
        for name in ctx.snapshots["sources"]
    ])

hook(copy_names, on = [k8s.watch("v1", "ConfigMap", name = "sources", namespaces = ["sources"], filter = lambda o: o.metadata.name)])
`

// uid is that of a ConfigMap, "" when it is not there.
func (f *fixture) uid(namespace, name string) string {
	f.Helper()
	obj, err := f.driver.o.Client.Get(f.Context(), effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name})
	if err != nil {
		f.Fatal(err)
	}
	meta, _ := obj["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	return uid
}

func (f *fixture) apply(namespace, name string) {
	f.Helper()
	if _, err := f.driver.o.Client.Write(f.Context(), "test", effect.Write{
		Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name},
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": name}},
	}); err != nil {
		f.Fatal(err)
	}
}

// A run that waits for its turn while a reload replaces its watch does not take the end of
// that watch for an empty cluster: what its hook has made stays.
func TestARunThatHasWaitedDoesNotSeeAWatchThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := map[string]string{
			"web/module.star":  "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", [\"*\"], namespaces = [\"copies\"])])\n",
			"web/hooks/a.star": copyNames,
		}
		f := newFixture(t, files, renewsSeldom)
		f.start()
		f.waitReady()
		f.apply("sources", "a")
		time.Sleep(time.Second)
		before := f.uid("copies", "of-a")
		if before == "" {
			t.Fatal("the hook has not run")
		}
		// The runs of the module have computed more than their share, so the next one waits.
		f.driver.slots.take(t.Context(), "web")
		f.driver.slots.give("web", maxAhead+time.Minute)
		f.apply("sources", "b")
		time.Sleep(time.Second)
		files["web/hooks/a.star"] = strings.Replace(copyNames, "o.metadata.name", "o.metadata.name + \"\"", 1)
		next := loadTree(t, files)
		if _, err := ask(t.Context(), f.driver, func(*engine.Engine) bool { f.driver.follow(f.driver.generation.Load(), next); return true }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if after := f.uid("copies", "of-a"); after != before {
			t.Errorf("it was deleted meanwhile: its uid is %q, it was %q", after, before)
		}
		if f.uid("copies", "of-b") == "" {
			t.Error("the hook does not run any more")
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// A watch that is complete no more by the time that it says so does not make all its objects
// look as if they were gone.
func TestAWatchThatIsStoppedAsItSyncsHasNoObjects(t *testing.T) {
	f := newFixture(t, emptyTree)
	const id = "web/hooks/a.star:f#nodes"
	f.driver.watching.Store(id, engine.StartWatch{ID: id, Each: true})
	sink{f.driver}.Synced(id, true)
	if in, ok := f.driver.inbox.take(); ok {
		t.Errorf("the engine is told %+v", in)
	}
	sink{f.driver}.Synced(id, false) // there are none of a kind that is not served
	if _, ok := f.driver.inbox.take(); !ok {
		t.Error("the engine is not told")
	}
}
