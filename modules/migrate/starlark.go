package migrate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/script"
)

// maxLine is how long a call on one line may be.
const maxLine = 100

// call is a call of Starlark, printed as buildifier does.
type call struct {
	name string
	args []string // "value", or "name = value"
}

func (c *call) add(value string) { c.args = append(c.args, value) }

func (c *call) set(name string, value any) { c.add(name + " = " + starlark(value)) }

// text prints the call for a place that is indented by this many spaces.
func (c *call) text(indent int) string {
	line := c.line()
	if indent+len(line) <= maxLine && !strings.Contains(line, "\n") {
		return line
	}
	var b strings.Builder
	b.WriteString(c.name + "(\n")
	for _, arg := range c.args {
		b.WriteString(strings.Repeat(" ", indent+4) + arg + ",\n")
	}
	return b.String() + strings.Repeat(" ", indent) + ")"
}

// line prints the call on one line.
func (c *call) line() string { return c.name + "(" + strings.Join(c.args, ", ") + ")" }

// raw is a value that is Starlark already.
type raw string

// starlark prints plain data.
func starlark(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case raw:
		return string(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return syntax.Quote(v, false)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []string:
		out := make([]any, len(v))
		for i, s := range v {
			out[i] = s
		}
		return starlark(out)
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = starlark(e)
		}
		return "[" + strings.Join(out, ", ") + "]"
	case map[string]string:
		out := map[string]any{}
		for k, s := range v {
			out[k] = s
		}
		return starlark(out)
	case map[string]any:
		out := make([]string, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, starlark(k)+": "+starlark(v[k]))
		}
		return "{" + strings.Join(out, ", ") + "}"
	}
	return starlark(fmt.Sprint(v))
}

// commented makes comments of lines.
func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(strings.ToValidUTF8(line, "?"), " \t\r\n")
		line = strings.ReplaceAll(line, "\r", " ") // it would end the comment
		b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
	}
	return b.String()
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// functionName makes a name for the function of a hook: count_pods of 10-count-pods.sh.
func functionName(file string) string {
	name := strings.Trim(notInName.ReplaceAllString(strings.ToLower(file), "_"), "_")
	name = strings.TrimLeft(name, "0123456789_")
	switch {
	case name == "":
		return "run_hook"
	case reserved(name):
		return name + "_hook"
	}
	return name
}

// reserved reports whether the name is a word of Starlark, or one that hooks need.
func reserved(name string) bool {
	_, err := script.Parse("name", []byte("def "+name+"(ctx):\n    pass\n"))
	return err != nil || slices.Contains(builtins.Names(), name)
}
