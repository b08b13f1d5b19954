package sim

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/stdlib"
)

// A write that is refused, values that the schema refuses: neither run is recorded as one
// that succeeded. The error is that of the status.
func TestARunWhoseCommitFailsIsRecordedSo(t *testing.T) {
	read, err := tree.Read(fstest.MapFS{
		"web/module.star":         {Data: []byte("module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n")},
		"web/openapi/values.yaml": {Data: []byte("type: object\nproperties:\n  size: {type: integer, maximum: 3}\n")},
		"web/hooks/a.star": {Data: []byte(`
def apply(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Bad Name"}})

def set(ctx):
    values.set("size", 9)

def fine(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "good"}})

def fails(ctx):
    fail("on its own")

hook(apply, on = [startup], allow_failure = True)
hook(set, on = [startup], allow_failure = True)
hook(fine, on = [startup])
hook(fails, on = [startup], allow_failure = True)
`)}}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
	for _, m := range g.Modules {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
	}
	key, err := record.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	o := record.StoreOptions{Dir: t.TempDir(), Key: key, Process: "test"}
	records, err := record.OpenStore(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Options{Generation: g, Builtins: store.NewBuiltins(),
		Record: func(trace *record.Trace) {
			if err := records.Put(trace); err != nil {
				t.Error(err)
			}
		},
		Uncommitted: func(run uint64, err error) {
			if err := records.Uncommitted(run, err); err != nil {
				t.Error(err)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	headers, _, err := record.List(o.Dir, key)
	if err != nil || len(headers) != 4 {
		t.Fatal(headers, err)
	}
	said := map[string]string{}
	for _, h := range w.Status().Hooks {
		said[h.ID] = h.LastError
	}
	for _, h := range headers {
		name := h.Hook[strings.LastIndex(h.Hook, ":")+1:]
		if h.Failed() != (name != "fine") || h.AtCommit != (name == "apply" || name == "set") || h.Error != said[h.Hook] {
			t.Errorf("%s is recorded as %s, at commit %v: %q; the status says %q", h.Hook, h.Result, h.AtCommit, h.Error, said[h.Hook])
		}
	}
}
