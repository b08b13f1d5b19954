package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
)

// answers are the runs that the API server waits for, reviews and conversions. They change
// nothing, so they go beside the engine, and are counted here.
type answers struct {
	mu    sync.Mutex
	runs  uint64
	hooks map[string]*answering // by id
	// takes are modules with hooks that take requests, as the engine has said.
	takes map[string]bool
	// owed are those of the engine that stood by of which the one that leads has said nothing, until late.
	owed map[string]bool
	late time.Time
}

// owedFor is how long what the engine that stood by has said of a module counts where the one that leads cannot begin
// it.
const owedFor = time.Minute

// answering is what is known of one hook.
type answering struct {
	module string
	review *engine.Review // nil: the engine has said nothing of it yet
	// inherited: the engine that stood by has said so. It counts until the one that leads is sure of
	// another; next is what that one has said last.
	inherited bool
	next      *engine.Review

	runs, failures int
	began          time.Time // of the last run
	took           time.Duration
	err            string // of the last run, for the log
	health         health
}

func newAnswers() *answers {
	return &answers{hooks: map[string]*answering{}, takes: map[string]bool{}, owed: map[string]bool{}}
}

func (a *answers) of(h *generation.Hook) *answering {
	if a.hooks[h.ID] == nil {
		a.hooks[h.ID] = &answering{module: h.Module}
	}
	return a.hooks[h.ID]
}

// review notes how a hook answers reviews from now on.
func (a *answers) review(r engine.Review) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.of(r.Hook)
	if h.inherited && r.Refused != "" {
		h.next = &r
		return
	}
	h.review, h.next, h.inherited = &r, nil, false
}

// inherit has all that the engine has said, and what it has inherited, count until another one is sure.
func (a *answers) inherit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owed, a.late = maps.Clone(a.takes), time.Now().Add(owedFor)
	for _, h := range a.hooks {
		h.inherited, h.next = h.review != nil, nil
	}
}

// serve takes in which hooks of a module answer, and which wait: of the others it is sure that they do not.
func (a *answers) serve(module *generation.Module, hooks, waits []*generation.Hook) {
	a.mu.Lock()
	if len(waits) == 0 {
		delete(a.owed, module.Name)
	}
	if delete(a.takes, module.Name); len(hooks) > 0 {
		a.takes[module.Name] = true
	}
	a.mu.Unlock()
	a.settle(func(id string, h *answering) bool {
		is := func(g *generation.Hook) bool { return g.ID == id }
		return h.module == module.Name && !slices.ContainsFunc(hooks, is) && !slices.ContainsFunc(waits, is)
	})
}

// owes says that the engine that leads has yet to say whether hooks of a module take requests; those of the one that
// stood by did.
func (a *answers) owes(module string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owed[module] && time.Now().Before(a.late)
}

// settle has those count that were said last.
func (a *answers) settle(which func(id string, h *answering) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, h := range a.hooks {
		if h.inherited && which(id, h) {
			h.review, h.next, h.inherited = h.next, nil, false
		}
	}
}

// settleAll has those count that were said last, but for modules of which something is owed. It returns whether there
// are any.
func (a *answers) settleAll() (owed bool) {
	a.mu.Lock()
	if !time.Now().Before(a.late) {
		clear(a.owed)
	}
	owed = len(a.owed) > 0
	a.mu.Unlock()
	a.settle(func(_ string, h *answering) bool { return !a.owed[h.module] })
	return owed
}

// reviewOf returns how a hook answers reviews; nil before the engine has said so.
func (a *answers) reviewOf(id string) *engine.Review {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.hooks[id]; h != nil {
		return h.review
	}
	return nil
}

// number is that of the next run.
func (a *answers) number() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs++
	return record.Asked | a.runs
}

// ended counts a run, and returns the error of the one before it.
func (a *answers) ended(run engine.RunHook, done engine.RunDone) (before string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.of(run.Hook)
	before = h.err
	h.runs++
	h.began, h.took, h.err = run.Now, done.Took, ""
	if done.Err != nil {
		h.failures++
		h.err = done.Err.Error()
	}
	return before
}

// gone forgets a hook, or with an empty hook a whole module.
func (a *answers) gone(module, hook string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.hooks, func(id string, h *answering) bool { return id == hook || hook == "" && h.module == module })
	if hook == "" {
		delete(a.takes, module)
		delete(a.owed, module)
	}
}

// add adds what is known of a hook to its status.
func (a *answers) add(s *status.Hook, g *generation.Hook) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := a.hooks[s.ID]
	if h == nil {
		return
	}
	why := h.health.whyOf(g)
	if s.LastError == "" && (s.State != status.HookOff || h.health.off) {
		if s.LastError = why; why != "" && s.State != status.HookRunning {
			s.State = status.HookFailed
		}
	}
	if h.runs == 0 {
		return
	}
	s.Runs += h.runs
	s.Failures += h.failures
	if s.LastRun == nil || h.began.After(*s.LastRun) {
		at := h.began
		s.LastRun, s.Duration = &at, status.Duration(h.took)
	}
	if s.State == status.HookWaiting && h.review != nil && h.review.Refused == "" {
		s.State = status.HookOK
	}
}

// review answers a review as the engine has said.
func (d *Driver) review(ctx context.Context, id string, r *builtins.Request) (builtins.Response, error) {
	h, review := d.generation.Load().Hook(id), d.answers.reviewOf(id)
	switch {
	case h == nil:
		return builtins.Response{}, fmt.Errorf("there is no hook %s: %w", id, engine.ErrNotReady)
	case !d.answering.Load():
		return builtins.Response{}, fmt.Errorf("hook %s: this starling does not hold the lease: %w", id, engine.ErrNotReady)
	case review == nil:
		return builtins.Response{}, fmt.Errorf("hook %s: module %s is not running: %w", id, h.Module, engine.ErrNotReady)
	}
	run, err := review.Answer(d.answers.number(), d.clock.now(), r)
	if err != nil {
		return builtins.Response{}, err
	}
	return d.runAnswer(ctx, run, "request")
}

// runAnswer runs a hook for somebody who waits no longer than ctx. The log calls the run
// by its name. It returns once the run has ended, by the run's own limit where nobody waits any more: until then the
// request holds its place among others, and the room of its body.
func (d *Driver) runAnswer(ctx context.Context, a engine.RunHook, name string) (builtins.Response, error) {
	var done engine.RunDone
	d.keepRecords() // also where this process stands by: the one that leads has made the key before anybody asks
	begun := d.serving.Do(func() {
		done = d.runHook(d.serve, a)
		d.answered(a, done, name)
		d.publish(a, done)
	})
	switch {
	case !begun:
		return builtins.Response{}, errStopping
	case ctx.Err() != nil:
		return builtins.Response{}, ctx.Err()
	case done.Incomplete:
		return builtins.Response{}, fmt.Errorf("hook %s: its snapshots are not complete: %w", a.Hook.ID, engine.ErrNotReady)
	}
	return done.Response, done.Err
}

// publish makes the metrics of a review count. One that has failed publishes none.
func (d *Driver) publish(a engine.RunHook, done engine.RunDone) {
	metrics := done.Effects.Metrics
	if done.Err != nil || done.Incomplete || len(metrics) == 0 || d.generation.Load().Hook(a.Hook.ID) == nil {
		return
	}
	d.do(engine.Publish{Module: a.Hook.Module, Hook: a.Hook.ID, Metrics: metrics})
}

// answered counts a run and logs its error, unless the last one was the same: the API
// server asks again and again.
func (d *Driver) answered(a engine.RunHook, done engine.RunDone, name string) {
	if done.Incomplete || d.generation.Load().Hook(a.Hook.ID) == nil {
		return // no run, or of a hook that is gone meanwhile and must not come back
	}
	note := engine.Note{Module: a.Hook.Module, Hook: a.Hook.ID}
	switch before := d.answers.ended(a, done); {
	case done.Err != nil && done.Err.Error() != before:
		note.Level, note.Err, note.Message = builtins.LevelError, done.Err, done.Err.Error()+" (the "+name+" failed)"
		d.note(note)
	case done.Err == nil && before != "":
		note.Level, note.Message = builtins.LevelInfo, "runs again"
		d.note(note)
	}
}
