package operator

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	_ "time/tzdata" // schedules have time zones, images need not

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/cmd/starling/simulation"
	"github.com/starling-operator/starling/modules/fetch"
	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/inputs"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/logs"
)

// runFlags are the flags of `starling run`.
type runFlags struct {
	version  string
	instance instance.Instance
	modules  string
	reading  command.Reading
	access   instance.Access
	webhooks webhookFlags
	receive  receiveFlags
	lease    leaseFlags
	listen   listenFlags
	log      process.LogFlags
	history  int
	pause    command.Pause
	dryRun   bool
	reload   bool
	inputs   string
	objects  bool
	env      process.HookEnv
	traces   traceFlags
}

func newRunCommand(version string) *cobra.Command {
	f := &runFlags{version: version}
	cmd := &cobra.Command{
		Use:   "run [TREE]",
		Short: "Watch the cluster, run the hooks, let the releases follow",
		Long: `Reads the module tree, waits for the instance's Lease, then runs the hooks and
installs, upgrades and uninstalls the releases as values and charts change, until it
is stopped. Changes of others in the objects of a release are put right, unless
the module or the user says otherwise. A change of the tree is put in force as a whole,
once all of it loads; else what is in force goes on, and starling get says why. On a
terminal each run from which something comes has a line, and so has each object that it
writes. Stopping, or deleting, starling touches nothing that runs.`,
		Example: `  starling run examples/quickstart
  starling run --modules addons --pause=ingress-nginx`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.dryRun {
				return f.plan(cmd)
			}
			return f.run(cmd.Context(), cmd.ErrOrStderr())
		},
	}
	fs := cmd.Flags()
	f.instance.AddFlags(fs)
	fs.StringVar(&f.modules, "modules", "", command.ModulesUsage+" (required)")
	f.reading.AddFlags(fs)
	f.access.AddFlags(fs)
	f.access.AddLimits(fs)
	f.webhooks.addFlags(fs)
	f.receive.addFlags(fs)
	f.lease.addFlags(fs)
	f.listen.addFlags(fs)
	f.log.AddFlags(fs)
	f.traces.addFlags(fs)
	fs.IntVar(&f.history, "history-max", release.DefaultHistory, "how many `revisions` of a release are kept in the cluster, as helm history shows them")
	f.env.AddFlags(fs)
	fs.StringSliceVar((*[]string)(&f.pause), "pause", nil, "leave the releases of these `modules` alone, or, without names, all; their hooks run")
	fs.Lookup("pause").NoOptDefVal = command.PauseAll
	fs.BoolVar(&f.reload, "reload", true, "follow changes of the module tree; --reload=false keeps to what it was at the start")
	fs.BoolVar(&f.objects, "module-objects", true, "keep one Module object per module in the cluster, with its state, and take in its spec; --module-objects=false does neither")
	fs.StringVar(&f.inputs, "record-inputs", "", "for bugs of starling itself: write all that its engine sees to this new `file`, of 256 MiB at most; Secrets and all values are in it, in the clear, so only this user may read it")
	fs.BoolVar(&f.dryRun, "dry-run", false, "write nothing: print the plan of a first start, as starling plan does, and end")
	command.TreeFirst(cmd, &f.modules, 0, 0)
	return cmd
}

// plan is a run that writes nothing.
func (f *runFlags) plan(cmd *cobra.Command) error {
	w := simulation.World{
		Version: f.version, Instance: f.instance, Access: f.access, Modules: f.modules, Reading: f.reading,
		Live: true, Pause: f.pause, Env: f.env,
	}
	return w.ShowPlan(cmd, "text")
}

func (f *runFlags) run(ctx context.Context, stderr io.Writer) error {
	if err := cmp.Or(f.instance.Complete(), f.access.CheckLimits(), f.lease.check()); err != nil {
		return err
	}
	if f.modules == "" {
		return command.ErrNoTree
	}
	if f.history < 1 {
		return fmt.Errorf("--history-max %d is less than the revision that is deployed; give 1 or more", f.history)
	}
	kept := logs.New(logs.Options{})
	log, told, err := f.log.Open(stderr, kept)
	if err != nil {
		return err
	}
	env, err := f.env.Lookup()
	if err != nil {
		return err
	}
	if err := f.instance.MakeStateDir(); err != nil {
		return err
	}
	// Before the first look at what is in that folder: it may be that of a process that runs.
	lock, err := admin.Lock(f.instance.Socket(), f.instance.Name)
	if err != nil {
		return err
	}
	defer lock.Close()
	marks, err := live.OpenMarks(f.instance.StateDir)
	if err != nil {
		return err
	}
	if err := marks.Uncounted(); err != nil {
		log.Warn().Err(err).Msg("what the last process was at as it ended cannot be noted: this one knows, the next one may not; all goes on")
	}
	defer func() { _ = marks.Clear() }() // what stays counts once
	load := newLoad(log, marks)
	cache := fetch.NewCache(fetch.CacheOptions{Dir: filepath.Join(f.instance.StateDir, "charts"), Log: log})
	go cache.Run(ctx) // no end waits for a server that does not answer
	gen, err := f.load(ctx, load, f.tree(cache))
	switch {
	case ctx.Err() != nil:
		return nil // told to stop meanwhile
	case err != nil:
		return err
	}
	for _, p := range gen.Problems {
		log.Warn().Msg(p.String())
	}
	if err := cmp.Or(f.reading.SomeModule(gen), f.pause.Check(gen)); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	shown, err := f.listen.gatherer(registry)
	if err != nil {
		return err
	}
	metrics, err := live.NewMetrics(registry, f.version)
	if err != nil {
		return err
	}
	traces, err := f.traces.open(&f.instance, f.version, metrics, log)
	if err != nil {
		return err
	}
	webhooks, err := f.webhooks.options(f.instance.Name, instance.PodNamespaceFile)
	if err != nil {
		return err
	}
	webhooks.Serving = process.TuneRequests
	requests, err := f.receive.listen(log)
	if err != nil {
		return err
	}
	f.access.Patient = true
	client, err := f.access.Connect(ctx, f.instance.Namespace, log, metrics.Transport)
	switch {
	case ctx.Err() != nil:
		return nil // told to stop meanwhile
	case err != nil:
		return err
	}
	driver, err := live.New(live.Options{
		Client: client, Generation: gen, Load: load, Namespace: f.instance.Namespace, Name: f.instance.Name,
		Version: f.version, StateDir: f.instance.StateDir, Marks: marks, PauseAll: f.pause.All(), Paused: f.pause, ModuleObjects: f.objects, History: f.history,
		Lease: f.lease.times, Renderer: process.NewRenderer(), Webhooks: webhooks, Receive: requests, Env: env, Metrics: metrics, Traces: traces, Log: log, Told: told,
		Inputs: inputs.Record(inputs.Options{Path: f.inputs, Version: f.version, Log: log}),
	})
	if err != nil {
		return err
	}
	srv, err := admin.New(admin.Options{
		Listen: f.listen.address, CertDir: f.listen.certDir, ClientCA: f.listen.clients, Metrics: shown, Socket: f.instance.Socket(), Locked: true, Name: f.instance.Name,
		Healthy: driver.Healthy, Ready: driver.Ready, Released: driver.Released,
		LogLevel: process.SetLogLevel, Status: driver.Status, Explain: driver.Explain, Parents: driver.Parents, Queues: driver.Queues, RunNow: driver.RunNow, Snapshots: driver.Snapshots, RecordsKey: driver.RecordsKey, RecordsDir: live.RecordsDir(f.instance.StateDir), Replica: driver.Replica, Logs: kept.Lines, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info().Str("instance", f.instance.Namespace+"/"+f.instance.Name).Str("listen", srv.Addr()).
		Int("modules", len(gen.Names)).Msg("starling " + f.version + " starts")

	group, ctx := errgroup.WithContext(ctx)
	cache.Keep(gen.Tree)
	// The end does not wait for a file that loads for ever.
	if f.reload {
		go f.follow(ctx, driver, gen.Tree.Digest, cache, log)
	} else {
		go f.complete(ctx, driver, gen.Tree, cache)
	}
	go process.ReleaseStart(ctx, driver.Started)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error { return srv.Run(serving) })
	if traces != nil {
		group.Go(func() error { traces.Run(serving); return nil })
	}
	group.Go(func() error {
		// Health and metrics are there until the last write is out, and spans of it are sent.
		defer stopServing()
		return driver.Run(ctx)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	log.Info().Msg("stopped; everything that runs stays as it is")
	return nil
}

// tree is how the module tree is read.
func (f *runFlags) tree(cache *fetch.Cache) tree.Options {
	o := f.reading.Options()
	o.Archives = cache.Archive
	return o
}

// load reads and compiles the module tree. A module that is broken does not stop
// the others; a tree that cannot be read, or holds no module, does.
func (f *runFlags) load(ctx context.Context, load load, o tree.Options) (*generation.Generation, error) {
	t, err := tree.ReadDir(f.modules, o)
	if err != nil {
		return nil, err
	}
	loaded := make(chan *generation.Generation, 1)
	go func() { loaded <- load(ctx, t, nil) }()
	select {
	case gen := <-loaded:
		return gen, nil
	case <-ctx.Done(): // a file may be at a step that does not end
		return nil, ctx.Err()
	}
}
