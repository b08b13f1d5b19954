package engine

import (
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// A layer that was kept for a global hook, and sets what no global hook may set, is an
// error as it is read: it is not dropped without a word wherever it is used.
func TestAKeptLayerOfAGlobalHookIsChecked(t *testing.T) {
	m := &module{gen: &generation.Module{Global: true}, kept: map[string][]byte{}}
	s := &subject{hook: &hook{module: m, gen: &generation.Hook{HookDecl: &builtins.HookDecl{}, ID: "global/a"}}}
	read := func(path ...string) error {
		t.Helper()
		ops, err := values.EncodeOps([]effect.ValueOp{{Op: effect.OpSet, Path: path, Value: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		return s.readLayer([]byte("{}"), ops)
	}
	if err := read("web", "replicas"); err == nil || len(s.layer)+len(m.kept) > 0 {
		t.Errorf("error is %v, the layer %v, kept %v", err, s.layer, m.kept)
	}
	if err := read("global", "replicas"); err != nil || len(s.layer) != 1 || len(m.kept) != 1 {
		t.Errorf("error is %v, the layer %v, kept %v", err, s.layer, m.kept)
	}
}
