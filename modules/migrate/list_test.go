package migrate

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/stdlib"
)

// The chart of a module whose section was a list finds it where it was.
func TestASectionThatWasAList(t *testing.T) {
	r, err := AddonOperator(t.Context(), fstest.MapFS{
		"web/templates/a.yaml": {},
		"web/values.yaml":      {Data: []byte("web:\n- name: a  # first\n- name: b\nredis: {port: 1}\n")},
	}, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	read, err := r.Tree()
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1})
	m := g.Modules["web"]
	own, _ := m.OwnValues()
	got, err := hook.ChartValues(t.Context(), g.Host, m, own, func() []string { return nil }, time.Time{}, builtins.Silent{})
	if err != nil {
		t.Fatal(err)
	}
	delete(got, "global")
	want := map[string]any{"web": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "redis": map[string]any{"port": int64(1)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
