package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/modules/status"
)

func newGetModulesCommand(flags *getFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "modules [NAME]",
		Aliases: []string{"module"},
		Short:   "Show modules: state, reason, release",
		Args:    atMostOneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			st, err := flags.ask(cmd)
			if err != nil {
				return err
			}
			modules := st.Modules
			if len(args) == 1 {
				m, err := findModule(st.Modules, args[0])
				if err != nil {
					return err
				}
				modules = []status.Module{m}
			}
			if flags.output != "table" {
				if len(args) == 1 {
					return writeData(cmd.OutOrStdout(), flags.output, modules[0])
				}
				return writeData(cmd.OutOrStdout(), flags.output, listOf(modules))
			}
			notes(cmd, st)
			if len(modules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no modules")
				return nil
			}
			return moduleTable(modules, time.Now()).write(cmd.OutOrStdout(), colourful(cmd))
		},
	}
}

func findModule(modules []status.Module, name string) (status.Module, error) {
	var names []string
	for _, m := range modules {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return status.Module{}, notFound("module", name, names)
}

// notFound names what was asked for and, if there is one, what was meant.
func notFound(kind, name string, names []string) error {
	if near := nearest(name, names); near != "" {
		return fmt.Errorf("no %s %q; did you mean %s?", kind, name, near)
	}
	return fmt.Errorf("no %s %q; see: starling get %ss", kind, name, kind)
}

// listOf makes an empty list "[]" and not "null".
func listOf[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func moduleTable(modules []status.Module, now time.Time) *table {
	t := &table{header: []string{"NAME", "STATE", "RELEASE", "REVISION", "AGE", "NEXT TRY", "REASON"}}
	for _, m := range modules {
		release, revision := "", ""
		if m.Release != nil {
			release = m.Release.Namespace + "/" + m.Release.Name
			if m.Release.Revision > 0 {
				revision = strconv.Itoa(m.Release.Revision)
			}
		}
		t.add(
			cell{text: m.Name},
			cell{text: string(m.State), tone: moduleTone(m.State)},
			cell{text: release},
			cell{text: revision},
			cell{text: ago(&m.Since, now)},
			cell{text: until(m.NextTry, now)},
			cell{text: moduleReason(m)},
		)
	}
	return t
}

// moduleReason is the reason of the state; without one the last error, which a
// next try may already have left behind, or the first problem.
func moduleReason(m status.Module) string {
	switch {
	case m.Reason != "":
		return m.Reason
	case m.LastError != "":
		return "last error: " + m.LastError
	case len(m.Problems) > 0:
		return m.Problems[0]
	}
	return ""
}

func moduleTone(s status.State) tone {
	switch s {
	case status.StateReady:
		return green
	case status.StateFailed, status.StateBroken:
		return red
	case status.StateOff, status.StatePaused:
		return grey
	}
	return yellow // on its way
}
