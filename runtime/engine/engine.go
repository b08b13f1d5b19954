// Package engine decides what Starling does. It is a state machine without I/O: [Engine.Handle] takes one input (a
// watch event, the end of a hook run, the time) and returns the actions that follow (run this hook, commit these
// effects, upgrade this release). Drivers carry the actions out and hand the results back. It knows no goroutine, no
// clock and no client, so that the live driver and a simulated one see the same decisions for the same inputs.
//
// The way of one event: watch.go → lane (hook.go) → run → check and commit (commit.go) → what is kept (save.go) →
// values (values.go, layers) → pass over the release (pass.go) → status.go. package verdicts alone decides what
// becomes of a module. The packages below are machines that know nothing of each other.
package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/engine/agenda"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/engine/layers"
	"github.com/starling-operator/starling/runtime/engine/standings"
	"github.com/starling-operator/starling/runtime/engine/userconfig"
)

// Options configures an [Engine].
type Options struct {
	// Namespace is the operator's: the default of modules that name none.
	Namespace string
	// Name is the instance's name, which is also its ConfigMap's.
	Name string
	// Place names in messages where the user's config says something, see [userconfig.Options]; nil: its ConfigMap.
	Place func(key, path string) string
	// PauseAll leaves every release alone.
	PauseAll bool
	// Paused names modules whose releases are left alone.
	Paused []string
	// Grace is how long a module must be gone from the tree before anything of it is
	// taken away: who replaces a folder file by file may be slow.
	Grace time.Duration
	// Jitter returns numbers in [0,1) that spread retries. It must not be nil.
	Jitter func() float64
	// Mark is nil if nobody notes what the engine evaluates itself.
	Mark Mark
}

// Mark notes that what belongs to one module is evaluated: a section of the config, values and their schemas. An error
// says why it must not be; ended is called at its end, unless that never comes.
type Mark func(what, digest string) (ended func(ok bool), err error)

// around evaluates something of a module, noted as long as it takes; parts identify it.
func (m Mark) around(what string, parts func() []string, evaluate func() error) error {
	if m == nil {
		return evaluate()
	}
	sum := sha256.New()
	for _, part := range parts() {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	ended, err := m(what, hex.EncodeToString(sum.Sum(nil)))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = evaluate()
	ended(err == nil)
	return err
}

// Engine is the state machine. It is not safe for concurrent use. It alone changes several modules. Work on one is a
// [turn]'s; facts and all that people are shown are a [View]'s.
type Engine struct {
	View
	last common // as it was when all modules were touched
}

// View is what the engine knows of all modules: how far they have come, which go before others, whose values others
// read. Its methods change nothing.
type View struct {
	turn
	global    *module
	layers    *layers.Layers
	modules   map[string]*module // in the tree or not
	standings *standings.Standings
}

// New returns an engine that waits for [Start].
func New(o Options) *Engine {
	e := &Engine{View: View{
		turn: turn{
			ground:  ground{opts: o, agenda: agenda.New()},
			watches: map[string]*hook{}, askedBy: map[uint64]*module{}, wrote: causes.Writes{},
		},
		modules:   map[string]*module{},
		standings: standings.New(),
	}}
	e.layers = layers.New(layers.Options{Evaluate: o.Mark.around})
	place := o.Place
	if place == nil {
		place = func(string, string) string { return o.configWhere() }
	}
	e.config = userconfig.New(userconfig.Options{Where: place, Evaluate: o.Mark.around})
	return e
}

// Handle takes one input at a time and returns what follows from it, in order. Now must not go backwards.
func (e *Engine) Handle(now time.Time, in Input) []Action {
	e.now, e.out = now, nil
	asked := e.agenda.Soonest() // the tick that the driver was asked for
	switch in.(type) {
	case Config, Reconcile, RunNow, Reload:
		e.standings.Outside()
	case WatchSynced, WatchChanged, Tick:
		if !e.endsAll() {
			e.standings.Outside()
		}
	}
	_, asks := in.(Requested) // it gets an answer, whatever has become of its module
	m, one := e.about(in)
	take := e.route
	if e.standsBy() {
		take = e.standby
	}
	if asks || !one || m != nil && !m.barred() {
		e.guard(m, in, func() { take(m, in) })
	}
	if m != nil { // the others are touched where something of theirs has moved
		e.touch(m)
	}
	if _, is := in.(Tick); is {
		asked = now
	}
	if e.gen != nil {
		// Any input may be the first after the time that was waited for. The
		// tick itself may then never come: its timer is set anew.
		if !asked.IsZero() && !asked.After(now) {
			asked = time.Time{}
			e.tick(in)
		}
		e.settle(in)
		e.setWake(asked)
		if e.config.Known() {
			e.standings.AllReady(e.order()) // notes the first time
		}
	}
	return e.out
}

// route hands an input to the function that takes it in; m is the module that it is about, if that is one.
func (e *Engine) route(m *module, in Input) {
	switch in := in.(type) {
	case Start:
		e.start(in)
	case Stays:
		e.stay(in.Until)
	case Reload:
		e.reload(in)
	case Config:
		e.handleConfig(in)
	case Reconcile:
		e.reconcile(in)
	case RunNow:
		e.runNow(in)
	case WatchSynced:
		e.watchSynced(in)
	case WatchChanged:
		e.watchChanged(in)
	case WatchFailed:
		e.watchFailed(in)
	case RunDone:
		e.runDone(in)
	case Requested:
		e.requested(in)
	case Committed:
		e.committed(in)
	case Drift:
		e.drifted(m, in)
	case Sent:
		e.sent(m, in)
	case Evaluated:
		e.evaluated(m, e.take(in.Op), in)
	case SettingsChecked:
		e.settingsChecked(m, e.take(in.Op), in)
	case CRDsApplied:
		e.crdsApplied(m, e.take(in.Op), in)
	case Released:
		e.take(in.Op)
		e.released(m, in)
	case Repaired:
		e.repaired(m, e.take(in.Op), in)
	case Uninstalled:
		e.uninstalled(m, e.take(in.Op), in)
	case Saved:
		e.saved(m, e.take(in.Op), in)
	case SetsRemoved:
		e.setsRemoved(m, e.take(in.Op), in)
	case Unheld:
		e.unheld(m, e.take(in.Op), in)
	}
}

func (e *Engine) start(in Start) {
	e.gen, e.globals.Stays = in.Generation.Whole(), in.Stays
	e.adopt(in)
	e.number(in)
	for _, m := range e.all() {
		e.bar(m.hooks, in.Barred)
	}
	e.adoptConfig()
	e.valuesMoved(nil, e.layers.Compose(), nil)
	e.findRemoved(in)
	if !in.Standby {
		for _, m := range e.everyone() {
			e.sendKept(m)
		}
	}
	e.noteOrder()
	e.applyConfig()
}

func (t *turn) do(a Action) { t.out = append(t.out, a) }

func (t *turn) note(level builtins.Level, m *module, hook, message string) {
	t.do(Note{Level: level, Module: m.name, Hook: hook, Message: message})
}

// touch has settle look at a module.
func (t *turn) touch(m *module) {
	if !m.barred() {
		t.agenda.Touch(m.name)
	}
}

// touchAll has settle look at all modules for which this is true.
func (e *Engine) touchAll(is func(*module) bool) {
	for _, m := range e.everyone() {
		if is(m) {
			e.touch(m)
		}
	}
}

// settle looks at every touched module, in order, until nothing moves. Those that are not
// in the tree come last, when the others have settled.
func (e *Engine) settle(in Input) {
	for {
		if e.placed = e.global.store.Written(orderKey); e.common != e.last {
			e.last = e.common
			e.touchAll(func(*module) bool { return true })
		}
		name := e.agenda.Next()
		more := false
		if name == "" && !e.global.barred() {
			e.guard(e.global, in, func() { more = e.endAll() })
		}
		if more || e.common != e.last { // a panic may have barred the global hooks
			continue
		}
		if name == "" {
			name = e.agenda.NextOther()
		}
		if name == "" {
			return
		}
		if m := e.any(name); !m.barred() {
			e.guard(m, in, func() { e.step(m) })
		}
	}
}

// any returns the module of this name, or global, whether it is in the tree or not; nil when there is none.
func (v *View) any(name string) *module {
	if name == globalName {
		return v.global
	}
	return v.modules[name]
}

// module returns the module of this name, or global; nil when it is not in the tree.
func (v *View) module(name string) *module {
	if m := v.any(name); m != nil && !m.removed {
		return m
	}
	return nil
}

// everyone returns global and every module, those that are not in the tree last.
func (v *View) everyone() []*module { return append([]*module{v.global}, v.known()...) }

// known returns the modules of the tree in order, and then the others.
func (v *View) known() []*module { return v.named(slices.Concat(v.order(), v.agenda.Others())) }

// all returns global and every module of the tree, in order.
func (v *View) all() []*module { return v.named(v.agenda.Tree()) }

// order names every module of the tree, in order. Only after [Start].
func (g *ground) order() []string { return g.agenda.Tree()[1:] }

// gone returns the modules that are not in the tree, sorted.
func (v *View) gone() []*module { return v.named(v.agenda.Others()) }

func (v *View) named(names []string) []*module {
	out := make([]*module, len(names))
	for i, name := range names {
		out[i] = v.any(name)
	}
	return out
}
