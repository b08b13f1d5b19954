package executor

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// A run that was dispatched before a reload is recorded, with the generation whose code
// ran.
func TestRunOfAnEarlierGenerationIsRecorded(t *testing.T) {
	load := func(number int, body string) *generation.Generation {
		read, err := tree.Read(fstest.MapFS{
			"web/module.star":  {Data: []byte("module(enabled = True)\n")},
			"web/hooks/a.star": {Data: []byte("hook(lambda ctx: " + body + ", name = \"a\", on = [startup()])\n")},
		}, tree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return generation.Load(t.Context(), generation.Options{
			Tree: read, Std: stdlib.FS, Number: number, Governor: script.NewGovernor(script.GovernorOptions{}),
			Log: func(string) builtins.Logger { return noLog{} },
		})
	}
	old, next := load(1, "log.info(\"old\")"), load(2, "log.info(\"new\")")
	var recorded []int
	x := New(Options{
		Generation: old, Now: time.Now, Log: func(string, string) builtins.Logger { return noLog{} },
		Record: func(t *record.Trace) { recorded = append(recorded, t.Generation) },
	})
	run := func(g *generation.Generation) {
		m := g.Modules["web"]
		done, _ := x.RunHook(t.Context(), engine.RunHook{Hook: m.Hooks[0], Module: m, Generation: g, Attempt: 1})
		if done.Err != nil {
			t.Fatal(done.Err)
		}
	}
	run(old)
	x.Use(next)
	run(old)
	run(next)
	if len(recorded) != 3 || recorded[0] != 1 || recorded[1] != 1 || recorded[2] != 2 {
		t.Errorf("recorded are runs of the generations %v", recorded)
	}
}
