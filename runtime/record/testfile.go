package record

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/object"
)

// TestFile is the text of a test that holds a run: run and lines are those of [Record.Written].
func TestFile(h Header, run map[string]any, lines []string) string {
	all := make([]any, len(lines))
	for i, line := range lines {
		all[i] = line
	}
	body := &starFile{}
	body.text.WriteString("RUN = ")
	body.value(run, 0)
	body.line("\n\ndef test_run_%s(t):", strings.ReplaceAll(h.ID, "-", "_"))
	body.text.WriteString("    t.expect(t.replay(RUN)).equals(")
	body.value(all, 1)
	body.line(")")
	text := body.text.String()

	head := &starFile{}
	head.line("# Run %s of %s, %s%s.", h.ID, h.Hook, h.Started.Format(time.RFC3339), forCause(h.Cause))
	head.line("# It holds what the run was given, and what it asked for: starling new test --from-run has written it.")
	if hidden := base64.StdEncoding.EncodeToString([]byte(Hidden)); strings.Contains(text, Hidden) || strings.Contains(text, hidden) {
		head.line("#")
		head.line("# %s stands for what was secret, %s for that in base64: the run had other texts there.", Hidden, hidden)
	}
	if run["random"] == true {
		head.line("#")
		head.line("# The run took random bytes, which may be keys: here it has others, the same ones each time.")
	}
	head.line("")
	return head.text.String() + text
}

func forCause(cause string) string {
	if cause == "" {
		return ""
	}
	return ", " + cause
}

// starFile is a file of Starlark that is being written.
type starFile struct{ text strings.Builder }

func (f *starFile) line(format string, a ...any) { fmt.Fprintf(&f.text, format+"\n", a...) }

// widest is how long a line may be that holds a list or a dict as a whole.
const widest = 100

// value writes plain data as a literal.
func (f *starFile) value(v any, depth int) {
	if text := object.FromPlain(v).String(); short(v) && 4*depth+len(text) <= widest {
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
		if text := object.FromPlain(v).String(); short(v) {
			f.text.WriteString(text)
		} else {
			fmt.Fprintf(&f.text, "float(%q)", text)
		}
	}
}

// short says whether a value is better read in one line, if it fits in. NaN and the infinities have no literal, and so
// they do not stand inside another one.
func short(v any) bool {
	switch v := v.(type) {
	case float64:
		return !math.IsNaN(v) && !math.IsInf(v, 0)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool {
			text, is := e.(string)
			return !short(e) || len(v) > 1 && is && len(text) > 20
		})
	case map[string]any:
		return len(v) < 6 && !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(e any) bool { return !short(e) })
	}
	return true
}
