package status

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
}

// PrintModules writes a table of modules, as kubectl would: NAME STATE RELEASE
// REVISION DRIFT AGE REASON. AGE is the time since the state was entered.
func PrintModules(w io.Writer, modules []Module, o Options) error {
	t := table{{"NAME", "STATE", "RELEASE", "REVISION", "DRIFT", "AGE", "REASON"}}
	for _, m := range modules {
		release, revision := "", ""
		if m.Release != nil {
			release = m.Release.Namespace + "/" + m.Release.Name
			if m.Release.Revision > 0 {
				revision = fmt.Sprint(m.Release.Revision)
			}
		}
		t = append(t, []string{m.Name, string(m.State), release, revision, drift(m.Drifted), o.age(m.Since),
			reason(o, m.Reason, m.LastError, m.NextTry, m.Problems)})
	}
	return t.write(w, 1, o)
}

// drift is the cell for objects that others have changed.
func drift(objects []Drifted) string {
	missing, changed := 0, 0
	for _, o := range objects {
		switch {
		case o.Contested && len(o.By) > 0:
			return "contested by " + line(o.By[0])
		case o.Contested:
			return "contested"
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

// PrintHooks writes a table of hooks: MODULE HOOK STATE RUNS FAILURES LAST TOOK
// REASON. LAST is the time since the last run began.
func PrintHooks(w io.Writer, hooks []Hook, o Options) error {
	t := table{{"MODULE", "HOOK", "STATE", "RUNS", "FAILURES", "LAST", "TOOK", "REASON"}}
	for _, h := range hooks {
		last, took := "", ""
		if h.LastRun != nil {
			last = o.age(*h.LastRun)
			took = roughly(time.Duration(h.Duration))
		}
		why := h.Reason
		if len(h.NotServed) > 0 {
			why = "not served: " + strings.Join(h.NotServed, ", ")
		}
		t = append(t, []string{h.Module, h.ID, string(h.State), fmt.Sprint(h.Runs), fmt.Sprint(h.Failures),
			last, took, reason(o, why, h.LastError, h.NextTry, nil)})
	}
	return t.write(w, 2, o)
}

// Encode writes v in the form that -o asks for: "json" or "yaml", the same
// fields in both, of anything; "" or "table" the table of a []Module, []Hook,
// []Queue, []Snapshot, []ModuleRelease or []HookUsage.
func Encode(w io.Writer, format string, v any, o Options) error {
	switch format {
	case "", "table":
		switch v := v.(type) {
		case []Module:
			return PrintModules(w, v, o)
		case []Hook:
			return PrintHooks(w, v, o)
		case []Queue:
			return PrintQueues(w, v, o)
		case []Snapshot:
			return PrintSnapshots(w, v, o)
		case []ModuleRelease:
			return PrintReleases(w, v, o)
		case []HookUsage:
			return PrintUsage(w, v, o)
		}
		return errors.New("this has no table: use -o json or -o yaml")
	case "json", "yaml":
	default:
		return fmt.Errorf("output format %q is not one of json, yaml, table", format)
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

// PrintTable writes rows of cells, of which the first is the head, as the other tables
// are: the cells of column state may have colors.
func PrintTable(w io.Writer, rows [][]string, state int, o Options) error {
	for _, row := range rows {
		for i := range row {
			row[i] = line(row[i])
		}
	}
	return table(rows).write(w, state, o)
}

// Age is how long ago a time was, as tables have it.
func (o Options) Age(t time.Time) string { return o.age(t) }

// Roughly is a duration with the precision that people read.
func Roughly(d time.Duration) string { return roughly(d) }

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
		if n := len(problems) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more, see -o yaml)", n)
		}
		parts = append(parts, s)
	}
	return line(strings.Join(parts, "; "))
}

// line makes text one line without control characters, which would reach the
// terminal from names and messages of the cluster.
func line(s string) string {
	return message.Line(s)
}

func (o Options) age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, o.Now.Sub(t)))
}

// roughly writes a duration with the precision that people read.
func roughly(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// table is rows of cells, the first row is the head.
type table [][]string

// write prints the table; the cells of column state may have colors. An empty
// cell shows as "-", an empty last one as nothing.
func (t table) write(w io.Writer, state int, o Options) error {
	widths := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for r, row := range t {
		for i, cell := range row {
			last := i == len(row)-1
			if cell == "" && !last {
				cell = "-"
			}
			pad := ""
			if !last && (i < len(row)-2 || row[i+1] != "") {
				pad = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3)
			}
			if o.Color && r > 0 && i == state {
				cell = color(cell)
			}
			b.WriteString(cell + pad)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// color marks a state: green is well, red is not, yellow will change.
func color(state string) string {
	const green, yellow, red, grey = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[90m"
	mark := yellow
	switch {
	case slices.Contains([]string{string(ModuleReady), string(HookOK)}, state):
		mark = green
	case slices.Contains([]string{string(ModuleFailed), string(ModuleBroken)}, state):
		mark = red
	case slices.Contains([]string{string(ModuleOff), string(ModulePaused)}, state):
		mark = grey
	}
	return mark + state + "\x1b[0m"
}
