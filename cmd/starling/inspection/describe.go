package inspection

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/admin"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/tui"
)

const (
	// describedRuns and describedLines are how many of the last ones are shown.
	describedRuns, describedLines = 10, 10
	// describedFor is for how long the runs of one page are those of the next where pods are asked: a process in each.
	describedFor = 10 * time.Second
)

// describeFlags are those of `starling describe`: those of get, for runs.
type describeFlags struct {
	*getRunsFlags
}

func newDescribeFlags(flags *getFlags) *describeFlags {
	return &describeFlags{&getRunsFlags{getFlags: flags, records: instance.Records{
		Target: &flags.Target, Keep: describedFor,
	}}}
}

func newDescribeCommand() *cobra.Command {
	f := newDescribeFlags(&getFlags{})
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show all that is known of a module, of a hook or of a run",
		Long: `Shows on one page what starling get, explain values and logs know of one module, hook or
run of the starling that runs on this machine, or, with --context or --kubeconfig, of the
pods of the instance in that cluster. Text that comes out of Secrets is ***.`,
		Example: `  starling describe module ingress-nginx
  starling describe hook ingress-nginx/hooks/nodes.star:discover
  starling describe run k3f9-12`,
		Args: cobra.ArbitraryArgs,
		RunE: getNamed,
	}
	f.Target.AddFlags(cmd.PersistentFlags())
	f.Target.AddDev(cmd.PersistentFlags())
	f.records.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand(&cobra.Command{
		Use:     "module [NAME]",
		Aliases: []string{"modules", "mod"},
		Short:   "Show a module, or all: state, values, hooks, watches, runs, the end of its log",
		Long: `Shows the state of a module with its reason, the last error and what others have changed
of its release; its values, and where each is from; its hooks, watches and last runs; and
the end of its log.`,
		Example: "  starling describe module ingress-nginx",
		Args:    command.AtMostOneName,
		RunE:    f.modules,
	}, &cobra.Command{
		Use:     "hook [ID|MODULE]",
		Aliases: []string{"hooks"},
		Short:   "Show a hook, or those of a module: state, watches, runs, the end of its log",
		Long: `Shows the state of a hook with its reason and its last error; when it ran last and when it
comes next; what it has taken; its watches and last runs; and the end of its log.`,
		Example: "  starling describe hook ingress-nginx/hooks/nodes.star:discover",
		Args:    command.AtMostOneName,
		RunE:    f.hooks,
	}, &cobra.Command{
		Use:     "run ID",
		Aliases: []string{"runs"},
		Short:   "Show a run that is recorded: its cause, its events, what it read and asked for",
		Long: `Shows a run of those that starling get runs lists: its cause and its events, the questions
to the world and their answers, what it has asked for, and why it has failed.`,
		Example: "  starling describe run k3f9-12",
		Args:    command.Takes(1, 1, "starling describe run takes the id of one run; see: starling get runs"),
		RunE:    f.one,
	})
	return cmd
}

func (f *describeFlags) modules(cmd *cobra.Command, args []string) error {
	st, err := f.ask(cmd)
	if err != nil {
		return err
	}
	modules := st.Modules
	if len(args) == 1 {
		if modules, err = findModules(describable(st), args); err != nil {
			return err
		}
	}
	return showPages(cmd, st, "modules", modules, func(m status.Module) error { return f.module(cmd, st, m) })
}

// describable returns the modules, with the global hooks as one.
func describable(st status.Status) []status.Module {
	if row, there := tui.Global(st); there {
		return append(slices.Clip(st.Modules), row)
	}
	return st.Modules
}

// showPages shows a page for each row, with an empty line between them.
func showPages[T any](cmd *cobra.Command, st status.Status, kind string, rows []T, show func(T) error) error {
	command.SayNotes(cmd, notesOf(st))
	if len(rows) == 0 {
		command.Say(cmd, "no %s", kind)
	}
	for i, row := range rows {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := show(row); err != nil {
			return err
		}
	}
	return nil
}

// module shows one page. A part that cannot be had says why: the others are there nonetheless.
func (f *describeFlags) module(cmd *cobra.Command, st status.Status, m status.Module) error {
	client, err := f.Client(cmd)
	if err != nil {
		return err
	}
	p := newPage(cmd)
	x, valuesErr := client.Explain(cmd.Context(), m.Name)
	p.field("Name", m.Name)
	p.state(string(m.State))
	p.field("Reason", m.Reason)
	p.time("Since", &m.Since)
	p.field("Enabled", enabledBy(m, x))
	p.field("Last error", m.LastError)
	p.time("Next try", m.NextTry)
	if r := m.Release; r != nil {
		p.field("Release", r.Namespace+"/"+r.Name)
		p.number("Revision", r.Revision)
	}
	p.number("Messages that wait", m.PendingMessages)
	p.list("Drift", driftLines(m.Drifted))
	p.list("Problems", m.Problems)
	now := p.now
	if st.Simulated {
		now = time.Time{} // a simulated cluster has its own clock
	}
	p.section("Values", valuesErr, func() error {
		return values.Print(p, x.Values, values.PrintOptions{Now: now, Process: x.Process})
	}, len(x.Values) == 0)
	var hooks []status.Hook
	for _, h := range st.Hooks {
		if h.Module == m.Name {
			hooks = append(hooks, h)
		}
	}
	p.section("Hooks", nil, func() error { return p.hooks(hooks) }, len(hooks) == 0)
	f.watches(cmd, p, client, hooks)
	f.runs(cmd, p, m.Name)
	f.lines(cmd, p, client, m.Name, "")
	return p.err
}

// enabledBy says who has switched a module.
func enabledBy(m status.Module, x values.Explanation) string {
	on := "no"
	if m.Enabled {
		on = "yes"
	}
	for _, e := range x.Values {
		if len(e.Keys) == 1 && strings.HasSuffix(e.Path, "Enabled") && len(e.Chain) > 0 && e.Value == m.Enabled {
			if place := e.Chain[0].Source.Place(); place != "" {
				return on + ", by " + place
			}
		}
	}
	return on
}

// driftLines tell of objects that others have changed.
func driftLines(objects []status.Drifted) (lines []string) {
	for _, o := range objects {
		line := o.Object + " is changed"
		if o.Missing {
			line = o.Object + " is missing"
		}
		if len(o.By) > 0 {
			line += ", by " + strings.Join(o.By, ", ")
		}
		if o.Contested {
			line += ", again and again"
			if len(o.Fields) > 0 {
				line += ": " + strings.Join(o.Fields, ", ")
			}
		}
		if lines = append(lines, line); o.Remedy != "" {
			lines = append(lines, "  "+o.Remedy)
		}
	}
	return lines
}

func (f *describeFlags) hooks(cmd *cobra.Command, args []string) error {
	st, err := f.ask(cmd)
	if err != nil {
		return err
	}
	hooks, err := findHooks(st, args)
	if err != nil {
		return err
	}
	client, err := f.Client(cmd)
	if err != nil {
		return err
	}
	return showPages(cmd, st, "hooks", hooks, func(h status.Hook) error {
		p := newPage(cmd)
		p.field("Name", h.ID)
		p.field("Module", h.Module)
		p.state(string(h.State))
		p.field("Reason", h.Reason)
		p.field("Last error", h.LastError)
		p.number("Attempt", h.Attempt)
		p.time("Next try", h.NextTry)
		p.time("Last run", h.LastRun)
		if h.LastRun != nil {
			p.field("Took", status.Roughly(time.Duration(h.Duration)))
		}
		p.time("Next run", h.NextRun)
		p.field("Runs", fmt.Sprintf("%d, of which %d failed", h.Runs, h.Failures))
		if h.Objects != nil && h.Failing != nil {
			p.field("Objects", fmt.Sprintf("%d, of which %d fail", *h.Objects, *h.Failing))
		}
		p.field("Not served", strings.Join(h.NotServed, ", "))
		p.section("Usage", nil, func() error {
			return status.PrintUsage(p, []status.HookUsage{{Module: h.Module, Hook: h.ID, Usage: h.Usage}}, status.Options{})
		}, h.Usage.Runs == 0)
		f.watches(cmd, p, client, []status.Hook{h})
		f.runs(cmd, p, h.ID)
		f.lines(cmd, p, client, h.Module, h.ID)
		return p.err
	})
}

// watches shows the snapshots of hooks.
func (f *describeFlags) watches(cmd *cobra.Command, p *page, client *admin.Client, hooks []status.Hook) {
	var all []status.Snapshot
	var failed error
	for _, h := range hooks {
		if len(h.Snapshots) == 0 {
			continue
		}
		snapshots, err := client.Snapshots(cmd.Context(), h.ID)
		all, failed = append(all, snapshots...), errors.Join(failed, err)
	}
	p.section("Watches", failed, func() error { return status.PrintSnapshots(p, all, p.options()) }, len(all) == 0)
}

// runs shows the last runs of a module or of a hook.
func (f *describeFlags) runs(cmd *cobra.Command, p *page, what string) {
	l, err := f.look(cmd, []string{what})
	if _, none := errors.AsType[noRunError](err); none {
		err = nil
	}
	var which []int
	if l != nil {
		which = l.busy(true)
	}
	p.section("Runs", err, func() error {
		return l.table(p, which[:min(len(which), describedRuns)], p.options())
	}, len(which) == 0)
}

// lines shows the end of the log of a module, or of one of its hooks, as starling logs does.
func (f *describeFlags) lines(cmd *cobra.Command, p *page, client *admin.Client, module, hook string) {
	var last [][]byte
	err := f.Target.Logs(cmd, client, admin.LogsOptions{Module: module, Tail: -1}, func(text []byte) error {
		var line struct{ Hook string }
		if json.Unmarshal(text, &line) == nil && (hook == "" || line.Hook == hook) {
			last = append(last[max(0, len(last)+1-describedLines):], slices.Clone(text))
		}
		return nil
	})
	p.section("Log", err, func() error {
		console := process.ConsoleWriter(p, p.color)
		for _, text := range last {
			if _, err := console.Write(text); err != nil {
				return err
			}
		}
		return nil
	}, len(last) == 0)
}

// one shows a run.
func (f *describeFlags) one(cmd *cobra.Command, args []string) error {
	f.out.format = "json" // so all of it is read
	l, err := f.look(cmd, args)
	if err != nil {
		return err
	}
	var d *record.Dump
	if len(l.rows) == 1 {
		d, _ = l.rows[0].(*record.Dump)
	}
	if d == nil {
		return fmt.Errorf("%s is no run; see: starling get runs %s", args[0], args[0])
	}
	p := newPage(cmd)
	p.field("Name", d.ID)
	p.field("Module", d.Module)
	p.field("Hook", d.Hook)
	p.field("Object", d.Key)
	p.state(d.Result)
	if d.AtCommit {
		p.field("At", "the commit: its code has succeeded")
	}
	p.field("Last error", d.Error)
	p.field("Cause", d.Cause)
	p.time("Started", &d.Started)
	p.field("Took", status.Roughly(time.Duration(d.Took)))
	p.number("Attempt", d.Attempt)
	p.field("Steps", fmt.Sprint(d.Steps))
	p.number("Generation", d.Generation)
	p.field("Starling", d.Version)
	p.shown("Events", d.Inputs.Events, len(d.Inputs.Events) == 0)
	var snapshots []string
	for _, name := range slices.Sorted(maps.Keys(d.Inputs.Snapshots)) {
		snapshots = append(snapshots, fmt.Sprintf("%s: %s", name, message.Count(len(d.Inputs.Snapshots[name]), "row")))
	}
	p.list("Snapshots", snapshots)
	p.shown("Reads", d.Reads, len(d.Reads) == 0)
	p.list("Asked for", d.Outcome)
	p.field("More", "starling get runs "+d.ID+" -o yaml; starling replay "+d.ID)
	return p.err
}
