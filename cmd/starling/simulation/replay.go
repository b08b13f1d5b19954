package simulation

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// replayFlags are the flags of `starling replay`.
type replayFlags struct {
	version string
	target  instance.Target
	records instance.Records
	modules string
	links   bool
	output  string
}

func newReplayCommand(version string) *cobra.Command {
	f := &replayFlags{version: version}
	f.records.Target = &f.target
	cmd := &cobra.Command{
		Use:   "replay [TREE] RUN",
		Short: "Run a hook again with what a recorded run was given",
		Long: `Runs the hook of a recorded run again, with the files, snapshots, values, times and
answers of then. Nothing is asked of a cluster and nothing is written. Prints what the
run asks for and whether that is the same as then; with TREE, how the hook of that
tree would have answered. Exits with 1 when it is not the same.

With --context or --kubeconfig, and no --state-dir, the record is that of the pod which has
it; it runs on this machine.`,
		Example: `  starling get runs --failed
  starling replay k3f9-12
  starling replay addons k3f9-12`,
		Args: command.Takes(1, 1,
			"starling replay takes the id of one run, as in: starling replay k3f9-12; see: starling get runs"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	f.target.AddFlags(cmd.Flags())
	f.records.AddFlags(cmd.Flags())
	command.OutputFlag(cmd, &f.output, "form of the output: text, json or yaml", "text", "json", "yaml")
	cmd.Flags().StringVar(&f.modules, "modules", "",
		command.ModulesUsage+", whose hook is run instead of the recorded one")
	command.LinksFlag(cmd.Flags(), &f.links)
	command.TreeFirst(cmd, &f.modules, 1, 1)
	return cmd
}

func (f *replayFlags) run(cmd *cobra.Command, id string) error {
	ctx, stdout, stderr := cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	r, err := f.records.Load(cmd, id)
	if err != nil {
		return err
	}
	o := record.ReplayOptions{Governor: script.NewGovernor(script.GovernorOptions{})}
	if f.modules != "" {
		t, err := tree.ReadDir(f.modules, tree.Options{FollowLinks: f.links})
		if err != nil {
			return err
		}
		o.Generation = generation.Load(ctx, generation.Options{
			Tree: t, Std: stdlib.FS, Number: 1, Governor: o.Governor,
		})
	} else if r.Version != f.version {
		fmt.Fprintf(stderr, "note: starling %s recorded this, and starling %s replays it\n", r.Version, f.version)
	}
	again, err := record.Replay(ctx, r, o)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	return f.print(stdout, r, again)
}

// replayedRun is what -o json prints.
type replayedRun struct {
	record.Header
	// Same says that the replay came to the same, byte for byte.
	Same bool `json:"same"`
	// Now are the lines of what the run asks for, logs and fails with, Then those of the
	// record, with details; without their secrets.
	Now  []string `json:"now"`
	Then []string `json:"then"`
	// Difference is empty when they are the same, or when what differs is not shown.
	Difference []string `json:"difference,omitempty"`
}

func (f *replayFlags) print(w io.Writer, r *record.Record, again *record.Replayed) error {
	mask := record.NewMask(r, again.Outcome)
	now, then := mask.Lines(again.Outcome, true), mask.Lines(r.Outcome, true)
	var diff []string
	if !again.Same {
		diff = record.Diff(then, now)
	}
	if f.output != "text" {
		out := replayedRun{Header: r.Header, Same: again.Same, Now: now, Then: then, Difference: diff}
		out.Error = mask.Text(out.Error)
		if err := status.Encode(w, f.output, out); err != nil || again.Same {
			return err
		}
		return command.ExitCode(1)
	}
	took := status.Roughly(time.Duration(r.Took))
	fmt.Fprintf(w, "# run %s of %s, %s, attempt %d, %s, %s\n", r.ID, r.Hook, r.Started.Format(time.RFC3339), r.Attempt, took, r.Cause)
	for _, line := range mask.Lines(again.Outcome, false) {
		fmt.Fprintln(w, line)
	}
	if r.AtCommit {
		fmt.Fprintln(w, "# its commit failed: "+mask.Line(r.Error))
	}
	if again.Same {
		fmt.Fprintln(w, "# the same as recorded")
		return nil
	}
	fmt.Fprintln(w, "# not the same as recorded: - then, + now")
	if diff == nil {
		diff = []string{"  (the difference lies in what is not shown)"}
	}
	for _, line := range diff {
		fmt.Fprintln(w, line)
	}
	return command.ExitCode(1)
}
