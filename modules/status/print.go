package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/message"
)

// Options of the tables.
type Options struct {
	// Color marks states with colors of the terminal.
	Color bool
	// Now is what ages are counted from.
	Now time.Time
	// Wide shows columns that a terminal has no room for.
	Wide bool
	// NoHead leaves the head out.
	NoHead bool
	// Events, one per row, are a first column, as kubectl shows it with --output-watch-events.
	Events []string
	// Widths has several tables be one that goes on, as those of `get -w`; nil: each is its own.
	Widths *Widths
}

// PrintModules writes a table of modules, as kubectl would: NAME STATE RELEASE REVISION DRIFT AGE REASON. AGE is the
// time since the state was entered. A wide one has ENABLED and MESSAGES, how many wait to be sent, and all problems.
func PrintModules(w io.Writer, modules []Module, o Options) error {
	t := table{{"NAME", "STATE", "RELEASE", "REVISION", "DRIFT", "AGE", "REASON"}}
	if o.Wide {
		t = table{{"NAME", "STATE", "RELEASE", "REVISION", "DRIFT", "AGE", "ENABLED", "MESSAGES", "REASON"}}
	}
	for _, m := range modules {
		release, revision := "", ""
		if m.Release != nil {
			release = m.Release.Namespace + "/" + m.Release.Name
			if m.Release.Revision > 0 {
				revision = fmt.Sprint(m.Release.Revision)
			}
		}
		row := []string{m.Name, string(m.State), release, revision, drift(m.Drifted), o.Age(m.Since)}
		if o.Wide {
			row = append(row, fmt.Sprint(m.Enabled), count(m.PendingMessages))
		}
		t = append(t, append(row, reason(o, m.Reason, m.LastError, m.NextTry, m.Problems)))
	}
	return t.write(w, 1, o)
}

// Failing tells of the hooks of a module whose last run has failed; "" when there are none. Their module may be ready.
func Failing(hooks []Hook) (text string) {
	n := 0
	for _, h := range hooks {
		if h.State == HookOff || h.LastError == "" {
			continue
		}
		if n++; n == 1 {
			text = h.ID + ": " + h.LastError
		}
	}
	if n > 1 {
		text = fmt.Sprintf("%s; and %d more: starling get hooks", text, n-1)
	}
	return text
}

// WithFailing gives modules that are ready without a reason that of their hooks, as their Module objects have it.
func WithFailing(hooks []Hook, modules []Module) []Module {
	modules = slices.Clone(modules)
	for i := range modules {
		m := &modules[i]
		if m.State != ModuleReady || m.Reason != "" || m.LastError != "" {
			continue
		}
		m.Reason = Failing(slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return h.Module != m.Name }))
	}
	return modules
}

// drift is the cell for objects that others have changed.
func drift(objects []Drifted) string {
	missing, changed := 0, 0
	for _, o := range objects {
		switch {
		case o.Contested && len(o.By) > 0:
			return line("contested by " + o.By[0] + " in " + o.Contest())
		case o.Contested:
			return line("contested in " + o.Contest())
		case o.Missing:
			missing++
		default:
			changed++
		}
	}
	var parts []string
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("%d missing", missing))
	}
	if changed > 0 {
		parts = append(parts, fmt.Sprintf("%d changed", changed))
	}
	return strings.Join(parts, ", ")
}

// PrintHooks writes a table of hooks: MODULE HOOK STATE RUNS FAILURES LAST TOOK REASON. LAST is the time since the
// last run began. A wide one has the SNAPSHOTS with their numbers of objects, the OBJECTS of for_each with how many
// FAIL, and STEPS and MEMORY as [PrintUsage] has them.
func PrintHooks(w io.Writer, hooks []Hook, o Options) error {
	t := table{{"MODULE", "HOOK", "STATE", "RUNS", "FAILURES", "LAST", "TOOK", "REASON"}}
	if o.Wide {
		t = table{{"MODULE", "HOOK", "STATE", "RUNS", "FAILURES", "LAST", "TOOK", "SNAPSHOTS", "OBJECTS", "FAIL", "STEPS", "MEMORY", "REASON"}}
	}
	for _, h := range hooks {
		last, took := "", ""
		if h.LastRun != nil {
			last = o.Age(*h.LastRun)
			took = Roughly(time.Duration(h.Duration))
		}
		why := h.Reason
		if len(h.NotServed) > 0 {
			why = "not served: " + strings.Join(h.NotServed, ", ")
		}
		row := []string{h.Module, h.ID, string(h.State), fmt.Sprint(h.Runs), fmt.Sprint(h.Failures), last, took}
		if o.Wide {
			row = append(row, h.snapshots(), number(h.Objects), number(h.Failing), strconv.FormatUint(h.Usage.Steps, 10), size(h.Usage.Memory))
		}
		if h.State == HookWaiting && why == "" && h.NextRun != nil && h.NextRun.After(o.Now) {
			why = "next run in " + duration.HumanDuration(h.NextRun.Sub(o.Now))
		}
		t = append(t, append(row, reason(o, why, h.LastError, h.NextTry, nil)))
	}
	return t.write(w, 2, o)
}

// snapshots are those of a hook with how many objects they have: "nodes=3,pods=40".
func (h Hook) snapshots() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(h.Snapshots)) {
		parts = append(parts, fmt.Sprintf("%s=%d", line(name), h.Snapshots[name]))
	}
	return strings.Join(parts, ",")
}

// number is that of something that not everything has.
func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

// count leaves a 0 out.
func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Encode writes v in the form that -o asks for: "json" or "yaml", the same fields in both.
func Encode(w io.Writer, format string, v any) error {
	if format != "json" && format != "yaml" {
		return fmt.Errorf("output format %q is not one of json, yaml", format)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	data := b.Bytes()
	if format == "yaml" {
		var err error
		if data, err = yaml.JSONToYAML(data); err != nil {
			return err
		}
	}
	_, err := w.Write(data)
	return err
}

// Why explains the state of a module in one line, as tables do.
func (o Options) Why(m Module) string { return reason(o, m.Reason, m.LastError, m.NextTry, m.Problems) }

// Drift says in a few words what others have changed of a release, as tables do.
func (m Module) Drift() string { return drift(m.Drifted) }

// reason joins what explains a state: the reason, the last error unless the
// reason says it already, the next try, the first problem.
func reason(o Options, why, lastError string, next *time.Time, problems []string) string {
	var parts []string
	if why != "" {
		parts = append(parts, why)
	}
	if lastError != "" && !strings.Contains(why, lastError) {
		parts = append(parts, lastError)
	}
	if next != nil {
		if d := next.Sub(o.Now); d > 0 {
			parts = append(parts, "next try in "+duration.HumanDuration(d))
		} else {
			parts = append(parts, "next try now")
		}
	}
	if len(problems) > 0 {
		s := problems[0]
		if o.Wide {
			s = strings.Join(problems, "; ")
		} else if n := len(problems) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more, see -o yaml)", n)
		}
		parts = append(parts, s)
	}
	return line(strings.Join(parts, "; "))
}

// line makes text one line without control characters, which would reach the
// terminal from names and messages of the cluster.
func line(s string) string { return message.Line(s) }

// Age is how long ago a time was, as tables have it.
func (o Options) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, o.Now.Sub(t)))
}

// Roughly writes a duration with the precision that people read.
func Roughly(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}
