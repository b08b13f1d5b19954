package engine

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/persist"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/generation"
)

// A layer that was kept for a global hook, and sets what no global hook may set, is an
// error as it is read: it is not dropped without a word wherever it is used.
func TestAKeptLayerOfAGlobalHookIsChecked(t *testing.T) {
	h := &hook{gen: &generation.Hook{HookDecl: &builtins.HookDecl{}, ID: "global/a"}}
	h.subjects = subjects.New(h.gen.ID, false)
	s := h.subjects.At("")
	read := func(path ...string) (*module, error) {
		t.Helper()
		change, err := s.Keep([]effect.ValueOp{{Op: effect.OpSet, Path: path, Value: "x"}}, effect.Memory{})
		if err != nil {
			t.Fatal(err)
		}
		gen := &generation.Module{Global: true}
		m := &module{
			gen: gen, values: layers.New(layers.Options{}).Add(gen), byKey: map[string]*hook{h.gen.ID: h},
			store: persist.New(map[string][]byte{s.Keys()[0]: change[s.Keys()[0]]}),
		}
		h.module = m
		return m, (&Engine{}).readKept(m)
	}
	if m, err := read("web", "replicas"); err == nil || len(m.layer(s))+len(m.store.Data()) > 0 {
		t.Errorf("error is %v, the layer %v, kept %v", err, m.layer(s), m.store.Data())
	}
	if m, err := read("global", "replicas"); err != nil || len(m.layer(s)) != 1 || !m.store.Clean() {
		t.Errorf("error is %v, the layer %v, kept %v", err, m.layer(s), m.store.Data())
	}
}
