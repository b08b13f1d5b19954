package executor

import (
	"testing"
	"testing/fstest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/watch"
	"github.com/starling-operator/starling/stdlib"
)

// counted is a cluster of which runs see watches, and counts the objects that it hands out.
type counted struct {
	watches map[string]*watch.Local
	handed  int
}

func (c *counted) hand(rows []starlark.Value) []starlark.Value {
	c.handed += len(rows)
	return rows
}

func (c *counted) Snapshot(id string) []starlark.Value   { return c.hand(c.watches[id].Snapshot()) }
func (c *counted) About(id, key string) []starlark.Value { return c.hand(c.watches[id].About(key)) }
func (c *counted) Complete(string) bool                  { return true }
func (c *counted) Lacking(string) string                 { return "" }
func (c *counted) Kick()                                 {}
func (c *counted) Find(id, namespace, name string) (watch.Entry, bool, bool) {
	e, there := c.watches[id].Find(namespace, name)
	return e, there, true
}

// A run of a controller is handed the children of its parent, however many others there are.
func TestARunSeesItsOwnChildrenOnly(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte("module(enabled = True)\n")},
		"web/hooks/a.star": {Data: []byte(`controller(
    "two",
    k8s.watch("v1", "ServiceAccount"),
    lambda ctx, o: waiting(o.metadata.name),
    owns = [owns("v1", "ConfigMap")],
)
`)},
	}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{
		Tree: read, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
		Log: func(string) builtins.Logger { return noLog{} },
	})
	m := g.Modules["web"]
	if len(m.Hooks) != 1 {
		t.Fatalf("there are %d hooks", len(m.Hooks))
	}
	h := m.Hooks[0]
	cluster := &counted{watches: map[string]*watch.Local{}}
	x := New(Options{Generation: g, Now: time.Now, Watches: cluster, Log: func(string, string) builtins.Logger { return noLog{} }})
	ids := map[string]string{}
	for _, b := range h.Bindings {
		if b.Watch == nil {
			continue
		}
		ids[b.Name] = b.Name
		spec := watch.Spec{ID: b.Name, APIVersion: b.Watch.APIVersion, Kind: b.Watch.Kind}
		if b.Name != h.ForEach {
			spec = x.WatchSpec(t.Context(), engine.StartWatch{ID: "web/hooks/a.star:two#" + b.Name, Hook: h, Watch: b.Watch})
		}
		cluster.watches[b.Name] = watch.NewLocal(spec)
		var objects []map[string]any
		for _, name := range []string{"x", "y", "z"} {
			if b.Name == h.ForEach {
				objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": "d", "name": name, "uid": "u-" + name}})
				continue
			}
			for _, part := range []string{"-a", "-b"} {
				marks := map[string]any{"starling.dev/parent": "d/" + name, "starling.dev/parent-uid": "u-" + name, "starling.dev/desired": "old"}
				objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "d", "name": name + part, "annotations": marks}})
			}
		}
		cluster.watches[b.Name].Replace(objects, time.Now())
	}
	done, _ := x.RunHook(t.Context(), engine.RunHook{
		Hook: h, Module: m, Attempt: 1, Watches: ids, Each: h.ForEach, Key: "d/y", ObjectNamespace: "d", ObjectName: "y", Namespace: "d",
	})
	if done.Err != nil {
		t.Fatal(done.Err)
	}
	if cluster.handed != 2 || done.Waits != "y" {
		t.Errorf("%d objects are handed over to the run about %q: want its 2 children", cluster.handed, done.Waits)
	}
}
