package script

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
)

// Limits bound one run. A zero field means the default.
type Limits struct {
	// Steps is the number of interpreter steps; default 50 million, a few
	// seconds of pure computing.
	Steps uint64
	// Wall is the time from start to end, waiting in builtins included, waiting
	// for the memory turn not; default 30s.
	Wall time.Duration
	// Heap is by how many bytes the heap may grow once this run has the turn
	// (see [Governor]); default 256 MiB, or three tenths of the runtime's memory limit
	// where that is less.
	Heap int64
}

const (
	defaultSteps = 50_000_000
	defaultWall  = 30 * time.Second
	defaultHeap  = 256 << 20
)

func (l Limits) withDefaults() Limits {
	l.Steps = cmp.Or(l.Steps, defaultSteps)
	l.Wall = cmp.Or(l.Wall, defaultWall)
	if l.Heap == 0 {
		l.Heap = int64(min(defaultHeap, memory()/10*3))
	}
	return l
}

// Usage is what one run took.
type Usage struct {
	// Steps counts interpreter steps.
	Steps uint64
	// Wall is the time from start to end.
	Wall time.Duration
	// Waited is how much of it was spent waiting for the memory turn, or for the API
	// server and others.
	Waited time.Duration
}

// Plus is what two calls took, one after the other.
func (u Usage) Plus(next Usage) Usage {
	return Usage{Steps: u.Steps + next.Steps, Wall: u.Wall + next.Wall, Waited: u.Waited + next.Waited}
}

// CallOptions says how one function is called.
type CallOptions struct {
	// Name is the thread's name, for debugging.
	Name string
	// Context is what the builtins may reach. Never nil. Ctx of its Run is set
	// here, to one that ends with the limits.
	Context *builtins.Context
	Limits  Limits
	// Of is the function of a file whose work is done, when the one that is called was made for
	// this call: it is named where an error has no place. Nil: the one that is called.
	Of starlark.Callable
	// Subject is what the call is about, as default/web. While a call does not end, no other about the
	// same subject begins.
	Subject string
}

const (
	// stride is how many steps lie between two cheap checkpoints, which show that
	// the run makes steps and see that it shall wait. A run that has made something
	// large, or goes on alone because the heap is full, has one at each step.
	stride = 64
	// fullEvery is how many steps lie between two checkpoints that look at
	// steps, clock and heap whatever the sampler says.
	fullEvery = 100_000
)

// run is one run: a call, or the loading of a file with all that it loads in
// turn. It spans the threads of nested loads, which share its limits. All but
// cancel is for the goroutine that runs it.
type run struct {
	ctx    context.Context // ends with the caller's, at the wall limit, or on cancel
	stop   context.CancelCauseFunc
	detach func() bool // from the caller's context
	limits Limits
	share  share
	start  time.Time

	mu      sync.Mutex
	threads []*starlark.Thread // innermost last
	cause   error              // why it was cancelled; nil: it was not
	timer   *time.Timer        // the wall limit
	left    time.Duration      // of the wall limit, when the timer was last started
	since   time.Time          // when that was
	waited  time.Duration      // for the memory turn

	spent    uint64 // steps of threads that have ended
	nextFull uint64 // steps of the current thread at which to look at everything
	large    bool   // it has asked for room
	tuples   tuples
	counting []*counting // of the comprehensions under way, innermost last
}

func newRun(ctx context.Context, g *Governor, l Limits) *run {
	r := &run{limits: l.withDefaults(), start: time.Now()}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	r.share.g, r.share.limit, r.share.cancel = g, r.limits.Heap, r.cancel
	r.share.enter()
	r.left, r.since = r.limits.Wall, r.start
	r.timer = time.AfterFunc(r.limits.Wall, func() { r.cancel(&LimitError{Limit: LimitTime, Max: r.limits.Wall.String()}) })
	r.detach = context.AfterFunc(ctx, func() { r.cancel(context.Cause(ctx)) })
	return r
}

// end gives back what the run holds. Threads of it must not be used any more.
func (r *run) end() Usage {
	r.timer.Stop()
	r.detach()
	r.share.leave()
	r.stop(nil)
	return Usage{Steps: r.spent, Wall: time.Since(r.start), Waited: r.waited}
}

// cancel stops the run at its next step, and builtins that wait on the context.
// The first cause counts. It may be called from any goroutine.
func (r *run) cancel(cause error) {
	r.mu.Lock()
	if r.cause != nil {
		r.mu.Unlock()
		return
	}
	r.cause = cause
	for _, t := range r.threads {
		t.Cancel(cause.Error())
	}
	r.mu.Unlock()
	r.stop(cause)
}

// cancelled returns why the run was cancelled, nil when it was not.
func (r *run) cancelled() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause == nil && r.ctx.Err() != nil {
		// A builtin may see the end of the context before cancel is called.
		return context.Cause(r.ctx)
	}
	return r.cause
}

// thread runs f on a new thread of the run and turns a panic into an error.
// loader is the thread's load function; nil where load cannot happen.
func (r *run) thread(name string, c *builtins.Context, loader func(*starlark.Thread, string) (starlark.StringDict, error), f func(*starlark.Thread) error) (err error) {
	t := &starlark.Thread{
		Name: name,
		Load: loader,
		Print: func(_ *starlark.Thread, msg string) {
			c.Log.Log(builtins.LevelInfo, msg, nil)
		},
		OnMaxSteps: r.checkpoint,
	}
	c.Ctx, c.Room = r.ctx, r.room
	builtins.Attach(t, c)
	t.SetLocal(runKey, r)
	r.nextFull = 0
	t.SetMaxExecutionSteps(min(stride, r.limits.Steps+1))
	r.mu.Lock()
	r.threads = append(r.threads, t)
	if r.cause != nil {
		t.Cancel(r.cause.Error())
	}
	r.mu.Unlock()
	defer recoverInto(&err)
	defer func() {
		r.mu.Lock()
		r.threads = r.threads[:len(r.threads)-1]
		r.mu.Unlock()
		r.spent += t.Steps
		r.nextFull = 0 // of the thread that goes on
	}()
	return f(t)
}

// used returns the steps so far, those of suspended threads included.
func (r *run) used() uint64 {
	n := r.spent
	for _, t := range r.threads {
		n += t.Steps
	}
	return n
}

// checkpoint is called by the interpreter every few steps, on the run's
// goroutine.
func (r *run) checkpoint(t *starlark.Thread) {
	step := uint64(stride)
	if r.large || r.share.holds {
		step = 1
	}
	t.SetMaxExecutionSteps(t.Steps + step)
	if !r.share.passed() && t.Steps < r.nextFull {
		return
	}
	used := r.used()
	if used > r.limits.Steps {
		r.cancel(&LimitError{Limit: LimitSteps, Max: fmt.Sprintf("%d steps", r.limits.Steps)})
		return
	}
	if err := r.share.check(r.ctx, r.pause, 0); err != nil {
		r.cancel(err)
		return
	}
	if r.ctx.Err() != nil {
		r.cancel(context.Cause(r.ctx))
		return
	}
	// The next full look comes no later than the step that is one too many.
	r.nextFull = t.Steps + min(fullEvery, r.limits.Steps-used+1)
}

// pause stops the wall clock of the run until the function that it returns is
// called: a run that waits because of others loses no time by it.
func (r *run) pause() func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.timer.Stop() {
		return func() {}
	}
	began := time.Now()
	r.left -= began.Sub(r.since)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.since = time.Now()
		r.waited += r.since.Sub(began)
		r.timer.Reset(max(r.left, 0))
	}
}
