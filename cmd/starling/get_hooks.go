package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetHooksCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "hooks [ID|MODULE]",
		Aliases: []string{"hook"},
		Short:   "Show hooks: state, last run, last error, next try",
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := flags.ask(cmd)
			if err != nil {
				return err
			}
			hooks := st.Hooks
			if len(args) == 1 {
				if hooks, err = findHooks(st, args[0]); err != nil {
					return err
				}
			}
			if flags.output != "table" {
				if len(args) == 1 && len(hooks) == 1 && hooks[0].ID == args[0] {
					return writeData(cmd.OutOrStdout(), flags.output, hooks[0])
				}
				return writeData(cmd.OutOrStdout(), flags.output, listOf(hooks))
			}
			notes(cmd, st)
			if len(hooks) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no hooks")
				return nil
			}
			return hookTable(hooks, time.Now()).write(cmd.OutOrStdout(), colourful(cmd))
		},
	}
}

// findHooks returns the hook of that ID, or the hooks of the module of that name
// (none, if it has none).
func findHooks(st status.Status, name string) ([]status.Hook, error) {
	var names []string
	var out []status.Hook
	for _, h := range st.Hooks {
		if h.ID == name {
			return []status.Hook{h}, nil
		}
		if h.Module == name {
			out = append(out, h)
		}
		names = append(names, h.ID)
	}
	known := len(out) > 0
	for _, m := range st.Modules {
		known = known || m.Name == name
		names = append(names, m.Name)
	}
	if !known {
		return nil, notFound("hook", name, names)
	}
	return out, nil
}

func hookTable(hooks []status.Hook, now time.Time) *table {
	t := &table{header: []string{"HOOK", "STATE", "LAST RUN", "TOOK", "RUNS", "FAILED", "NEXT TRY", "LAST ERROR"}}
	for _, h := range hooks {
		last, took := ago(h.LastRun, now), ""
		if h.LastRun != nil {
			last += " ago"
			took = short(h.Duration)
		}
		t.add(
			cell{text: h.ID},
			cell{text: string(h.State), tone: hookTone(h.State)},
			cell{text: last},
			cell{text: took},
			cell{text: strconv.Itoa(h.Runs)},
			cell{text: strconv.Itoa(h.Failures)},
			cell{text: until(h.NextTry, now)},
			cell{text: hookTrouble(h)},
		)
	}
	return t
}

// hookTrouble is the last error, and the kinds the API server does not know yet.
func hookTrouble(h status.Hook) string {
	var out []string
	if h.LastError != "" {
		out = append(out, h.LastError)
	}
	if len(h.NotServed) > 0 {
		out = append(out, "not served yet: "+strings.Join(h.NotServed, ", "))
	}
	return strings.Join(out, "; ")
}

func hookTone(s status.HookState) tone {
	switch s {
	case status.HookOK:
		return green
	case status.HookFailed:
		return red
	case status.HookOff:
		return grey
	}
	return yellow // about to run, or running
}
