package simulation

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/check"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/dev"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/logs"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/reload"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// devQuiet is how long nothing must have been saved before the tree is looked at.
const devQuiet = 50 * time.Millisecond

type devFlags struct {
	version  string
	instance instance.Instance
	http     []string
	links    bool
	cluster  devCluster
	env      process.HookEnv
}

func newDevCommand(version string) *cobra.Command {
	f := &devFlags{version: version}
	cmd := &cobra.Command{
		Use:   "dev TREE",
		Short: "Watch a module tree while you write it: check, tests, and what has changed",
		Long: `Watches the folder of a module tree, and the files of --filename and --config, and
after each save tells what is wrong with the tree, runs the tests of what has changed,
and shows which values and objects have become different in a simulated cluster.
Modules that nobody has switched on or off are on there; --filename and --config say
what is in it besides. No real cluster is asked. Ctrl-C ends it.

starling tui --dev, and get, describe, explain and logs with --dev, show the simulated cluster.`,
		Example: `  starling dev addons
  starling dev addons -f nodes.yaml`,
		Args: command.Takes(1, 1,
			"starling dev takes the folder of one module tree, as in: starling dev examples/quickstart"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fs := cmd.Flags()
	command.LinksFlag(fs, &f.links)
	fs.StringArrayVarP(&f.cluster.files, "filename", "f", nil, "`file` of objects, YAML or JSON, that are taken to be in the cluster")
	fs.StringVar(&f.cluster.config, "config", "", "`file` with what the user's ConfigMap is taken to say, as in a tree's values.yaml")
	fs.StringArrayVar(&f.http, "http", nil, "`HOST=FILE`: what the host answers http.get with; others give no answer")
	f.instance.AddFlags(fs)
	f.env.AddFlags(fs)
	command.TreeFlag(cmd, false)
	return cmd
}

func (f *devFlags) run(cmd *cobra.Command, dir string) error {
	f.instance.Dev = true
	if err := f.instance.Complete(); err != nil {
		return err
	}
	answers, err := httpFiles(f.http)
	if err != nil {
		return err
	}
	env, err := f.env.Lookup()
	if err != nil {
		return err
	}
	process.TameLibraries()
	process.TuneTests()
	if _, err := tree.ReadDir(dir, tree.Options{Empty: true, FollowLinks: f.links}); err != nil {
		return err
	}
	shared := store.NewBuiltins()
	go shared.Warm()
	if _, err := process.SetLogLevel("info"); err != nil { // as a run begins
		return err
	}
	kept := logs.New(logs.Options{})
	log := zerolog.New(kept).With().Timestamp().Logger()
	d := &devLoop{
		loop: dev.New(dev.Options{
			Builtins: shared, Renderer: process.NewRenderer(), Namespace: f.instance.Namespace, Name: f.instance.Name, Prepare: f.cluster.prepare, Update: f.cluster.update, Keep: f.cluster.keep, HTTP: answers, Env: env,
			Parallel: runtime.GOMAXPROCS(0), Golden: golden{dir, false}, Version: f.version,
			Log: func(module, hook string, level builtins.Level, msg string, fields []builtins.Field) {
				live.Logger(log, module, hook).Log(level, msg, fields)
			},
		}),
		dir: dir, out: cmd.OutOrStdout(), color: command.Colorful(cmd),
	}
	stop, err := f.answer(cmd.Context(), d.loop, kept)
	if err != nil {
		command.Say(cmd, "note: nobody can ask this starling dev with --dev: %v", err)
	} else {
		defer stop()
	}
	reload.Run(cmd.Context(), reload.Options{
		Dir: dir, Tree: tree.Options{Empty: true, FollowLinks: f.links}, Files: append(f.cluster.paths(), slices.Collect(maps.Values(answers))...), Quiet: devQuiet,
		Changed: d.look, Failed: d.unreadable, Log: zerolog.Nop(),
	})
	return nil // Ctrl-C
}

// httpFiles reads --http.
func httpFiles(flags []string) (map[string]string, error) {
	out := map[string]string{}
	for _, flag := range flags {
		host, file, ok := strings.Cut(flag, "=")
		if !ok || host == "" || file == "" {
			return nil, fmt.Errorf("--http %q: want HOST=FILE, as api.example.com=answer.json", flag)
		}
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("--http %s: there is no file %s", host, file)
		}
		out[host] = file
	}
	return out, nil
}

// devLoop shows rounds.
type devLoop struct {
	loop  *dev.Loop
	dir   string
	out   io.Writer
	color bool
}

// unreadable tells why the folder cannot be read.
func (d *devLoop) unreadable(err error) {
	d.loop.Refuse(err)
	d.headline("31", "cannot be read: %v", err)
}

func (d *devLoop) look(ctx context.Context, t *tree.Tree) {
	r, err := d.loop.Look(ctx, t)
	if r != nil {
		d.print(r)
	}
	if err == nil {
		err = d.loop.Settle(ctx)
	}
	for _, host := range d.loop.Unanswered() {
		fmt.Fprintf(d.out, "    http.get: nobody answers at %s here, and hooks fail, or take their default, for want of it; --http %s=FILE answers\n", host, host)
	}
	if err != nil && ctx.Err() == nil {
		// Without a cluster nothing can be shown: a file of objects is broken, say.
		d.headline("31", "%v", err)
	}
}

// headline is the one line that says how things are.
func (d *devLoop) headline(code, format string, a ...any) {
	text := time.Now().Format("15:04:05") + "  " + fmt.Sprintf(format, a...)
	fmt.Fprintln(d.out, paint(d.color, code+";1", text))
}

func (d *devLoop) print(r *dev.Round) {
	tests, failed := 0, 0
	for _, f := range r.Tests {
		for _, one := range f.Tests {
			tests++
			if one.Err != nil {
				failed++
			}
		}
		if f.Err != nil {
			failed++
		}
	}
	failures, warnings := r.Check.Count(check.Error), r.Check.Count(check.Warning)
	var parts []string
	if failures > 0 {
		parts = append(parts, message.Count(failures, "error"))
	}
	if warnings > 0 {
		parts = append(parts, message.Count(warnings, "warning"))
	}
	if failures+failed == 0 {
		parts = append(parts, "ok")
	}
	if tests+failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s passed", max(tests-failed, 0), message.Count(tests, "test")))
	}
	switch {
	case r.Plan == nil:
	case r.Plan.Changes():
		parts = append(parts, message.Count(len(r.Plan.Objects), "object")+" changed")
	case len(r.Values) > 0:
		parts = append(parts, message.Count(len(r.Values), "value")+" changed ("+strings.Join(r.Values[:min(3, len(r.Values))], ", ")+")")
	default:
		parts = append(parts, "nothing else changed")
	}
	code := "32"
	if failures+failed > 0 || r.Plan != nil && r.Plan.Failed() {
		code = "31"
	}
	d.headline(code, "%s (%d of %s, %.1fs)", strings.Join(parts, ", "), r.Modules, message.Count(r.All, "module"), r.Took.Seconds())

	name := func(path string) string { return filepath.Join(d.dir, filepath.FromSlash(path)) }
	for _, finding := range r.Check.Findings {
		if finding.Severity != check.Note {
			fmt.Fprintln(d.out, indent(strings.TrimSuffix(finding.Render(name), "\n")))
		}
	}
	p := &testPrinter{out: d.out, root: d.dir}
	for _, f := range r.Tests {
		if f.Failed() {
			p.file(f)
		}
	}
	if r.Plan != nil && (r.Plan.Changes() || r.Plan.Failed()) {
		_ = r.Plan.Print(d.out, plan.PrintOptions{Color: d.color}) // a terminal that is gone ends the process
	}
}

// answer serves the admin API of the simulated cluster, on a socket beside that of a starling run. stop ends it.
func (f *devFlags) answer(ctx context.Context, loop *dev.Loop, kept *logs.Buffer) (stop func(), err error) {
	if err := f.instance.MakeStateDir(); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // a process without a host has no name
	replica := status.Replica{Name: host, Leader: true, Ready: true, Version: f.version, Simulated: true, Since: time.Now()}
	srv, err := admin.New(admin.Options{
		Socket: f.instance.Socket(), Name: f.instance.Name, LogLevel: process.SetLogLevel,
		Status: loop.Status, Explain: loop.Explain, Parents: loop.Parents, Queues: loop.Queues, RunNow: loop.RunNow, Snapshots: loop.Snapshots,
		RecordsKey: func(context.Context) ([]byte, error) { return nil, instance.ErrNoDevRecords },
		Replica: func() status.Replica {
			r := replica
			r.Generation, r.ReloadFailed = loop.InForce()
			return r
		},
		Logs: kept.Lines,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Run(ctx) // who asks is told that nobody answers any more
	}()
	return func() { cancel(); <-ended }, nil
}
