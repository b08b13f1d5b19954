package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/finalizers"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// owner is a module with a controller that owns kinds of v1.
func owner(digest string, kinds ...string) *generation.Module {
	h := code(digest, eachHook("a", false))
	h.Controller = &builtins.ControllerDecl{}
	for _, kind := range kinds {
		k := reconcile.Kind{APIVersion: "v1", Kind: kind}
		h.Controller.Owns = append(h.Controller.Owns, k)
		h.Bindings = append(h.Bindings, builtins.ChildrenOf(k, ""))
	}
	return mod("web", isOn(), h)
}

// A kind that a controller does not own any more is watched on, after a restart too: its children have to go.
func TestKindsOfBeforeAreWatched(t *testing.T) {
	const former = "web/a#children-secret"
	w := newWorld(t, owner("1", "ConfigMap", "Secret"))
	w.objects["x"] = Object{Name: "x"}
	w.start()
	w.reload(owner("2", "ConfigMap"))
	if slices.ContainsFunc(w.watched, func(id string) bool { return strings.Contains(id, "children") }) {
		t.Errorf("watches come and go: %v", w.watched)
	}
	if f := finalizers.Read(w.kept["web"]); len(f) != 1 || f[0].Owns != "v1/ConfigMap,v1/Secret" {
		t.Errorf("kept %+v", f)
	}
	if !w.objects["x"].Held {
		t.Error("the finalizer was taken off")
	}

	// Nobody waits for it, and runs know that they do not see all.
	w.watched, w.runs = nil, nil
	w.unsynced[former] = true
	var unsynced []reconcile.Kind
	w.seen = func(a RunHook) { unsynced = a.Unsynced }
	w.start()
	if !slices.ContainsFunc(w.watched, func(id string) bool { return strings.HasPrefix(id, "+"+former) }) || len(w.runs) == 0 {
		t.Errorf("watched %v, runs %v", w.watched, w.runs)
	}
	if want := []reconcile.Kind{{APIVersion: "v1", Kind: "Secret"}}; !slices.Equal(unsynced, want) {
		t.Errorf("unsynced %v", unsynced)
	}
	w.runs = nil
	w.in(WatchSynced{ID: former, Served: true})
	if len(w.runs) != 1 || len(unsynced) > 0 {
		t.Errorf("runs %v, unsynced %v", w.runs, unsynced)
	}

	// It is owned again.
	w.reload(owner("3", "ConfigMap", "Secret"))
	if slices.ContainsFunc(w.watched, func(id string) bool { return strings.Contains(id, "children") }) {
		t.Errorf("watches come and go: %v", w.watched)
	}
}

// Of a kind that is not served any more nobody knows which children there are: a parent that is being deleted
// stays until it is served again, or not owned any more.
func TestAKindThatIsNotServedAnyMore(t *testing.T) {
	const id = "web/a#children-secret"
	secrets := []reconcile.Kind{{APIVersion: "v1", Kind: "Secret"}}
	w := newWorld(t, owner("1", "ConfigMap", "Secret"))
	w.objects["x"] = Object{Name: "x"}
	var unsynced []reconcile.Kind
	w.seen = func(a RunHook) {
		unsynced = a.Unsynced
		w.waits = reconcile.Unsure(a.Unsynced)
	}
	w.start()
	if len(unsynced) > 0 {
		t.Errorf("unsynced %v", unsynced)
	}
	w.in(WatchSynced{ID: id})
	if !slices.Equal(unsynced, secrets) {
		t.Errorf("unsynced %v", unsynced)
	}
	w.happens("deleted", "x")
	w.advance(time.Hour)
	if _, there := w.objects["x"]; !there {
		t.Fatal("the parent has gone")
	}
	w.in(WatchSynced{ID: id, Served: true})
	if _, there := w.objects["x"]; there || len(unsynced) > 0 {
		t.Errorf("unsynced %v, there %t", unsynced, there)
	}

	w.objects["y"] = Object{Name: "y"}
	w.happens("added", "y")
	w.in(WatchSynced{ID: id})
	w.happens("deleted", "y")
	w.reload(owner("2", "ConfigMap"))
	w.advance(time.Hour)
	if _, there := w.objects["y"]; there {
		t.Error("the parent is still there")
	}
}

// A kind of before that may not be listed holds nobody up. While the API server is overloaded, its children stay known.
func TestAKindOfBeforeWithoutRights(t *testing.T) {
	const former = "web/a#children-secret"
	w := newWorld(t, owner("1", "ConfigMap", "Secret"))
	w.objects["x"] = Object{Name: "x"}
	w.start()
	w.reload(owner("2", "ConfigMap"))
	w.unsynced[former] = true
	w.seen = func(a RunHook) { w.waits = reconcile.Unsure(a.Unsynced) }
	w.start()
	w.happens("deleted", "x")
	w.advance(time.Hour)
	if _, there := w.objects["x"]; !there {
		t.Fatal("the parent has gone")
	}
	for _, reason := range []string{"the API server is overloaded", "", "the API server is overloaded again"} {
		w.in(WatchFailed{ID: former, Reason: reason})
		w.advance(time.Hour)
		if _, there := w.objects["x"]; !there {
			t.Fatalf("the parent has gone: %q", reason)
		}
	}
	w.in(WatchFailed{ID: former, Reason: "forbidden", Refused: true})
	w.advance(time.Hour)
	if _, there := w.objects["x"]; there {
		t.Error("the parent is still there")
	}
}

// Fields of objects of others are given back, too, when the controller sets none of that kind any more.
func TestKindsOfFieldsOfBeforeAreWatched(t *testing.T) {
	first := owner("1", "ConfigMap")
	h, k := first.Hooks[0], reconcile.Kind{APIVersion: "v1", Kind: "ConfigMap"}
	h.Controller.Fields, h.Bindings = []reconcile.Kind{k}, append(h.Bindings, builtins.FieldsOf(k, ""))
	w := newWorld(t, first)
	w.objects["x"] = Object{Name: "x"}
	w.start()
	w.reload(owner("2", "ConfigMap"))
	if f := finalizers.Read(w.kept["web"]); len(f) != 1 || f[0].Owns != "fields-v1/ConfigMap,v1/ConfigMap" {
		t.Errorf("kept %+v", f)
	}
	w.watched = nil
	w.start()
	if !slices.ContainsFunc(w.watched, func(id string) bool { return strings.HasPrefix(id, "+web/a#fields-configmap") }) {
		t.Errorf("watched %v", w.watched)
	}
}
