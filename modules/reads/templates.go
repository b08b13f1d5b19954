package reads

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

const (
	// maxActions bounds the actions of one file, and so how deep they lie in each other;
	// maxText bounds all files together.
	maxActions = 20_000
	maxText    = 8 << 20
	// maxRounds is how often all templates are gone through, until nothing more is found
	// out of what they give each other.
	maxRounds = 20
)

// templates follows values through the templates of a chart. Each file begins with the
// root, `$`; a named template with what is given to it, wherever that is; a variable may
// have what any assignment in its template gives it. Whatever becomes of a value in a
// function that is not known here, or in the text that is rendered, counts as a read of all
// that is in it.
type templates struct {
	subcharts map[string]bool
	files     map[string]parse.Node
	bodies    map[string][]parse.Node // by name: charts may replace each other's
	dots      map[string]value        // what is given to a named template
	variables map[string]value        // by template and name
	found     map[string]bool         // places below global
	truths    map[string]bool
	all       bool // all is read
	whole     bool // the global values are read as a whole
	changed   bool // in this round something was found out
}

func newTemplates(subcharts map[string]bool) *templates {
	return &templates{
		subcharts: subcharts, files: map[string]parse.Node{}, bodies: map[string][]parse.Node{},
		dots: map[string]value{}, variables: map[string]value{}, found: map[string]bool{}, truths: map[string]bool{},
	}
}

// read looks at these files. False: they may read all.
func (t *templates) read(files map[string][]byte) bool {
	size := 0
	for name, data := range files {
		if size += len(data); size > maxText || bytes.Count(data, []byte("{{")) > maxActions || !t.parse(name, data) {
			return false
		}
	}
	for range maxRounds {
		t.changed = false
		for _, name := range slices.Sorted(maps.Keys(t.files)) {
			dot, _, ok := join(value{root: true}, t.dots[name], 0)
			t.all = t.all || !ok
			t.walk(t.files[name], scope{template: name, root: dot, dot: dot})
		}
		for _, name := range slices.Sorted(maps.Keys(t.bodies)) {
			dot := t.dots[name]
			if ofFiles(name) {
				dot = t.joined(dot, value{root: true})
			}
			for _, body := range t.bodies[name] {
				t.walk(body, scope{template: name, root: dot, dot: dot})
			}
		}
		if t.all || !t.changed {
			return !t.all
		}
	}
	return false
}

func (t *templates) parse(name string, data []byte) bool {
	if !bytes.Contains(data, []byte("{{")) {
		return true
	}
	p := parse.New(name)
	p.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := p.Parse(string(data), "", "", trees); err != nil {
		return false
	}
	for at, tree := range trees {
		if at == name {
			t.files[name] = tree.Root
		} else {
			t.bodies[at] = append(t.bodies[at], tree.Root)
		}
	}
	return true
}

// paths are those that were found.
func (t *templates) paths() []place {
	var out []place
	for _, at := range slices.Sorted(maps.Keys(t.found)) {
		out = append(out, place{keys: keysOf(at)})
	}
	for _, at := range slices.Sorted(maps.Keys(t.truths)) {
		if !t.found[at] {
			out = append(out, place{keys: keysOf(at), truth: true})
		}
	}
	return out
}

// scope is where in a template a node stands.
type scope struct {
	template  string
	root, dot value // $ and .
}

func (s scope) with(dot value) scope {
	s.dot = dot
	return s
}

// joined is join. A value that is too large to be followed may hold all.
func (t *templates) joined(a, b value) value {
	out, _, ok := join(a, b, 0)
	t.all = t.all || !ok
	return out
}

// escape: anything may become of a value.
func (t *templates) escape(v value) {
	t.all = t.all || v.root || v.values
	for at := range v.global {
		if at == "" {
			t.all, t.whole = true, true
		}
		t.found[at] = true
	}
	for _, below := range v.keys {
		t.escape(below)
	}
}

// truth: it is asked whether a value is empty. The root, values and what templates make are
// the same in this, whatever is global.
func (t *templates) truth(v value) {
	for at := range v.global {
		t.truths[at] = true
	}
}

// assign notes what a variable may be.
func (t *templates) assign(s scope, variable *parse.VariableNode, v value) {
	at := s.template + "\x00" + variable.Ident[0]
	out, grown, ok := join(t.variables[at], v, 0)
	t.variables[at], t.changed, t.all = out, t.changed || grown, t.all || !ok
}

// give notes what a named template may be given.
func (t *templates) give(name string, v value) {
	out, grown, ok := join(t.dots[name], v, 0)
	t.dots[name], t.changed, t.all = out, t.changed || grown, t.all || !ok
}

// call gives a value to a template. A name that no template defines is that of a file, whose
// chart is not known here.
func (t *templates) call(name string, v value) {
	if t.bodies[name] != nil {
		t.give(name, v)
	}
	if t.bodies[name] == nil || ofFiles(name) {
		t.callFiles(v)
	}
}

// ofFiles says that Helm may have given this name to a file: a template that is defined under
// it takes the place of the file.
func ofFiles(name string) bool { return strings.Contains(name, "/templates/") }

func (t *templates) callFiles(v value) {
	for name := range t.files {
		t.give(name, v)
	}
	for name := range t.bodies {
		if ofFiles(name) {
			t.give(name, v)
		}
	}
}

// callAny gives a value to a template whose name is not known.
func (t *templates) callAny(v value) {
	t.callFiles(v)
	for name := range t.bodies {
		t.give(name, v)
	}
}

// methods are those of Helm's type for values, the root among them: they come before keys.
var methods = []string{"YAML", "Table", "AsMap", "Encode", "PathValue"}

// field is what is under a key.
func (t *templates) field(v value, key string) value {
	if (v.root || v.values) && slices.Contains(methods, key) || v.root && key == "Subcharts" {
		t.all = true
		return value{}
	}
	out := v.keys[key]
	out = t.joined(out, value{
		values: v.root && key == "Values" || v.values && t.subcharts[key],
		global: t.globalBelow(v, key),
	})
	return out
}

func (t *templates) globalBelow(v value, key string) map[string]bool {
	out := map[string]bool{}
	if v.values && key == globalKey {
		out[""] = true
	}
	for at := range v.global {
		if strings.Count(at, "\x00") >= maxDeep || strings.Contains(key, "\x00") {
			t.escape(value{global: map[string]bool{at: true}})
			continue
		}
		out[below(at, key)] = true
	}
	return out
}

func (t *templates) fields(v value, keys []string) value {
	for _, k := range keys {
		v = t.field(v, k)
	}
	return v
}

// element is what a loop over a value, or an index that is not known, gives.
func (t *templates) element(v value) value {
	t.escape(value{root: v.root, values: v.values, global: v.global})
	out := value{}
	for _, k := range slices.Sorted(maps.Keys(v.keys)) {
		out = t.joined(out, v.keys[k])
	}
	return out
}

// walk looks at all that a template does.
func (t *templates) walk(n parse.Node, s scope) {
	if t.all {
		return
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, c := range n.Nodes {
			t.walk(c, s)
		}
	case *parse.ActionNode:
		if v := t.pipe(n.Pipe, s); len(n.Pipe.Decl) == 0 {
			t.escape(v)
		}
	case *parse.IfNode:
		t.truth(t.pipe(n.Pipe, s))
		t.walk(n.List, s)
		t.walk(n.ElseList, s)
	case *parse.WithNode:
		v := t.pipe(n.Pipe, s)
		t.truth(v)
		t.walk(n.List, s.with(v))
		t.walk(n.ElseList, s)
	case *parse.RangeNode:
		v := t.element(t.commands(n.Pipe, s))
		for i, variable := range n.Pipe.Decl {
			if i == len(n.Pipe.Decl)-1 { // before it stands the index
				t.assign(s, variable, v)
			}
		}
		t.walk(n.List, s.with(v))
		t.walk(n.ElseList, s)
	case *parse.TemplateNode:
		v := value{}
		if n.Pipe != nil {
			v = t.pipe(n.Pipe, s)
		}
		t.call(n.Name, v)
	}
}

// pipe is what a pipeline gives, also to the variables that it declares or sets.
func (t *templates) pipe(p *parse.PipeNode, s scope) value {
	v := t.commands(p, s)
	for _, variable := range p.Decl {
		t.assign(s, variable, v)
	}
	return v
}

func (t *templates) commands(p *parse.PipeNode, s scope) value {
	var last *argument
	for _, c := range p.Cmds {
		last = &argument{value: t.command(c, last, s)}
	}
	if last == nil {
		return value{}
	}
	return last.value
}

// argument is one of a function; node is nil for what comes through a pipe.
type argument struct {
	node  parse.Node
	value value
}

// command is what one command of a pipeline gives; last is what comes from the one before.
func (t *templates) command(c *parse.CommandNode, last *argument, s scope) value {
	var args []argument
	for _, n := range c.Args[1:] {
		args = append(args, argument{n, t.node(n, s)})
	}
	if last != nil {
		args = append(args, *last)
	}
	if id, ok := c.Args[0].(*parse.IdentifierNode); ok {
		return t.function(id.Ident, args)
	}
	v := t.node(c.Args[0], s)
	if len(args) > 0 { // a method
		for _, a := range args {
			t.escape(a.value)
		}
		t.escape(v)
		return value{}
	}
	return v
}

// node is what an operand gives.
func (t *templates) node(n parse.Node, s scope) value {
	switch n := n.(type) {
	case *parse.DotNode:
		return s.dot
	case *parse.FieldNode:
		return t.fields(s.dot, n.Ident)
	case *parse.VariableNode:
		v := t.variables[s.template+"\x00"+n.Ident[0]]
		if n.Ident[0] == "$" { // a template may declare it anew
			v = t.joined(v, s.root)
		}
		return t.fields(v, n.Ident[1:])
	case *parse.ChainNode:
		return t.fields(t.node(n.Node, s), n.Field)
	case *parse.PipeNode:
		return t.pipe(n, s)
	case *parse.IdentifierNode:
		return t.function(n.Ident, nil)
	}
	return value{}
}
