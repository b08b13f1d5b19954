package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/engine/agenda"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// wantInStep fails when what the engine goes by instead of looking at all modules is not
// what it would see: when each wants a tick, which are on their way, at work, and what
// shall become of each.
func wantInStep(t testing.TB, e *Engine) {
	if e.gen == nil || t == nil {
		return
	}
	times := len(e.requeues())
	for _, m := range e.everyone() {
		if m.barred() {
			continue
		}
		want := m.nextWake(e.now)
		if got := e.agenda.At(agenda.Module(m.name)); !got.Equal(want) {
			t.Errorf("module %s wants a tick at %s, and has one at %s", m.name, want, got)
		}
		if !want.IsZero() {
			times++
		}
	}
	if times != e.agenda.Len() {
		t.Errorf("%d times, of which nobody waits for %d", e.agenda.Len(), e.agenda.Len()-times)
	}
	for _, m := range e.all() {
		if m == e.global || m.barred() {
			continue
		}
		if was, now := e.standings.Of(m.name), e.standing(m); was != now {
			t.Errorf("module %s stands as %b, not %b", m.name, now, was)
		}
		if m.life != leaving && e.globals.Pending == "" { // which holds those that do not run, as soon as they are looked at again
			was := m.verdict
			m.verdict = verdicts.Decide(e.facts(m))
			e.wait(m)
			if was != m.verdict {
				t.Errorf("module %s was not looked at: %+v, not %+v", m.name, was, m.verdict)
			}
		}
	}
	if e.standings.Len() > len(e.modules) {
		t.Errorf("%d modules, and %d stand somewhere", len(e.modules), e.standings.Len())
	}
}

// requeues are the times at which subjects run again because they have asked for it.
func (e *Engine) requeues() (out []time.Time) {
	for _, m := range e.everyone() {
		for _, h := range m.hooks {
			for _, s := range h.subjects.All() {
				if at := e.agenda.At(work(s)); !at.IsZero() {
					out = append(out, at)
				}
			}
		}
	}
	return out
}

// The cost of one change, one answer and one tick depends on the modules that they concern,
// not on how many there are.
func TestNoModuleIsLookedAtInVain(t *testing.T) {
	looks := func(modules int) (change, tick float64) {
		x := newManyBench(t, modules)
		change = testing.AllocsPerRun(20, func() { x.change(1) })
		tick = testing.AllocsPerRun(20, func() { x.now = x.now.Add(time.Minute); x.in(Tick{}) })
		return change, tick
	}
	change, tick := looks(10)
	moreChange, moreTick := looks(1000)
	if got, want := fmt.Sprint(moreChange, moreTick), fmt.Sprint(change, tick); got != want {
		t.Errorf("one change and one tick take %s allocations among 1,000 modules, %s among 10", got, want)
	}
}

// A change of the user's config has those looked at whose section, switch or global values moved.
func TestAChangeOfTheConfigTouchesTheModulesThatItMoves(t *testing.T) {
	for _, modules := range []int{10, 1000} {
		x := newManyBench(t, modules)
		for i, tt := range []struct{ data, want string }{
			{"m1: {a: 1}", "global m1"},
			{"m1: {a: 1}", "global"},
			{"m1: {a: 2}, m2: {a: 1}", "global m1 m2"},
			{"m2: {a: 1}, m3Enabled: false", "global m1 m3"},
			{"m2: {a: 1}, m4Enabled: true", "global m3 m4"},
			{"m2: [], m4Enabled: true", "global"}, // refused
			{"m4Enabled: true, nobody: {}", "global m2"},
			{"global: {a: 1}, m4Enabled: true", "all"}, // as all read it
		} {
			data := map[string]any{}
			if err := yaml.Unmarshal([]byte("{"+tt.data+"}"), &data); err != nil {
				t.Fatal(err)
			}
			config := Config{State: ConfigPresent, Data: map[string]string{}}
			for key, v := range data {
				text, _ := json.Marshal(v)
				config.Data[key] = string(text)
			}
			x.e.handleConfig(config)
			var touched []string
			for name := x.e.agenda.Next(); name != ""; name = x.e.agenda.Next() {
				touched = append(touched, name)
			}
			for _, name := range touched {
				x.e.agenda.Touch(name)
			}
			slices.Sort(touched)
			if got := strings.Join(touched, " "); got != tt.want && (tt.want != "all" || len(touched) != modules+1) {
				t.Errorf("%d modules, %d: touched %.80s, want %s", modules, i, got, tt.want)
			}
			x.in(config)
			wantInStep(t, x.e)
		}
	}
}
