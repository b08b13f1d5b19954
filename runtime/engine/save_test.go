package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
)

// held is a module whose hooks have a queue each: their runs end when a test says so.
type held struct {
	*world
	runs map[string]RunHook
}

func newHeld(t *testing.T, ids ...string) *held {
	var hooks []*generation.Hook
	for _, id := range ids {
		h := hk(id, onStartup(0))
		h.Queue = id
		hooks = append(hooks, h)
	}
	w := &held{newWorld(t, mod("web", isOn(), hooks...)), map[string]RunHook{}}
	w.e = New(w.opts)
	w.e.Handle(w.now, Config{State: ConfigPresent})
	for _, a := range w.e.Handle(w.now, Start{Generation: w.gen}) {
		if run, ok := a.(RunHook); ok {
			w.runs[strings.TrimPrefix(run.Hook.ID, "web/")] = run
		}
	}
	return w
}

// shown are writes for people.
func shown(saves []Save) string {
	text := ""
	for _, s := range saves {
		text += fmt.Sprintf("write %d of runs %v: %q\n", s.Op, s.Runs, s.Data)
	}
	return text
}

// do hands an input over, and returns what has to be written.
func (w *held) do(in Input) (commits []Commit, saves []Save) {
	for _, a := range w.e.Handle(w.now, in) {
		switch a := a.(type) {
		case Commit:
			commits = append(commits, a)
		case Save:
			saves = append(saves, a)
		}
	}
	return commits, saves
}

func (w *held) done(id string, effects effect.Effects) (commits []Commit, saves []Save) {
	return w.do(RunDone{Run: w.runs[id].Run, Effects: effects})
}

func writes(effects effect.Effects) effect.Effects {
	effects.Writes = []effect.Write{{Kind: effect.WriteApply}}
	return effects
}

// All that waits while a write is under way goes with the next one: values, and states.
func TestWhatWaitsIsKeptAtOnce(t *testing.T) {
	w := newHeld(t, "a", "b", "c", "d")
	_, first := w.done("a", set("a", 1))
	for _, id := range []string{"b", "c", "d"} {
		effects := set(id, 1)
		if id == "d" {
			effects = effect.Effects{Memory: effect.Memory{State: map[string]any{"n": 1}}}
		}
		if commits, saves := w.done(id, effects); len(commits)+len(saves) > 0 {
			t.Fatalf("two writes at once: %v %v", commits, saves)
		}
	}
	if len(first) != 1 || len(first[0].Data) != 1 {
		t.Fatalf("the first write: %s", shown(first))
	}
	_, second := w.do(Saved{Op: first[0].Op})
	if len(second) != 1 || len(second[0].Data) != 4 || len(second[0].Hooks) != 3 {
		t.Fatalf("the second write: %s", shown(second))
	}
	w.do(Saved{Op: second[0].Op})
	if m := w.e.modules["web"]; !m.store.Clean() || fmt.Sprint(w.e.Values(m.name)) != "map[a:1 b:1 c:1 global:map[] replicas:1]" || len(w.remembers("web/d")) != 1 {
		t.Errorf("values %v, state %v", w.e.Values(m.name), w.remembers("web/d"))
	}
}

// Objects of several hooks are written side by side. Of two that set one path the second is
// refused before it writes anything, also while the objects of the first are being written; the
// others are kept all the same. When the first has failed, the second may set it.
func TestValuesAreCheckedBeforeObjectsAndAsTheyAreKept(t *testing.T) {
	w := newHeld(t, "a", "b", "c", "late")
	a, _ := w.done("a", writes(set("one", "a")))
	b, _ := w.done("b", writes(set("one", "b")))
	c, _ := w.done("c", writes(set("c", 1)))
	if len(a) != 1 || len(b) != 0 || len(c) != 1 {
		t.Fatalf("commits: %v %v %v", a, b, c)
	}
	_, first := w.do(Committed{Run: a[0].Run})
	w.do(Committed{Run: c[0].Run})
	_, second := w.do(Saved{Op: first[0].Op})
	if len(second) != 1 || len(second[0].Hooks) != 1 {
		t.Fatalf("the second write: %s", shown(second))
	}
	w.do(Saved{Op: second[0].Op})
	if commits, _ := w.done("late", writes(set("one", "late"))); len(commits) > 0 {
		t.Error("objects are written of a run whose values are refused")
	}
	if view := fmt.Sprint(w.e.Values("web")); view != "map[c:1 global:map[] one:a replicas:1]" {
		t.Errorf("values %v", view)
	}
	w.state("web", status.ModuleFailed, "one path belongs to one hook")

	w = newHeld(t, "a", "b")
	a, _ = w.done("a", writes(set("one", "a")))
	w.do(Committed{Run: a[0].Run, Err: errors.New("no")})
	if b, _ := w.done("b", writes(set("one", "b"))); len(b) != 1 {
		t.Errorf("commits: %v, though the first has failed", b)
	}
}

// Runs whose values cannot be kept together are refused one after the other, and those whose
// write has failed count for nothing, though it may have been carried out.
func TestAFailedSaveFailsItsRuns(t *testing.T) {
	w := newHeld(t, "a", "b", "large")
	_, first := w.done("a", set("a", 1))
	w.done("b", set("b", 1))
	w.done("large", set("large", strings.Repeat("x", effect.MaxKept)))
	_, second := w.do(Saved{Op: first[0].Op, Err: errors.New("timeout")})
	if len(second) != 1 || len(second[0].Hooks) != 1 || len(second[0].Data) != 1 {
		t.Fatalf("the second write: %s", shown(second))
	}
	w.do(Saved{Op: second[0].Op})
	m := w.e.modules["web"]
	if view := fmt.Sprint(w.e.Values(m.name)); view != "map[b:1 global:map[] replicas:1]" {
		t.Errorf("values %v", view)
	}
	for id, want := range map[string]string{"a": "are not kept: timeout", "large": "more than the 900 KiB that fit into a Secret"} {
		if got := m.byKey["web/"+id].subjects.Failure(); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	if !m.store.Clean() {
		t.Error("the second write has not made up for the first one")
	}
}
