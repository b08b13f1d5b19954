// Package sim drives the engine in a simulated cluster: the same engine, executor and
// clients as in a real one, on an API server in memory and a clock that stands still
// until it is moved. It has no goroutines: every call ends when nothing is left to do.
package sim

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"go.starlark.net/starlark"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/metrics"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/pki"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

// Begin is the time at which a world begins unless it is told otherwise.
var Begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Options says what world it is. Generation and Builtins are required.
type Options struct {
	Generation *generation.Generation
	// Builtins are the built-in kinds; worlds share them.
	Builtins *store.Builtins
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	// Namespace and Name are the instance; default: "starling-system", "starling".
	Namespace, Name string
	// HTTP answers http.get; nil: nobody does.
	HTTP builtins.Fetcher
	// Pods asks containers; nil: nobody answers.
	Answerer builtins.Answerer
	// Env looks up an environment variable for a hook; nil: none may be read.
	Env func(name string) (string, error)
	// Keys remembers the keys of hooks in all worlds of a test, which have the same random bytes; nil: none is remembered.
	Keys *pki.Keys
	// Seed, when it is not 0, has what happens happen in its own order:
	// late, doubled and merged, with failing calls and crashes in between. Its world is Patient.
	Seed uint64
	// Patient waits, whenever it settles, until what has failed has succeeded.
	Patient bool
	// Origin is the cluster that the world lies over: what it does not know it reads
	// there, what happens in it stays in it. Nil: the cluster is empty.
	Origin store.Origin
	// Now is the time at which the world begins; zero: [Begin].
	Now time.Time
	// PauseAll leaves every release alone, Paused those of these modules.
	PauseAll bool
	Paused   []string
	// Twice has controllers asked twice: see [hook.Request].
	Twice bool
	// Plans has act make no calls.
	Plans bool
	// Log takes what hooks and the engine say; nil: nobody does.
	Log Log
	// makeNamespaces makes a namespace as soon as something is written into it.
	makeNamespaces bool
	// Record takes the runs; nil: nobody does.
	Record func(*record.Trace)
	// Uncommitted is told of runs that Record has taken, and whose commit has failed
	// since; nil: nobody is.
	Uncommitted func(run uint64, err error)
}

// Log takes one line that a hook or, with hook "", the engine says.
type Log func(module, hook string, level builtins.Level, msg string, fields []builtins.Field)

// Listen replaces [Options.Log]; nil: nobody listens.
func (w *World) Listen(log Log) {
	if log == nil {
		log = func(string, string, builtins.Level, string, []builtins.Field) {}
	}
	w.o.Log = log
}

// Place names in messages where the user's config says something, by its key and the path below it. Without it that
// is the ConfigMap.
func (w *World) Place(place func(key, path string) string) { w.place = place }

// Watch has a function told of each run that has ended, with the ctx that it was given; nil: nobody is told.
func (w *World) Watch(ran func(hook, key string, ctx starlark.Value)) { w.ran = ran }

// World is one cluster with, at most, one process in it. It is not safe for concurrent
// use.
type World struct {
	o      Options
	now    time.Time
	store  *store.Store
	client *cluster.Client

	engine   *engine.Engine // nil: no process
	place    func(key, path string) string
	refused  string // why the last generation was, or ""
	executor *executor.Executor
	kept     *cluster.Kept
	releases *release.Manager
	watches  map[string]*follower
	drift    *drift.Tracker
	drifting map[string]*follower // of drift
	drifted  []string             // modules of whose releases the engine has to be told
	pending  []engine.Action
	flights  []*flight
	line     *line // of the process
	wakeAt   time.Time
	config   *engine.Config // as the engine was told last
	// configVersion is the state of the cluster in which it was read last.
	configVersion string
	// answered are the states of the cluster in which charts were last: what it serves, and what was looked up.
	answered [2]string
	objects  map[string]modules.Object // those of Module, of any instance
	answers  map[uint64]engine.Respond
	reviews  map[string]*engine.Review // by hook
	asked    uint64
	chaos    *chaos           // with a seed
	moving   *workloads.Mover // nil: workloads stay as they are
	requests *counted
	families map[string]engine.RunHook // the last run of each controller about each parent
	filled   map[string][]string       // keys of data that controllers make with Secrets, by the Secret's name
	asking   bool                      // what is asked now is no run: nobody hears of it
	ran      func(hook, key string, ctx starlark.Value)
	// stale are the kinds that the next process lists from the past, with the version; past
	// are those of this one.
	stale, past map[string]string
	busy        map[string]int // how often each hook ran, and each release was looked at, at this time
	endless     bool           // one of them too often

	// Runs are the runs since the world began, in order.
	Runs []Run
	// Metrics are those that hooks have set.
	Metrics *metrics.Hooks
	// Sent are the messages of http.send, in order.
	Sent []engine.Send
	// Writes counts what was written: commits with writes, saves and releases that
	// changed something.
	Writes int
}

// Run is one run that has ended.
type Run struct {
	Hook, Key string
	Cleanup   bool
	// Asked says that somebody waited for its answer, or its error.
	Asked bool
	engine.RunDone
	// Committed is the error of the commit, or nil.
	Committed error
	Logs      []Line
}

// Line is one line that a run has logged.
type Line struct {
	Level  builtins.Level
	Text   string
	Fields []builtins.Field
}

// New makes a world without a process.
func New(o Options) (*World, error) {
	if o.Namespace == "" {
		o.Namespace = "starling-system"
	}
	if o.Name == "" {
		o.Name = "starling"
	}
	if o.Now.IsZero() {
		o.Now = Begin
	}
	w := &World{o: o, now: o.Now, Metrics: metrics.New()}
	w.Listen(o.Log)
	var err error
	if w.store, err = newStore(store.Options{
		Builtins: o.Builtins, Now: w.Now, MakeNamespaces: o.Origin == nil || o.makeNamespaces, Convert: w.converted,
	}, o.Origin); err != nil {
		return nil, err
	}
	if o.Seed != 0 {
		w.chaos = newChaos(o.Seed, func(text string) { w.o.Log("", "", builtins.LevelDebug, "seed: "+text, nil) })
	}
	w.requests = &counted{next: rest.New(rest.Options{Store: w.store})}
	if w.client, err = cluster.New(cluster.Options{
		Config: &clientrest.Config{
			Host: "http://simulated", Transport: w.requests,
			ContentConfig: clientrest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
		},
		QPS: -1, Log: zerolog.Nop(),
	}); err != nil {
		return nil, err
	}
	w.client.UseSeal(sealOf(o, w.Now))
	w.client.UseOthers(func(ref effect.Ref) bool {
		return modules.Others(w.objects, effect.Instance{Namespace: o.Namespace, Name: o.Name}, ref)
	})
	return w, nil
}

func newStore(o store.Options, origin store.Origin) (*store.Store, error) {
	if origin == nil {
		return store.New(o), nil
	}
	return store.Over(o, origin)
}

// Now is the time of the world.
func (w *World) Now() time.Time { return w.now }

// Store is what the world's API server holds.
func (w *World) Store() *store.Store { return w.store }

// Client reaches the world's API server as Starling does.
func (w *World) Client() *cluster.Client { return w.client }

// Start begins a process on what the cluster holds, and settles.
func (w *World) Start(ctx context.Context) error {
	if err := w.Begin(ctx); err != nil {
		return err
	}
	return w.Settle(ctx)
}

// Begin begins a process on what the cluster holds, which does nothing yet.
func (w *World) Begin(ctx context.Context) error {
	own := effect.Instance{Namespace: w.o.Namespace, Name: w.o.Name}
	instance := own.Label()
	w.watches, w.pending, w.wakeAt, w.config = map[string]*follower{}, nil, time.Time{}, nil
	w.configVersion, w.answered = "", [2]string{}
	w.past, w.stale = w.stale, nil
	w.families = map[string]engine.RunHook{}
	w.answers, w.reviews = map[uint64]engine.Respond{}, map[string]*engine.Review{}
	w.Metrics = metrics.New()
	w.engine = engine.New(engine.Options{
		Namespace: w.o.Namespace, Name: w.o.Name, Place: w.place, PauseAll: w.o.PauseAll, Paused: w.o.Paused, Jitter: func() float64 { return 0 },
	})
	w.kept = cluster.NewKept(cluster.KeptOptions{Client: w.client, Namespace: w.o.Namespace, Name: w.o.Name, Instance: instance})
	var err error
	if w.releases, err = release.New(release.Options{
		Client: w.client, Config: w.dialled(), Discovery: w.capabilities(), Mapper: w.client.Mapper(), Folders: w.folders,
		Instance: instance, Namespace: w.o.Namespace, Name: w.o.Name, Await: w.hold, Now: w.Now, Renderer: w.o.Renderer, Seal: w.client.Seal(), Others: w.client.Others, Log: zerolog.Nop(),
	}); err != nil {
		return err
	}
	w.openDrift(instance)
	w.executor = executor.New(executor.Options{
		Client: w.client, Kept: w.kept, Releases: w.releases, Drift: w.drift, Watches: followers{w}, Generation: w.o.Generation, Instance: own,
		Writer: cluster.NewWriter(cluster.WriterOptions{
			Client: w.client, Namespace: w.o.Namespace, Name: w.o.Name, Instance: instance, JQ: jq.Patch, Now: w.Now, Observe: w.observe, Known: w.known, Pause: w.pause,
			SideBySide: 1, // the same each time
		}),
		HTTP: w.o.HTTP, Answerer: w.o.Answerer, Env: w.o.Env, Now: w.Now, Random: w.random, Twice: w.o.Twice, Plans: w.o.Plans, Log: w.logger, Record: w.record(),
	})
	kept, err := w.kept.Load(ctx)
	if err != nil {
		return cmp.Or(w.store.Lost(), fmt.Errorf("kept values: %w", err))
	}
	installed, err := w.releases.Installed(ctx)
	if err != nil {
		return cmp.Or(w.store.Lost(), fmt.Errorf("release records: %w", err))
	}
	sets, err := w.executor.Sets(ctx)
	if err != nil {
		return cmp.Or(w.store.Lost(), fmt.Errorf("records of sets: %w", err))
	}
	in := engine.Start{Generation: w.o.Generation, Kept: kept, Sets: sets}
	for _, r := range installed {
		in.Installed = append(in.Installed, engine.ReleaseRef(r))
	}
	w.handle(in)
	return nil
}

// maxSteps bounds what happens at one time. Hooks that set each other to work without
// end would never settle.
const maxSteps = 20_000

// Settle lets everything happen that does not wait for a time.
func (w *World) Settle(ctx context.Context) error {
	if w.chaos != nil && w.engine != nil {
		if err := w.disturb(ctx); err != nil {
			return err
		}
	}
	if (w.o.Patient || w.chaos != nil) && w.engine != nil {
		return w.settleFailures(ctx)
	}
	return w.settle(ctx)
}

func (w *World) settle(ctx context.Context) error {
	w.busy, w.endless = nil, false
	for range maxSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := w.step(ctx), w.store.Lost()
		if err == nil && w.endless {
			err = fmt.Errorf("it does not settle: at one time, %s", w.busiest())
		}
		if err != nil || done {
			return err
		}
	}
	return fmt.Errorf("it does not settle: %d steps at one time; %s", maxSteps, w.busiest())
}

// step does one thing; done says that there was nothing to do.
func (w *World) step(ctx context.Context) (done bool) {
	if w.engine == nil {
		return !w.collect() && !w.move()
	}
	if w.look() {
		return false
	}
	if len(w.pending) > 0 {
		a := w.pending[0]
		w.pending = w.pending[1:]
		if in := w.carryOut(ctx, a); in != nil {
			w.handle(in)
		}
		return false
	}
	return !w.collect() && !w.move() && !w.resume()
}

// Advance moves the clock on, and fires what falls due on the way, in order. It settles
// at each such time.
func (w *World) Advance(ctx context.Context, d time.Duration) error {
	end := w.now.Add(d)
	for n := 0; !w.due().IsZero() && !w.due().After(end); n++ {
		if n == maxSteps {
			return fmt.Errorf("more than %d timers fall due within %s: move the clock in shorter steps", maxSteps, d)
		}
		if err := w.tick(ctx); err != nil {
			return err
		}
	}
	if w.now = end; d >= atRest {
		w.heedPromises(ctx)
	}
	return nil
}

func (w *World) handle(in engine.Input) {
	actions := w.engine.Handle(w.now, in)
	for _, a := range actions {
		switch a := a.(type) {
		case engine.Wake:
			w.wakeAt = a.At
		case engine.Adopted:
			w.adopt(a.Generation)
		case engine.Refused:
			w.refused = a.Reason
		case engine.Gone:
			w.gone(a)
			if a.Hook == "" {
				w.pending = append(w.pending, a)
			}
		case engine.StopWatch:
			// At once: what the watch still says must not be heard.
			delete(w.watches, a.ID)
		case engine.Uncommitted:
			if w.o.Uncommitted != nil {
				w.o.Uncommitted(a.Run, a.Err)
			}
		case engine.Review:
			w.reviews[a.Hook.ID] = &a
		case engine.Respond:
			w.answers[a.ID] = a
		case engine.DropSets:
			w.executor.DropSets(a)
		case engine.RemoveSets:
			w.pending = append(w.pending, removeSets{a, w.executor.SetMark()})
		default:
			w.pending = append(w.pending, a)
		}
	}
	w.heed(actions)
}
