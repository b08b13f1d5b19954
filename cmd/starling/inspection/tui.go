package inspection

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/cmd/starling/simulation"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/tui"
)

// shownLines are how many of the last lines of a log are shown.
const shownLines = 500

// tuiFlags are the flags of `starling tui`.
type tuiFlags struct {
	version string
	target  instance.Target
	modules string
	links   bool
}

func newTUICommand(version string) *cobra.Command {
	f := &tuiFlags{version: version}
	cmd := &cobra.Command{
		Use:   "tui [TREE]",
		Short: "Show the modules of a starling on one screen, and act on them by keys",
		Long: `Shows the modules of the starling that runs on this machine, or, with --context or
--kubeconfig, of the pods of the instance in that cluster, on one screen that follows them:
state, what waits, the last run, drift, and why. By keys, which are those of k9s, it shows
all that describe module and logs know of one, and has its hooks run. With the folder of the
module tree p shows what starling plan would. ? lists the keys.`,
		Example: `  starling tui
  starling tui addons`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.target.AddFlags(cmd.Flags())
	f.target.AddDev(cmd.Flags())
	cmd.Flags().StringVar(&f.modules, "modules", "", command.ModulesUsage+", for plans")
	command.LinksFlag(cmd.Flags(), &f.links)
	command.TreeFirst(cmd, &f.modules, 0, 0)
	return cmd
}

func (f *tuiFlags) run(cmd *cobra.Command) error {
	if f.target.Dev && f.modules != "" {
		return errors.New("--dev asks a starling dev, which plans by itself: leave out TREE")
	}
	in, isFile := cmd.InOrStdin().(*os.File)
	if !command.OnTerminal(cmd) || !isFile || !term.IsTerminal(int(in.Fd())) || os.Getenv("TERM") == "dumb" {
		return errors.New("the screen needs a terminal, which this is not; elsewhere see: starling get modules -w")
	}
	process.TameLibraries()
	klog.SetLogger(logr.Discard()) // a line would stand in the middle of the screen
	ctx, source := cmd.Context(), f.source()
	late := time.AfterFunc(time.Second, func() { command.Say(cmd, "waiting for the first answer…") })
	first, err := source.Look(ctx)
	late.Stop()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	screen := tui.New(tui.Options{
		Source: source, First: first, Now: time.Now(), Context: ctx, Color: command.Colorful(cmd),
	})
	_, err = tea.NewProgram(screen, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(cmd.OutOrStdout()), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil // told to stop
	}
	return err
}

// source is the instance on the screen.
func (f *tuiFlags) source() *instanceSource {
	return &instanceSource{look: newAsker(f.target), pages: newAsker(f.target), plan: simulation.World{
		Version: f.version, Instance: f.target.Instance, Access: f.target.Access, Modules: f.modules,
		Reading: command.Reading{Links: f.links}, Live: true,
	}}
}

// instanceSource asks an instance as other commands do. Pages may take long, so the look goes by itself.
type instanceSource struct {
	look, pages *asker
	plan        simulation.World
}

// asker asks for one thing at a time: the client of a cluster is found anew when another pod leads.
type asker struct {
	mu    sync.Mutex
	flags *describeFlags
}

func newAsker(t instance.Target) *asker { return &asker{flags: newDescribeFlags(&getFlags{Target: t})} }

// ask returns what a command writes.
func (a *asker) ask(ctx context.Context, do func(cmd *cobra.Command, client *admin.Client) error) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	client, err := a.flags.Client(cmd)
	if err == nil {
		err = do(cmd, client)
	}
	return out.String(), a.flags.Instance.Explain(err)
}

func (s *instanceSource) Look(ctx context.Context) (seen tui.Seen, err error) {
	_, err = s.look.ask(ctx, func(_ *cobra.Command, client *admin.Client) (err error) {
		if seen.Status, err = client.Status(ctx); err != nil {
			return err
		}
		shown := seen.Status
		shown.Simulated = false // the title says it
		seen.Notes = notesOf(shown)
		seen.Queues, err = client.Queues(ctx)
		return err
	})
	return seen, err
}

func (s *instanceSource) Describe(ctx context.Context, module string) (string, error) {
	return s.pages.ask(ctx, func(cmd *cobra.Command, client *admin.Client) error {
		st, err := client.Status(ctx)
		if err != nil {
			return err
		}
		found, err := findModules(describable(st), []string{module})
		if err != nil {
			return err
		}
		return s.pages.flags.module(cmd, st, found[0])
	})
}

func (s *instanceSource) Logs(ctx context.Context, module string) (string, error) {
	return s.pages.ask(ctx, func(cmd *cobra.Command, client *admin.Client) error {
		lines := logsFlags{output: "text"}
		o := admin.LogsOptions{Module: module, Tail: shownLines}
		return s.pages.flags.Target.Logs(cmd, client, o, lines.printer(cmd.OutOrStdout()))
	})
}

func (s *instanceSource) Plan(ctx context.Context) (string, error) {
	if s.pages.flags.Dev {
		return "", errors.New("starling dev plans by itself: its terminal shows after each save what has changed")
	}
	if s.plan.Modules == "" {
		return "", errors.New("a plan needs the folder of the module tree, as in: starling tui addons")
	}
	w := s.plan
	p, err := w.Plan(ctx, strings.NewReader(""))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = p.Print(&out, plan.PrintOptions{})
	return out.String(), err
}

func (s *instanceSource) Run(ctx context.Context, module string) (hooks []string, err error) {
	_, err = s.pages.ask(ctx, func(_ *cobra.Command, client *admin.Client) (err error) {
		hooks, err = client.RunNow(ctx, module, "")
		s.pages.flags.records.Forget() // there is a new one
		return err
	})
	return hooks, err
}

var _ tui.Source = (*instanceSource)(nil)
