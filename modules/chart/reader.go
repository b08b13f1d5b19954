package chart

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/starling-operator/starling/modules/helm"
)

const (
	// maxWalk bounds the reading of one template, maxStates in how many ways it may go on at one place, maxTexts
	// how many texts an expression may give, maxIncludes how deep templates include others.
	maxWalk, maxStates, maxTexts, maxIncludes = 200_000, 256, 64, 24
	// maxReadText bounds a text that is put together.
	maxReadText = 64 << 10
)

// chartTemplate is one of those of a chart, as a file or by define.
type chartTemplate struct {
	name, file string // as Helm names them
	path       string // in the chart
	root       *parse.ListNode
	chart      *helm.Chart
	data       []byte
}

// rendered says that Helm renders it by itself.
func (t chartTemplate) rendered() bool {
	return t.name == t.file && !strings.HasPrefix(path.Base(t.file), "_") && !strings.HasSuffix(t.file, "NOTES.txt") && t.chart.Metadata.Type != "library"
}

// templateReader follows templates on all their ways, whatever the values.
type templateReader struct {
	templates map[string]chartTemplate
	out       []Written
	seen      map[Written]bool

	file  chartTemplate // that is being read
	steps int
	over  bool // there are more ways than it follows
}

// parse reads the templates of a chart and of its subcharts.
func (r *templateReader) parse(ch *helm.Chart) error {
	for _, c := range helm.All(ch) {
		for _, file := range c.Templates {
			name := c.ChartFullPath() + "/" + file.Name
			trees, err := parseTemplate(name, file.Data)
			if err != nil {
				return err
			}
			for defined, tree := range trees {
				if tree.Root != nil {
					r.templates[defined] = chartTemplate{defined, name, nameOf(name), tree.Root, c, file.Data}
				}
			}
		}
	}
	return nil
}

// read follows a template that Helm renders.
func (r *templateReader) read(t chartTemplate) {
	r.file, r.steps, r.over = t, 0, false
	for _, s := range r.walk(t.root, scopeOf(t, possible{}), []state{{}}) {
		r.emit(r.endLine(s))
	}
	if r.over {
		start := position{t.file, 0}
		r.out = append(r.out, Written{File: t.path, Line: 1, at: site{start, start}})
	}
}

// scope is what a template sees.
type scope struct {
	in      chartTemplate
	dot     possible
	top     possible
	vars    map[string]possible
	outer   *position // of the action in the file that is being read, which has led here
	line    int       // of it
	here    *position // of the action
	depth   int
	unmoved bool // positions are not those of the file
}

func scopeOf(t chartTemplate, dot possible) *scope {
	return &scope{in: t, dot: dot, top: dot, vars: map[string]possible{}}
}

// at moves to an action.
func (s *scope) at(n parse.Node) *scope {
	out := *s
	if s.unmoved {
		return &out
	}
	at := position{s.in.file, int(n.Position())}
	out.here = &at
	if s.outer == nil {
		out.outer, out.line = &at, s.lineOf(n)
	}
	return &out
}

func (s *scope) lineOf(n parse.Node) int {
	return 1 + bytes.Count(s.in.data[:min(int(n.Position()), len(s.in.data))], []byte("\n"))
}

func (s *scope) site() site {
	if s.outer == nil {
		return site{}
	}
	return site{*s.outer, *s.here}
}

// walk follows a node from each of some states.
func (r *templateReader) walk(n parse.Node, s *scope, in []state) []state {
	if r.steps += len(in); r.steps > maxWalk || len(in) > maxStates {
		r.over = true
		in = in[:min(len(in), 1)]
		if r.steps > maxWalk {
			return in
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, c := range n.Nodes {
				in = r.walk(c, s, in)
			}
		}
	case *parse.TextNode:
		line, moves := s.line, s.outer == nil && !s.unmoved
		if moves {
			line = s.lineOf(n)
		}
		return joined(in, func(st state) state { return r.write(st, string(n.Text), site{}, line, moves) })
	case *parse.ActionNode:
		if len(n.Pipe.Decl) > 0 {
			s.assign(n.Pipe, r.pipe(n.Pipe, s.at(n)))
			return in
		}
		return r.output(n.Pipe, s.at(n), in)
	case *parse.TemplateNode:
		var dot possible
		if n.Pipe != nil {
			dot = r.pipe(n.Pipe, s.at(n))
		}
		return r.include(n.Name, dot, s.at(n), in)
	case *parse.IfNode:
		s.assign(n.Pipe, r.pipe(n.Pipe, s.at(n)))
		return unionOf(r.walk(n.List, s, in), r.walk(n.ElseList, s, in))
	case *parse.WithNode:
		within := *s
		within.dot = r.pipe(n.Pipe, s.at(n))
		s.assign(n.Pipe, within.dot)
		return unionOf(r.walk(n.List, &within, in), r.walk(n.ElseList, s, in))
	case *parse.RangeNode:
		return r.each(n, s, in)
	}
	return in
}

// each follows a range: once for each element that is known, or once for all.
func (r *templateReader) each(n *parse.RangeNode, s *scope, in []state) []state {
	over := r.pipe(n.Pipe, s.at(n))
	out := in
	do := func(key, element possible) {
		within := *s
		within.dot = element
		switch decl := n.Pipe.Decl; len(decl) {
		case 2:
			s.set(decl[0].Ident[0], key)
			s.set(decl[1].Ident[0], element)
		case 1:
			s.set(decl[0].Ident[0], element)
		}
		out = r.walk(n.List, &within, out)
	}
	// A variable of one element is not that of the next.
	forget := func() {
		for _, v := range n.Pipe.Decl {
			delete(s.vars, v.Ident[0])
		}
	}
	for _, e := range over.list {
		do(cannotTell(), e)
		forget()
	}
	for _, key := range slices.Sorted(maps.Keys(over.fields)) {
		do(textOf(key), over.fields[key])
		forget()
	}
	if len(over.texts) > 0 {
		before := out
		do(cannotTell(), cannotTell())
		out = unionOf(before, out)
	}
	return unionOf(out, r.walk(n.ElseList, s, in))
}

// include follows another template.
func (r *templateReader) include(name string, dot possible, s *scope, in []state) []state {
	t, known := r.templates[name]
	if !known {
		return in // it does not render
	}
	if s.depth >= maxIncludes {
		return joined(in, func(st state) state { return r.write(st, unknownText, s.site(), s.line, false) })
	}
	within := scopeOf(t, dot)
	within.outer, within.here, within.line, within.depth = s.outer, s.here, s.line, s.depth+1
	return r.walk(t.root, within, in)
}

// text follows a template that is known as a text only, as tpl does.
func (r *templateReader) text(text string, dot possible, s *scope, in []state) []state {
	trees, err := parseTemplate("tpl", []byte(text))
	if err != nil || s.depth >= maxIncludes {
		return joined(in, func(st state) state { return r.write(st, unknownText, s.site(), s.line, false) })
	}
	within := scopeOf(s.in, dot)
	within.outer, within.here, within.line, within.depth, within.unmoved = s.outer, s.here, s.line, s.depth+1, true
	return r.walk(trees["tpl"].Root, within, in)
}

// shapes are functions that leave a text the object that it is.
var shapes = []string{"trim", "nindent", "indent", "toString"}

// output follows an action that prints.
func (r *templateReader) output(p *parse.PipeNode, s *scope, in []state) []state {
	first, shaped := p.Cmds[0], true
	for _, c := range p.Cmds[1:] {
		id, is := c.Args[0].(*parse.IdentifierNode)
		shaped = shaped && is && slices.Contains(shapes, id.Ident)
	}
	id, is := first.Args[0].(*parse.IdentifierNode)
	var out, inline []state
	if is && shaped && len(first.Args) == 3 && (id.Ident == "include" || id.Ident == "tpl") {
		names, dot := r.value(first.Args[1], s), r.value(first.Args[2], s)
		if len(names.texts) > 0 && len(names.list)+len(names.fields) == 0 && !slices.ContainsFunc(names.texts, isUnknown) {
			var lines []state // the text has lines for itself
			for _, st := range in {
				if strings.TrimSpace(st.line) == "" || len(p.Cmds) > 1 && strings.Contains(p.String(), "nindent") {
					lines = append(lines, st)
				} else {
					inline = append(inline, st)
				}
			}
			indent := indentOf(p)
			if indent >= 0 {
				lines = joined(lines, func(st state) state { return r.write(st, "\n", site{}, s.line, false) })
			}
			within := slices.DeleteFunc(slices.Clone(lines), func(st state) bool { return st.dented && !st.items && indent > st.indent })
			out = slices.DeleteFunc(lines, func(st state) bool { return !(st.dented && !st.items && indent > st.indent) })
			for _, text := range names.texts {
				if id.Ident == "include" {
					out = unionOf(out, r.include(text, dot, s, within))
				} else {
					out = unionOf(out, r.text(text, dot, s, within))
				}
			}
			in = inline
		}
	}
	for _, text := range r.pipe(p, s).asTexts() {
		out = unionOf(out, joined(in, func(st state) state { return r.write(st, text, s.site(), s.line, false) }))
	}
	return out
}

// indentOf is by how much a pipe indents its lines; -1: it does not.
func indentOf(p *parse.PipeNode) int {
	for _, c := range p.Cmds[1:] {
		if n, is := c.Args[len(c.Args)-1].(*parse.NumberNode); is && len(c.Args) == 2 && n.IsInt {
			return int(n.Int64)
		}
	}
	return -1
}

// joined are states after a step, each once.
func joined(in []state, step func(state) state) []state {
	var out []state
	for _, s := range in {
		if s = step(s); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func unionOf(a, b []state) []state {
	return joined(append(slices.Clone(a), b...), func(s state) state { return s })
}
