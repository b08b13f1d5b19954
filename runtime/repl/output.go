package repl

import (
	"encoding/json"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/object"
)

// Output is what came of some lines, in order.
type Output struct {
	Lines []Line
	size  int
	cut   bool
	show  func(Line)
}

// Line is a line of output, or several of one value.
type Line struct {
	Text string
	// Note is true for what happened beside what was asked for: effects, runs, logs
	// of hooks.
	Note bool
}

// maxOutput is how much one line may say, in bytes.
const maxOutput = 256 << 10

func (o *Output) result(text string) { o.add(Line{Text: text}) }
func (o *Output) note(text string)   { o.add(Line{Text: text, Note: true}) }

func (o *Output) add(l Line) {
	if o.cut {
		return
	}
	if left := maxOutput - o.size; len(l.Text) > left {
		l.Text, o.cut = strings.ToValidUTF8(l.Text[:left], "")+"… (the rest is cut)", true
	}
	l.Text = printable(l.Text)
	o.size += len(l.Text) + 1
	if o.show != nil {
		o.show(l)
		return
	}
	o.Lines = append(o.Lines, l)
}

// printable keeps what comes from files and clusters from driving the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, text)
}

// String is all of it, each line with its end.
func (o Output) String() string {
	var b strings.Builder
	for _, l := range o.Lines {
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// take returns the output so far and begins anew.
func (s *Session) take() Output {
	out := s.out
	s.out = Output{show: s.o.Show}
	return out
}

// fieldsText writes the fields of a log line.
func fieldsText(fields []builtins.Field) string {
	text := ""
	for _, f := range fields {
		data, err := json.Marshal(f.Value)
		if err != nil {
			data = []byte("?")
		}
		text += " " + f.Key + "=" + string(data)
	}
	return text
}

const (
	// width is how long a value may be that is shown in one line.
	width = 100
	// maxShown is how much of a value is shown, in bytes.
	maxShown = 64 << 10
	// maxDepth is how deep values are shown that lie in each other.
	maxDepth = 40
)

// show writes a value as it would be written in a program: in one line if it is short,
// else one element a line.
func show(v starlark.Value) string {
	p := &printer{}
	p.value(v, 0, 0)
	if p.b.Len() > maxShown {
		return strings.ToValidUTF8(p.b.String()[:maxShown], "") + "… (the rest is cut)"
	}
	return p.b.String()
}

type printer struct {
	b    strings.Builder
	path []starlark.Value // the lists and dicts that are being written
}

// value writes v, which begins so many bytes behind the line's start.
func (p *printer) value(v starlark.Value, at, depth int) {
	if p.b.Len() > maxShown {
		return
	}
	if size, deep := object.TextSize(v, 2*width); !deep && size <= 2*width {
		if text := v.String(); len(text) <= width-at {
			p.b.WriteString(text)
			return
		}
	}
	if depth > maxDepth {
		p.b.WriteString("…")
		return
	}
	indent := "\n" + strings.Repeat("    ", depth)
	switch v.(type) {
	case *starlark.List, *starlark.Dict:
		if slices.Contains(p.path, v) {
			p.b.WriteString("…") // in itself
			return
		}
		p.path = append(p.path, v)
		defer func() { p.path = p.path[:len(p.path)-1] }()
	}
	switch v := v.(type) {
	case starlark.String:
		p.text(string(v))
	case starlark.IterableMapping:
		p.b.WriteString("{")
		for _, item := range v.Items() {
			if p.b.Len() > maxShown {
				break
			}
			p.b.WriteString(indent + "    ")
			p.value(item[0], width, depth+1)
			p.b.WriteString(": ")
			p.value(item[1], 4*depth+20, depth+1)
			p.b.WriteString(",")
		}
		p.b.WriteString(indent + "}")
	case *starlark.List:
		p.elements("[", "]", v, indent, depth)
	case starlark.Tuple:
		p.elements("(", ")", v, indent, depth)
	case *starlark.Set:
		p.elements("set([", "])", v, indent, depth)
	default:
		text, ok := object.Text(v, maxShown)
		if !ok {
			text = "<" + v.Type() + " that is too large to be shown>"
		}
		p.b.WriteString(text)
	}
}

func (p *printer) elements(open, end string, all starlark.Iterable, indent string, depth int) {
	p.b.WriteString(open)
	next := all.Iterate()
	defer next.Done()
	var v starlark.Value
	for next.Next(&v) && p.b.Len() <= maxShown {
		p.b.WriteString(indent + "    ")
		p.value(v, 4*depth+4, depth+1)
		p.b.WriteString(",")
	}
	p.b.WriteString(indent + end)
}

// text writes a long text.
func (p *printer) text(s string) {
	if len(s) > maxShown {
		s = s[:maxShown]
	}
	p.b.WriteString(starlark.String(s).String())
}
