// Package live drives the engine in a real cluster: it carries out the engine's
// actions with goroutines and client-go, and hands the results back as inputs.
package live

import (
	"context"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/drift"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/httpclient"
	"github.com/starling-operator/starling/runtime/httpserver"
	"github.com/starling-operator/starling/runtime/inputs"
	"github.com/starling-operator/starling/runtime/modules"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/tracing"
	"github.com/starling-operator/starling/runtime/watch"
	"github.com/starling-operator/starling/runtime/webhook"
)

// Options configures a [Driver]. All fields but Paused, PauseAll, History, ModuleObjects, Renderer,
// Lease, Webhooks, Receive, Traces, Inputs and Told are required.
type Options struct {
	Client     *cluster.Client
	Generation *generation.Generation
	// Load compiles a module tree after a generation; nil: [Driver.Reload] is not
	// called.
	Load func(ctx context.Context, t *tree.Tree, previous *generation.Generation) *generation.Generation
	// Namespace and Name are the instance: <namespace>/<name>.
	Namespace, Name string
	Version         string
	// StateDir is a folder of this instance that outlives a crash.
	StateDir string
	// Marks are those of StateDir.
	Marks *Marks
	// PauseAll leaves every release alone, Paused those of some modules.
	PauseAll bool
	Paused   []string
	// History is how many revisions of a release are kept; 0: the default of package release.
	History int
	// ModuleObjects keeps a Module object per module, and takes in its spec.
	ModuleObjects bool
	// Renderer evaluates charts under limits; nil: they are evaluated without any.
	Renderer *chart.Renderer
	// Lease are the times of the Lease; zero: those of [DefaultLeaseTimes].
	Lease LeaseTimes
	// Webhooks says how the API server reaches hooks.
	Webhooks webhook.Endpoint
	// Receive is where requests for http.receive come in; nil: nowhere.
	Receive *httpserver.Listener
	// Metrics takes the driver's own metrics and those of hooks.
	Metrics *Metrics
	// Env looks up an environment variable for a hook; nil: none may be read.
	Env func(name string) (string, error)
	// Traces makes spans of what is done; nil: there are none.
	Traces *tracing.Tracer
	// Inputs writes down what the engine is given; nil: nobody does.
	Inputs *inputs.Recorder
	Log    zerolog.Logger
	// Told has a line for each thing that is done; nil: nobody reads along.
	Told *zerolog.Logger
}

// Driver runs one instance.
type Driver struct {
	o     Options
	inbox *inbox
	// engine is the one that is given inputs: leading, or while this process stands by another
	// one. leading has no Start before the Lease is held.
	engine   *engine.Engine
	leading  *engine.Engine
	watches  *watch.Manager
	drift    *drift.Tracker
	kept     *cluster.Kept
	writer   *cluster.Writer
	releases *release.Manager
	metrics  *Metrics
	executor *executor.Executor
	recorder *record.Recorder
	traces   *traces
	told     *teller
	process  string // what the ids of runs begin with
	// recordsKey says where the key of records is.
	recordsKey cluster.SecretKey
	since      time.Time // when the process began
	marks      *Marks
	unmarked   atomic.Bool // the last run could not be marked
	watching   sync.Map    // what each watch was started with, an engine.StartWatch, by its id
	requests   *requests
	web        *httpclient.Client
	outbox     *outbox
	webhooks   *webhook.Manager
	answers    *answers
	receive    *httpserver.Server
	// forwarder hands requests for http.receive to the process that leads.
	forwarder *httpserver.Forwarder
	holder    *holder
	identity  string // of this process, in the Lease
	// webhooksAt and receiveAt are where other processes reach this one; "": nowhere.
	webhooksAt, receiveAt string
	// generation is the one in force. Only the engine's goroutine puts another one
	// there.
	generation atomic.Pointer[generation.Generation]
	// reloadFailure is why the last state of the module tree is not in force; nil: it is.
	reloadFailure atomic.Pointer[status.ReloadFailure]
	// eventWarned: the last Event about the module tree says that something is wrong.
	eventWarned atomic.Bool
	// started: the engine that leads has begun. Only its goroutine sets it.
	started atomic.Bool
	// begun: the engine has had its Start. For the engine's goroutine alone.
	begun bool
	// answering: the engine says who answers reviews, or one before it has said so.
	answering atomic.Bool
	// freed says that nobody holds the Lease, as sight has it.
	freed chan struct{}
	sight *leaseSight
	trees *trees
	// warm: it has been able to answer the API server, and therefore still is.
	warm bool
	// served: it has been ready, and was so when it took over.
	served atomic.Bool
	// inherits: something that the engine that stood by has said counts still.
	inherits bool
	// outgoing are the watches of the engine that stood by, until the one that leads has its own.
	outgoing []string
	clock    *clock
	// timer ends the sleep until wakeAt; zero: nothing is waited for.
	timer  *time.Timer
	wakeAt time.Time
	// look asks for a look at the engine for the metrics, looking means that it is set.
	look    *time.Timer
	looking bool
	// configSeen is true once the watch of the user's ConfigMap is complete.
	configSeen atomic.Bool
	user       *userConfig
	objects    *modules.Manager
	// globalFailing are the global hooks of whose failure an Event has told.
	globalFailing modules.Failing
	repairs       sync.Map // the last *modules.Repair, by module
	// checks has room for the checks of Module objects that go on at once.
	checks chan struct{}

	// term is the one under way, terms hands the next one to the loop.
	term  atomic.Pointer[term]
	terms chan *term
	used  uint64 // the highest number of all engines that there were
	// ends is the context of requests: it ends with the process.
	ends context.Context
	quit context.CancelFunc
	// serve is the context of what the API server asks, serving are its answers: both outlive the Lease.
	serve       context.Context
	stopServing context.CancelFunc
	serving     tasks
	// answerReviews and keepRecords begin once, and go on until the end.
	answerReviews, keepRecords func()

	slots     *slots
	helmSlots *helmSlots

	asks  chan func(*engine.Engine)
	pulse *pulse
	done  chan struct{} // closed when Run ends
}

const (
	// maxWaiting bounds the actions that wait for objects, or for hooks of Helm.
	maxWaiting = 64
	// goneFor is how long a module must be gone from the tree before it is uninstalled.
	goneFor = 10 * time.Second
	// stopGrace is how long work under way may take to end on SIGTERM.
	stopGrace = 8 * time.Second
	// stopPatience is how long a stop waits for work that writes nothing any more.
	stopPatience = time.Second
)

// engineOptions are those of an engine.
func (d *Driver) engineOptions() engine.Options {
	return engine.Options{
		Namespace: d.o.Namespace, Name: d.o.Name, PauseAll: d.o.PauseAll, Paused: d.o.Paused,
		Grace: goneFor, Jitter: rand.Float64, Mark: d.pulse.evaluating(d.o.Marks.Evaluating),
	}
}

// New prepares a driver. Nothing runs before [Driver.Run].
func New(o Options) (*Driver, error) {
	if o.Lease == (LeaseTimes{}) {
		o.Lease = DefaultLeaseTimes()
	}
	own := effect.Instance{Namespace: o.Namespace, Name: o.Name}
	instance := own.Label()
	d := &Driver{
		o: o, inbox: newInbox(),
		since:     time.Now(),
		holder:    newHolder(),
		metrics:   o.Metrics,
		requests:  newRequests(),
		answers:   newAnswers(),
		clock:     newClock(),
		timer:     time.NewTimer(time.Hour),
		look:      time.NewTimer(time.Hour),
		slots:     newSlots(),
		helmSlots: newHelmSlots(debug.SetMemoryLimit(-1), maxWaiting),
		asks:      make(chan func(*engine.Engine)),
		checks:    make(chan struct{}, 2),
		pulse:     newPulse(),
		freed:     make(chan struct{}, 1),
		terms:     make(chan *term),
		done:      make(chan struct{}),
	}
	d.leading = engine.New(o.Inputs.Options(d.engineOptions()))
	d.engine = d.leading
	d.sight = &leaseSight{free: func() { tell(d.freed) }}
	d.trees = &trees{own: func() string { return d.generation.Load().Tree.Digest }}
	d.findAddresses()
	d.term.Store(newTerm())
	d.answerReviews = sync.OnceFunc(func() { d.serving.Go(func() { d.webhooks.Run(d.serve) }) })
	d.keepRecords = sync.OnceFunc(func() { d.serving.Go(func() { d.recorder.Run(d.serve) }) })
	d.kept = cluster.NewKept(cluster.KeptOptions{Client: o.Client, Namespace: o.Namespace, Name: o.Name, Instance: instance, Conflict: d.lose})
	d.timer.Stop()
	d.look.Stop()
	d.ends, d.quit = context.WithCancel(context.Background())
	d.serve, d.stopServing = context.WithCancel(context.Background())
	d.web = httpclient.New(httpclient.Options{UserAgent: "starling/" + o.Version, Proxy: http.ProxyFromEnvironment})
	d.outbox = newOutbox(outboxOptions{
		send: func(ctx context.Context, r effect.Request) error {
			return d.guard(func() error { return d.web.Send(ctx, r) })
		},
		done: func(module string, m engine.Message) {
			d.inbox.put(engine.Sent{Module: module, Sums: map[string]string{m.Name: m.Sum}})
		},
		log: d.log, changed: func() { d.objects.Changed() }, jitter: rand.Float64, metrics: o.Metrics,
	})
	d.generation.Store(o.Generation)
	d.marks = o.Marks
	o.Client.UseSeal(effect.NewSeal(time.Now))
	var err error
	if d.releases, err = release.New(release.Options{
		Client: o.Client, Config: o.Client.Config(), Discovery: o.Client.Discovery(), Mapper: o.Client.Mapper(),
		Instance: instance, Namespace: o.Namespace, Name: o.Name, Log: o.Log,
		Renderer: o.Renderer, History: o.History, Seal: o.Client.Seal(), Others: o.Client.Others,
		Older:    d.older,
		Converts: func(crd string) bool { return d.generation.Load().Converts(crd) },
		Folders:  func() []*tree.Module { return d.generation.Load().Folders() },
	}); err != nil {
		return nil, err
	}
	d.openObjects(own)
	d.watches = watch.New(watch.Options{Client: o.Client, Sink: sink{d}})
	d.metrics.state.sizes(d.watches.Size)
	d.drift = drift.New(drift.Options{
		Instance: instance, Manager: release.FieldManager, Start: d.watches.Start, Stop: d.watches.Stop,
		Changed: func(module string) { d.inbox.put(engine.Drift{Module: module}) },
	})
	d.writer = cluster.NewWriter(cluster.WriterOptions{
		Client: o.Client, Namespace: o.Namespace, Name: o.Name, Instance: instance,
		Observe: func(ref effect.Ref, obj map[string]any, cause *effect.Cause, asked time.Time) {
			d.watches.Observe(ref, obj, cause, asked) // the next snapshot shows what was written
			d.told.wrote(ref, obj, cause)
		},
		Warn: func(manager, text string) {
			d.log(effect.ManagerModule(manager), strings.TrimPrefix(manager, effect.Manager(""))).Log(builtins.LevelWarn, text, nil)
		},
		Known: d.watches.Whole, JQ: jq.Patch,
	})
	d.openRecorder(instance)
	d.traces = newTraces(o.Traces, d.process)
	d.told = newTeller(o.Told)
	d.executor = executor.New(executor.Options{
		Client: o.Client, Writer: d.writer, Kept: d.kept, Releases: d.releases, Drift: d.drift, Watches: d.watches,
		Generation: o.Generation, Instance: own, HTTP: fetcher{d.web, d.marks}, Answerer: answerer{o.Client, d.marks}, Env: o.Env, Now: d.clock.now, Log: d.hookLog,
		Record: d.recorder.Take, Mark: d.marks.Evaluating, Charge: d.slots.charge,
	})
	d.openReceive(o.Receive)
	d.o.Generation = nil // there may soon be another one
	return d, d.openWebhooks(instance)
}

func (d *Driver) handle(in engine.Input) {
	if start, ok := in.(engine.Start); ok {
		if start.Standby != d.standsBy() || d.begun {
			return // the Lease has come meanwhile, or there was one
		}
		if start.Standby {
			start.Kept = d.whatIsKept(anyModule) // as it is now: changes come later
		}
		start.Numbers = d.term.Load().numbers
		// With the tree as it is now: it may have changed while the Lease was waited for.
		start.Generation = d.generation.Load()
		start.Barred = d.barred(start.Generation)
		d.metrics.generation.Set(float64(start.Generation.Number))
		in, d.begun = start, true
		d.started.Store(!start.Standby)
		d.answering.Store(true)
	}
	if of, ok := in.(engine.Drift); ok {
		in = d.drift.Drift(of.Module) // as it is now: many changes may have come since
	}
	for _, a := range d.decide(in) {
		d.do(a)
	}
	if start, ok := in.(engine.Start); ok {
		d.marks.use(start.Generation)
	}
	d.objects.Changed()
	d.metrics.rests(time.Now(), d.engine.AtRest())
	// Once a second at most, and after the last input too.
	if !d.looking {
		d.looking = true
		d.look.Reset(time.Second)
	}
}

// decide hands an input to the engine. Those of the one that leads are written down.
func (d *Driver) decide(in engine.Input) []engine.Action {
	now := d.clock.now()
	if err := d.clock.wrong(); err != nil {
		d.lose(err)
	}
	if d.standsBy() {
		return d.engine.Handle(now, in)
	}
	return d.o.Inputs.Handle(d.engine, now, in)
}
