package record

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/syntax"
)

// TestFile is the text of a test that holds a run: run and lines are those of [Record.Written].
func TestFile(h Header, run map[string]any, lines []string) (string, error) {
	id := strings.ReplaceAll(h.ID, "-", "_")
	f := &starFile{}
	f.line("# Run %s of %s, %s%s.", h.ID, h.Hook, h.Started.Format(time.RFC3339), forCause(h.Cause))
	f.line("# It holds what the run was given, and what it asked for: starling new test --from-run has written it.")
	if f.hides(run) || f.hides(lines) {
		f.line("#")
		f.line("# %s stands for what was secret, Kioq for that in base64: the run had other texts there.", Hidden)
	}
	if run["random"] == true {
		f.line("#")
		f.line("# The run took random bytes, which may be keys: here it has others, the same ones each time.")
	}
	f.line("")
	f.text.WriteString("RUN = ")
	f.value(run, 0)
	f.line("")
	f.line("")
	f.line("def test_run_%s(t):", id)
	f.text.WriteString("    t.expect(t.replay(RUN)).equals(")
	all := make([]any, len(lines))
	for i, line := range lines {
		all[i] = line
	}
	f.value(all, 1)
	f.line(")")
	return f.text.String(), f.err
}

func forCause(cause string) string {
	if cause == "" {
		return ""
	}
	return ", " + cause
}

// starFile is a file of Starlark that is being written.
type starFile struct {
	text strings.Builder
	err  error
}

func (f *starFile) line(format string, a ...any) { fmt.Fprintf(&f.text, format+"\n", a...) }

// hides says whether something of it is hidden.
func (f *starFile) hides(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, Hidden)
	case []string:
		return slices.ContainsFunc(v, func(s string) bool { return f.hides(s) })
	case []any:
		return slices.ContainsFunc(v, f.hides)
	case map[string]any:
		for key, e := range v {
			if f.hides(key) || f.hides(e) || key == "data" && v["kind"] == "Secret" {
				return true
			}
		}
	}
	return false
}

// widest is how long a line may be that holds a list or a dict as a whole.
const widest = 100

// value writes plain data as a literal.
func (f *starFile) value(v any, depth int) {
	if text, short := f.short(v); short && 4*depth+len(text) <= widest {
		f.text.WriteString(text)
		return
	}
	indent := strings.Repeat("    ", depth)
	switch v := v.(type) {
	case map[string]any:
		f.text.WriteString("{\n")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			f.text.WriteString(indent + "    " + syntax.Quote(key, false) + ": ")
			f.value(v[key], depth+1)
			f.text.WriteString(",\n")
		}
		f.text.WriteString(indent + "}")
	case []any:
		f.text.WriteString("[\n")
		for _, e := range v {
			f.text.WriteString(indent + "    ")
			f.value(e, depth+1)
			f.text.WriteString(",\n")
		}
		f.text.WriteString(indent + "]")
	default:
		text, _ := f.short(v)
		f.text.WriteString(text)
	}
}

// short is a value in one line; false for what is better read in several.
func (f *starFile) short(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "None", true
	case bool:
		if v {
			return "True", true
		}
		return "False", true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprintf("float(%q)", strconv.FormatFloat(v, 'g', -1, 64)), true
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text, true
	case string:
		return syntax.Quote(v, false), true
	case []any:
		var parts []string
		for _, e := range v {
			text, short := f.short(e)
			if !short {
				return "", false
			}
			parts = append(parts, text)
		}
		return "[" + strings.Join(parts, ", ") + "]", len(v) < 2 || !slices.ContainsFunc(v, func(e any) bool { s, is := e.(string); return is && len(s) > 20 })
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, short := f.short(v[key])
			if !short {
				return "", false
			}
			parts = append(parts, syntax.Quote(key, false)+": "+text)
		}
		return "{" + strings.Join(parts, ", ") + "}", len(v) < 6
	}
	f.err = fmt.Errorf("a value of the type %T has no literal", v)
	return "None", true
}
