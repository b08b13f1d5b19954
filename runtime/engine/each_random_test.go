package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
)

// Objects come, change, stop to match and are deleted, runs and writes fail, processes
// are killed: in the end everything that is there is held and made, everything that is
// gone was cleaned up, and nothing of it is kept.
func TestRandomLivesOfObjects(t *testing.T) {
	for seed := range seeds(400) {
		g := newGarden(t, rand.New(rand.NewPCG(seed, 2)))
		g.boot()
		for range 60 + g.r.IntN(200) {
			g.disturb()
		}
		g.calm = true
		g.settle()
		g.check()
		if t.Failed() {
			t.Fatalf("seed %d; the last of what happened:\n%s", seed, strings.Join(g.log[max(0, len(g.log)-100):], "\n"))
		}
	}
}

// plant is one object of the cluster.
type plant struct {
	version        int64
	selected       bool // the watch's labels match
	deleting, held bool
}

// garden is a cluster of such objects with one process in it. An action of the engine
// waits until it is picked; answers and events come in their order.
type garden struct {
	t    *testing.T
	r    *rand.Rand
	calm bool
	w    *world
	e    *Engine
	now  time.Time
	wake time.Time

	plants  map[string]*plant
	made    map[string]int64 // what runs have made, by object
	strays  map[string]bool  // did not match, or was not held, at some time
	kept    map[string]map[string][]byte
	on      bool
	live    string // the id of the watch
	pending []Action
	inbox   []Input
	log     []string
}

func newGarden(t *testing.T, r *rand.Rand) *garden {
	w := newWorld(t, mod("web", isOn(), eachHook("a", true)))
	h := w.gen.Modules["web"].Hooks[0]
	h.Parallel = 1 + r.IntN(4)
	if r.IntN(2) == 0 {
		h.Controller, h.Cleanup = &builtins.ControllerDecl{}, nil
	}
	return &garden{t: t, r: r, w: w, now: w.now, on: true,
		plants: map[string]*plant{}, made: map[string]int64{}, strays: map[string]bool{}, kept: map[string]map[string][]byte{}}
}

// controls says whether the hook is a controller: then no object loses the finalizer without its cleanup.
func (g *garden) controls() bool { return g.w.gen.Modules["web"].Hooks[0].Controller != nil }

func (g *garden) note(format string, a ...any) { g.log = append(g.log, fmt.Sprintf(format, a...)) }

func (g *garden) chance(n int) bool { return !g.calm && g.r.IntN(n) == 0 }

func (g *garden) boot() {
	g.note("boot")
	g.e, g.wake, g.live, g.pending = New(g.w.opts), time.Time{}, "", nil
	g.inbox = []Input{Start{Generation: g.w.gen, Kept: maps.Clone(g.kept)}, g.config()}
}

func (g *garden) config() Config {
	return Config{State: ConfigPresent, Data: map[string]string{"webEnabled": fmt.Sprint(g.on)}}
}

func (g *garden) disturb() {
	name := fmt.Sprint("p", g.r.IntN(4))
	p := g.plants[name]
	switch g.r.IntN(20) {
	case 0, 1:
		if p == nil {
			g.plants[name] = &plant{version: g.r.Int64N(1000), selected: true}
			g.tell("added", name, false)
		} else if !p.deleting {
			p.version++
			g.tell("modified", name, false)
		}
	case 2:
		g.remove(name)
	case 3:
		if p != nil && !p.deleting && g.r.IntN(2) == 0 {
			g.selects(name, !p.selected)
		}
	case 4:
		if g.r.IntN(4) == 0 {
			for _, a := range g.pending {
				if g.chance(2) {
					g.carryOut(a)
				}
			}
			g.boot()
		}
	case 5:
		g.now = g.now.Add(time.Duration(g.r.Int64N(int64(3 * time.Second))))
		g.tick()
	case 6:
		if g.r.IntN(5) == 0 {
			g.on = !g.on
			g.inbox = append(g.inbox, g.config())
		}
	default:
		g.step()
	}
}

func (g *garden) remove(name string) {
	p := g.plants[name]
	switch {
	case p == nil || p.deleting:
	case p.held:
		p.deleting = true
		g.tell("modified", name, true)
	default:
		delete(g.plants, name)
		g.say("deleted", name, p, false)
	}
}

func (g *garden) selects(name string, selected bool) {
	p := g.plants[name]
	if !p.held || !g.controls() {
		g.strays[name] = true
	}
	if p.selected = selected; selected {
		g.tell("added", name, false)
	} else {
		g.say("deleted", name, &plant{version: p.version, selected: true, held: p.held}, false)
	}
}

// tell sends an event of an object that is there.
func (g *garden) tell(typ, name string, same bool) {
	if p := g.plants[name]; p.selected {
		g.say(typ, name, p, same)
	}
}

func (g *garden) say(typ, name string, p *plant, same bool) {
	g.note("cluster: %s %s %+v", typ, name, *p)
	if g.live == "" || !p.selected {
		return
	}
	g.inbox = append(g.inbox, WatchChanged{ID: g.live, Events: []builtins.Event{{Type: typ, Binding: "nodes", Name: name,
		Deleting: p.deleting, Held: p.held, Same: same, Result: starlark.MakeInt64(p.version)}}})
}

func (g *garden) tick() {
	if !g.wake.IsZero() && !g.wake.After(g.now) {
		g.wake = time.Time{}
		g.handle(Tick{})
	}
}

func (g *garden) step() bool {
	if len(g.inbox) > 0 && (len(g.pending) == 0 || g.r.IntN(2) == 0) {
		in := g.inbox[0]
		g.inbox = g.inbox[1:]
		g.handle(in)
		return true
	}
	if len(g.pending) == 0 {
		return false
	}
	i := g.r.IntN(len(g.pending))
	a := g.pending[i]
	g.pending = slices.Delete(g.pending, i, i+1)
	if in := g.carryOut(a); in != nil {
		g.inbox = append(g.inbox, in)
	}
	return true
}

func (g *garden) handle(in Input) {
	if _, ok := in.(Start); !ok {
		g.note("%s  > %T %+v", g.now.Format("05.000"), in, in)
	}
	actions := g.e.Handle(g.now, in)
	wantInStep(g.t, g.e)
	for _, a := range actions {
		switch a := a.(type) {
		case Wake:
			g.wake = a.At
		case StopWatch:
			g.live = ""
			g.pending = slices.DeleteFunc(g.pending, func(p Action) bool { s, ok := p.(StartWatch); return ok && s.ID == a.ID })
		case Note:
			g.note("    %s: %s", a.Hook, a.Message)
		case Uncommitted: // the line follows
		default:
			g.pending = append(g.pending, a)
		}
	}
}

func (g *garden) carryOut(a Action) Input {
	g.note("%s  < %T %+v", g.now.Format("05.000"), a, a)
	switch a := a.(type) {
	case StartWatch:
		g.live = a.ID
		in := WatchSynced{ID: a.ID, Served: true}
		for _, name := range slices.Sorted(maps.Keys(g.plants)) {
			if p := g.plants[name]; p.selected {
				in.Objects = append(in.Objects, Object{Name: name, Deleting: p.deleting, Held: p.held})
			}
		}
		return in
	case RunHook:
		return g.run(a)
	case Commit:
		for _, w := range a.Writes {
			if g.chance(8) {
				return Committed{Run: a.Run, Err: errBoom}
			}
			if err := g.write(w); err != nil {
				return Committed{Run: a.Run, Err: err}
			}
		}
		if g.chance(8) {
			return Committed{Run: a.Run, Err: errBoom}
		}
		return Committed{Run: a.Run}
	case Save:
		if g.chance(8) {
			return Saved{Op: a.Op, Err: errBoom}
		}
		g.kept[a.Module] = a.Data
		return Saved{Op: a.Op}
	case Unhold:
		return g.unhold(a)
	case Release:
		return Released{Op: a.Op, Revision: 1}
	case Uninstall:
		return Uninstalled{Op: a.Op}
	}
	return nil
}

func (g *garden) run(a RunHook) Input {
	p := g.plants[a.Key]
	if (p == nil || !p.selected) && a.Object == nil {
		return RunDone{Run: a.Run, Gone: true}
	}
	if g.chance(6) {
		return RunDone{Run: a.Run, Err: errBoom}
	}
	write := effect.Write{Kind: effect.WriteDelete, Ref: effect.Ref{Kind: "Made", Name: a.Key}}
	_, made := g.made[a.Key]
	switch {
	case a.Cleanup && a.Hook.Controller == nil:
		return RunDone{Run: a.Run, Effects: effect.Effects{Writes: []effect.Write{write}}}
	case a.Cleanup && made: // the parent goes once somebody has seen that the child is gone
		return RunDone{Run: a.Run, Waits: "its child goes first", Effects: effect.Effects{Writes: []effect.Write{write}, Requeue: time.Second}}
	case a.Cleanup:
		return RunDone{Run: a.Run}
	}
	if p == nil || !p.selected {
		g.t.Errorf("a run about %s, which is gone, is no cleanup", a.Key)
		return RunDone{Run: a.Run, Gone: true}
	}
	eff := set("seen."+a.Key, p.version)
	eff.State = map[string]any{"version": p.version}
	if g.wants(p) {
		write.Kind, write.Object = effect.WriteApply, map[string]any{"version": p.version}
	}
	if g.wants(p) || made {
		eff.Writes = []effect.Write{write}
	}
	if g.chance(2) {
		eff.Requeue = time.Minute
	}
	return RunDone{Run: a.Run, Effects: eff, Children: len(eff.Writes) > 0}
}

// wants says whether something is made for an object. Some parents want no child.
func (g *garden) wants(p *plant) bool { return !g.controls() || p.version%3 != 0 }

func (g *garden) write(w effect.Write) error {
	name := w.Ref.Name
	p := g.plants[name]
	switch w.Kind {
	case effect.WriteApply:
		if p != nil && !p.held {
			g.strays[name] = true // stripped in between; the next run holds it again
		}
		g.made[name] = w.Object["version"].(int64)
	case effect.WriteDelete:
		delete(g.made, name)
	case effect.WriteAddFinalizer:
		switch {
		case p == nil:
			return fmt.Errorf("%s is gone", name)
		case p.held:
		case p.deleting:
			return fmt.Errorf("%s is being deleted", name)
		default:
			p.held = true
			g.tell("modified", name, true)
		}
	case effect.WriteRemoveFinalizer:
		if _, made := g.made[name]; made && g.controls() {
			g.t.Errorf("%s goes before its child", name)
		}
		if p != nil && p.held {
			g.release(name)
		}
	}
	return nil
}

func (g *garden) release(name string) {
	p := g.plants[name]
	p.held = false
	if p.deleting {
		delete(g.plants, name)
		g.say("deleted", name, p, false)
	} else {
		g.tell("modified", name, true)
	}
}

func (g *garden) unhold(a Unhold) Input {
	if a.Watch != "" && a.Watch != g.live || g.chance(4) {
		return Unheld{Op: a.Op, Err: errBoom}
	}
	done := Unheld{Op: a.Op}
	for _, name := range slices.Sorted(maps.Keys(g.plants)) {
		switch p := g.plants[name]; {
		case !p.held || a.Watch != "" && p.selected:
		case a.Cleans:
			done.Unwatched = append(done.Unwatched, Unwatched{Name: name, Object: starlark.MakeInt64(p.version)})
		default:
			g.strays[name] = g.strays[name] || a.Watch == "" || !g.controls() // without its cleanup
			g.release(name)
		}
	}
	return done
}

// settle lets everything happen, retries too.
func (g *garden) settle() {
	for range 20_000 {
		if g.step() {
			continue
		}
		if g.wake.IsZero() || g.wake.Sub(g.now) > 30*time.Second && g.e.requeueOnly(g.wake) {
			return
		}
		g.now = g.wake
		g.tick()
	}
	g.t.Error("does not come to rest")
}

// requeueOnly says that nothing but a requeue falls due at that time.
func (e *Engine) requeueOnly(at time.Time) bool {
	return slices.ContainsFunc(e.requeues(), at.Equal)
}

func (g *garden) check() {
	want := map[string]any{}
	for name, p := range g.plants {
		switch {
		case p.deleting && p.selected:
			g.t.Errorf("%s is still there: %+v", name, *p)
		case p.deleting:
		case g.on && p.selected && !g.wants(p):
			if _, made := g.made[name]; made {
				g.t.Errorf("%s is %+v, and has a child", name, *p)
			}
		case g.on && p.selected && (!p.held || g.made[name] != p.version):
			g.t.Errorf("%s is %+v, made %d", name, *p, g.made[name])
		case (!g.on || !p.selected) && p.held:
			g.t.Errorf("%s is held: %+v", name, *p)
		}
		if g.on && p.selected && !p.deleting {
			want[name] = p.version
		}
	}
	for name := range g.made {
		if p := g.plants[name]; (p == nil || g.on && !p.selected && g.controls()) && !g.strays[name] {
			g.t.Errorf("%s is gone without its cleanup", name)
		}
	}
	m := g.e.modules["web"]
	got, _ := m.values.View()["seen"].(map[string]any)
	if fmt.Sprint(got) != fmt.Sprint(want) && len(got)+len(want) > 0 {
		g.t.Errorf("values %v, want %v", got, want)
	}
	n := 0
	for key := range g.kept["web"] {
		if strings.HasPrefix(key, subjects.StateKey) {
			n++
		}
	}
	if n != len(want) {
		g.t.Errorf("%d states are kept, want %d", n, len(want))
	}
	if state, why := g.e.moduleState(m); g.on && state != status.ModuleReady || !g.on && state != status.ModuleOff {
		g.t.Errorf("the module is %s: %s", state, why)
	}
	if !m.store.Clean() || runs(g.e) > 0 {
		g.t.Error("something is under way")
	}
}
