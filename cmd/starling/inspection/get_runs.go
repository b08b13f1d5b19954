package inspection

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/record"
)

// getRunsFlags are the flags of `starling get runs`.
type getRunsFlags struct {
	*getFlags
	records instance.Records
	failed  bool
	told    bool // of records of others
}

// addFlags declares them, but for those of get.
func (f *getRunsFlags) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&f.failed, "failed", false, "those that failed alone")
	f.records.AddFlags(fs)
}

// look reads which runs there are: all, those of what is named, or all of one run.
func (f *getRunsFlags) look(cmd *cobra.Command, args []string) (*listing, error) {
	runs, others, err := f.records.List(cmd)
	if err != nil {
		return nil, err
	}
	if others > 0 && !f.told {
		f.told = true
		command.Say(cmd, "note: records of another version of starling that are left out: %d", others)
	}
	if i := slices.IndexFunc(runs, func(h record.Header) bool { return slices.Contains(args, h.ID) }); i >= 0 {
		return f.one(cmd, runs[i])
	}
	var names []string
	args = given(args)
	found := meant(runs, args, func(h record.Header, what string) bool {
		names = append(names, h.Module, h.Hook, h.ID)
		return what == h.Module || meansHook(what, h.Module, h.Hook)
	})
	if len(args) == 1 && len(found) == 0 {
		return nil, noRun(args[0], names)
	}
	if f.failed {
		found = slices.DeleteFunc(slices.Clone(found), func(h record.Header) bool { return !h.Failed() })
	}
	l := runsOf(found)
	l.empty = "no runs are recorded " + f.records.Where()
	if len(runs) > 0 { // so --failed was asked for
		l.empty = "no run has failed of those that are recorded " + f.records.Where()
	}
	return l, nil
}

// runsOf makes a listing of runs.
func runsOf(runs []record.Header) *listing {
	l := newListing("run", runs, printRuns, func(h record.Header) string { return h.ID })
	l.newestFirst = true
	return l
}

// noRunError says that there are no runs of what is named.
type noRunError struct{ error }

func noRun(what string, names []string) error {
	return noRunError{fmt.Errorf("no run %q, and none of a module or hook of that name; %s", what, message.DidYouMean(what, names, "see: starling get runs"))}
}

// one shows a run, in forms for programs its whole record.
func (f *getRunsFlags) one(cmd *cobra.Command, h record.Header) (*listing, error) {
	l := runsOf([]record.Header{h})
	if slices.Contains([]string{"", "table", "wide", "name"}, f.out.format) || f.watch {
		return l, nil
	}
	r, err := f.records.Load(cmd, h.ID)
	if err != nil {
		return nil, err
	}
	dump, err := r.Dump()
	if err != nil {
		return nil, err
	}
	l.all, l.rows = dump, []any{dump}
	return l, nil
}

// printRuns writes a table of runs: RUN HOOK KEY AGE TOOK STEPS RESULT CAUSE ERROR. A wide one has
// MODULE, ATTEMPT and STARTED.
func printRuns(w io.Writer, runs []record.Header, o status.Options) error {
	rows := [][]string{{"RUN", "HOOK", "KEY", "AGE", "TOOK", "STEPS", "RESULT", "CAUSE", "ERROR"}}
	if o.Wide {
		rows = [][]string{{"RUN", "HOOK", "KEY", "AGE", "TOOK", "STEPS", "RESULT", "MODULE", "ATTEMPT", "STARTED", "CAUSE", "ERROR"}}
	}
	for _, h := range runs {
		why := h.Error
		if h.AtCommit {
			why = strings.TrimSuffix("commit: "+why, ": ")
		}
		row := []string{h.ID, h.Hook, h.Key, o.Age(h.Started), status.Roughly(time.Duration(h.Took)), strconv.FormatUint(h.Steps, 10), h.Result}
		if o.Wide {
			row = append(row, h.Module, strconv.Itoa(h.Attempt), h.Started.UTC().Format(time.RFC3339))
		}
		rows = append(rows, append(row, h.Cause, why))
	}
	return status.PrintTable(w, rows, 6, o)
}
