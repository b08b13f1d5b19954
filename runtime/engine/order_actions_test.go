package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// toldOf is what an action asks for, for comparison.
func toldOf(a Action) string {
	text := strings.TrimPrefix(fmt.Sprintf("%T ", a), "engine.")
	switch a := a.(type) {
	case StartWatch:
		return text + a.ID
	case StopWatch:
		return text + a.ID
	case RunHook:
		for _, ev := range a.Events {
			text += ev.Type + ":" + ev.Binding + ":" + ev.Name + " "
		}
		return text + fmt.Sprint(a.Run, a.Hook.ID, a.Key, a.Attempt, a.Switches)
	case Commit:
		return text + fmt.Sprint(a.Run, a.Hook.ID, len(a.Writes))
	case Save:
		return text + fmt.Sprint(a.Op, a.Module, slices.Sorted(maps.Keys(a.Data)))
	case Evaluate:
		return text + fmt.Sprint(a.Op, a.Module.Name)
	case Release:
		return text + fmt.Sprint(a.Op, a.Ref, a.Values)
	case Serve:
		return text + a.Module.Name
	case Adopted, Refused:
		return text
	case DropSets:
		return text + a.Hook + a.Key + fmt.Sprint(slices.Sorted(maps.Keys(a.Keys)))
	}
	return text + fmt.Sprintf("%+v", a)
}

// The same inputs lead to the same actions, in the same order, each time.
func TestTheOrderOfActionsIsTheSameEachTime(t *testing.T) {
	first := ""
	for range 200 {
		var told []string
		each := func(name string) *generation.Hook {
			h := hk(name, onWatch("nodes"))
			h.ForEach, h.Parallel = "nodes", 2
			return h
		}
		tree := func(names ...string) []*generation.Module {
			mods := []*generation.Module{mod(globalName, isOn(), hk("x", onStartup(1)), hk("y", onStartup(1)), hk("z", onWatch("nodes")))}
			for _, name := range names {
				mods = append(mods, mod(name, builtins.ModuleDecl{}, hk("b", onStartup(0), onBefore()), each("e"), hk("f", onAfter(), onStage(builtins.StageBeforeDelete))))
			}
			return mods
		}
		w := newWorld(t, tree("a", "b", "c", "d", "e")...)
		w.told = func(a Action) { told = append(told, toldOf(a)) }
		for i, name := range []string{"x", "y"} {
			w.hooks["global/"+name] = func(RunHook) (effect.Effects, error) {
				out := effect.Effects{Requeue: time.Minute}
				for j, m := range []string{"a", "b", "c", "d", "e"} {
					if j%2 == i {
						out.Values = append(out.Values, set(m+"Enabled", true).Values...)
					}
				}
				return out, nil
			}
		}
		for _, m := range []string{"a", "b", "c", "d", "e"} {
			w.hooks[m+"/b"] = func(RunHook) (effect.Effects, error) {
				return effect.Effects{Values: set("n", 1).Values, Requeue: time.Minute}, nil
			}
			w.hooks[m+"/e"] = func(r RunHook) (effect.Effects, error) {
				if m == "c" {
					return effect.Effects{}, errBoom
				}
				return effect.Effects{Memory: effect.Memory{State: map[string]any{"k": r.Key}}, Requeue: time.Minute}, nil
			}
		}
		for _, name := range []string{"1", "2", "3"} {
			w.objects[name] = Object{Name: name}
		}
		w.start()
		w.advance(3 * time.Minute)
		for _, id := range []string{"a/e#nodes", "c/e#nodes", "global/z#nodes"} {
			w.changed(id)
		}
		w.in(Config{State: ConfigPresent, Data: map[string]string{"bEnabled": "false", "dEnabled": "false"}})
		w.advance(3 * time.Minute)
		next := newWorld(t, tree("a", "c")...)
		w.in(Reload{Generation: next.gen})
		w.advance(time.Hour)
		switch got := strings.Join(told, "\n"); {
		case first == "":
			first = got
			if len(w.gone) == 0 || len(w.released) == 0 {
				t.Fatalf("released %v, gone %v", w.released, w.gone)
			}
		case got != first:
			a, b := strings.Split(first, "\n"), strings.Split(got, "\n")
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("action %d of %d is\n%s\nand was\n%s", i, len(b), b[i], a[i])
				}
			}
			t.Fatalf("%d actions, and then %d", len(a), len(b))
		}
	}
}
