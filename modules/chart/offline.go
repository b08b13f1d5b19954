package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/starling-operator/starling/modules/helm"
)

// Offline is what a chart renders to without a cluster.
type Offline struct {
	// Files are the rendered templates by path, "web/templates/service.yaml", notes
	// and empty ones aside. Nil when Err is set.
	Files map[string]string
	// Err is why it does not render; for people.
	Err error
	// Broken means that Err is in the chart itself: no values would help, or it passes
	// the limits of a [Renderer] with these.
	Broken bool
	// Calls are where the templates, used or not, call the functions asked for.
	Calls []Call
	// Reads are where the chart's own templates name values by their paths.
	Reads []Read
	// CRDs are the files under crds/ of the chart and of its enabled subcharts, packed ones
	// too: they are applied before it.
	CRDs []File
	// Faults are about objects that the API server cannot be told of as the chart has them.
	Faults []Fault
	// Installs and Lookups are what module(installs = […]) and module(lookup = […]) lack.
	Installs, Lookups []Missing
}

// Missing is a line that a module would need.
type Missing struct {
	// File is the template's path in the chart; "" where that is not known.
	File string
	// Line is a grant(…).
	Line string
	// Kind and Near: there is no such kind, and the one that was probably meant is no missing grant.
	Kind, Near string
}

// Call is where a template of a chart, or of a subchart, calls a function.
type Call struct {
	// File is the template's path in the chart, Line counts from 1.
	File string
	Line int
	// Function is the name: "lookup".
	Function string
	// Differs says that a second render of a template that calls it, or may have it called, gave something else.
	Differs bool
}

// Read is where a template of a chart names a value: .Values.a.b.
type Read struct {
	// File is the template's path in the chart, Line and Col count from 1.
	File      string
	Line, Col int
	// Path are the keys: a, b.
	Path []string
}

// Offline renders the target's chart as a first install, without a cluster: lookups find
// nothing. clusterWide says which kinds are in no namespace, calls are the functions whose places it reports.
func (r *Renderer) Offline(ctx context.Context, t Input, caps *helm.Capabilities, clusterWide func(Object) bool, calls ...string) Offline {
	if err := checkFiles(t.Chart.Files); err != nil {
		return Offline{Err: fmt.Errorf("chart %s: %w", t.Chart.Name, err), Broken: true}
	}
	j, err := newJob(jobOffline, t)
	if err != nil {
		return Offline{Err: err}
	}
	j.Calls, j.Caps = calls, caps
	out, err := r.do(ctx, j, nil)
	if err != nil {
		return Offline{Err: fmt.Errorf("rendering chart %s: %w", t.Chart.Name, err), Broken: ctx.Err() == nil}
	}
	o := out.Offline
	if o.Files = out.Files; out.Err != "" {
		o.Err = errors.New(out.Err)
	}
	f := faults{t: t, seen: map[string][]place{}}
	for _, name := range slices.Sorted(maps.Keys(o.Files)) {
		objects, err := ObjectsOf(o.Files[name])
		if err != nil { // who reads the files says so
			continue
		}
		_, file, _ := strings.Cut(name, "/")
		f.file(name, objects)
		lines, wrong := MissingInstalls(t, Placed(objects, clusterWide))
		for _, missing := range wrong {
			missing.File = file
			o.Installs = append(o.Installs, missing)
		}
		for _, line := range lines {
			o.Installs = append(o.Installs, Missing{File: file, Line: line})
		}
	}
	o.Faults = f.all()
	return o
}

func renderOffline(t Input, ch *helm.Chart, caps *helm.Capabilities, calls func(string) bool) (o Offline) {
	found := finder{wanted: calls, includes: map[string][]string{}}
	if err := found.look(ch); err != nil {
		return Offline{Err: errors.New(InSource(t.Chart, err.Error())), Broken: true}
	}
	o.Calls, o.Reads = found.calls, found.reads
	looked := &offlineLookups{target: t}
	var err error
	o.Files, err = renderOnce(t, ch, caps, looked)
	o.Lookups = looked.missing
	o.CRDs = helm.CRDs(ch)
	if err != nil {
		o.Err, o.Broken = errors.New(InSource(t.Chart, err.Error())), noFunction.MatchString(err.Error())
		return o
	}
	if len(o.Calls) == 0 {
		return o
	}
	if ch, err = Installable(t.Chart); err != nil {
		return Offline{Err: err, Broken: true}
	}
	again, err := renderOnce(t, ch, caps, &offlineLookups{target: t})
	differ := map[string]bool{} // templates, and what they include
	for name, text := range o.Files {
		if err != nil || again[name] != text {
			found.reach(name, differ)
		}
	}
	for i := range o.Calls {
		o.Calls[i].Differs = differ[found.holders[i]]
	}
	return o
}

// noFunction is how the template engine says that there is no such function.
var noFunction = regexp.MustCompile(`function "[^"]*" not defined`)

// renderOnce renders a chart that was loaded for this.
func renderOnce(t Input, ch *helm.Chart, caps *helm.Capabilities, looked *offlineLookups) (map[string]string, error) {
	files, _, err := renderChart(t, ch, looked.find, caps, false, 1)
	maps.DeleteFunc(files, func(_, text string) bool { return strings.TrimSpace(text) == "" })
	return files, err
}

// finder looks into the templates of a chart and of its subcharts.
type finder struct {
	wanted func(string) bool
	calls  []Call
	// holders are the templates that hold the calls, one for each.
	holders []string
	// reads are those of the chart's own templates: values of subcharts are others.
	reads []Read
	// includes are the templates that a template names.
	includes map[string][]string
}

func (f *finder) look(ch *helm.Chart) error {
	for _, c := range helm.All(ch) {
		for _, file := range c.Templates {
			if bytes.IndexByte(file.Data, '{') < 0 {
				continue
			}
			full := c.ChartFullPath() + "/" + file.Name
			path := strings.TrimPrefix(full, ch.Name()+"/")
			trees, err := parseTemplate(full, file.Data)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(trees)) {
				walkTemplate(trees[name].Root, func(n parse.Node) { f.see(n, name, path, file.Data, c == ch) })
			}
		}
	}
	return nil
}

// see takes in a leaf of a template; own says that it is the chart's own.
func (f *finder) see(n parse.Node, template, file string, data []byte, own bool) {
	before := data[:min(int(n.Position()), len(data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	switch n := n.(type) {
	case *parse.IdentifierNode:
		if f.wanted(n.Ident) {
			f.calls = append(f.calls, Call{File: file, Line: line, Function: n.Ident})
			f.holders = append(f.holders, template)
		}
	case *parse.StringNode: // the name of a template, at times
		f.includes[template] = append(f.includes[template], n.Text)
	case *parse.TemplateNode:
		f.includes[template] = append(f.includes[template], n.Name)
	}
	if path := valuesPath(n); len(path) > 0 && own {
		col := len(before) - bytes.LastIndexByte(before, '\n')
		if n.Type() == parse.NodeField { // a chain's place is that of its second name
			col -= len(".Values")
		} else {
			col -= len("$")
		}
		f.reads = append(f.reads, Read{File: file, Line: line, Col: col, Path: path})
	}
}

// reach notes a template and all that it may include.
func (f *finder) reach(name string, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	for _, other := range f.includes[name] {
		f.reach(other, seen)
	}
}

// parseTemplate reads the templates of one file, by name.
func parseTemplate(name string, data []byte) (map[string]*parse.Tree, error) {
	p := parse.New(name)
	p.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	_, err := p.Parse(string(data), "", "", trees)
	return trees, err
}

// valuesPath returns the keys of .Values.a.b and $.Values.a.b; nil for all else.
func valuesPath(n parse.Node) []string {
	var keys []string
	switch n := n.(type) {
	case *parse.FieldNode:
		keys = n.Ident
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			keys = n.Ident[1:]
		}
	}
	if len(keys) < 2 || keys[0] != "Values" {
		return nil
	}
	return keys[1:]
}

// walkTemplate calls see for each leaf of a template, such as functions, fields, texts, and names of others.
func walkTemplate(n parse.Node, see func(parse.Node)) {
	var below []parse.Node
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			below = n.Nodes
		}
	case *parse.ActionNode:
		below = []parse.Node{n.Pipe}
	case *parse.PipeNode:
		for i := 0; n != nil && i < len(n.Cmds); i++ {
			below = append(below, n.Cmds[i].Args...)
		}
	case *parse.ChainNode:
		below = []parse.Node{n.Node}
	case *parse.IfNode:
		below = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.RangeNode:
		below = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.WithNode:
		below = []parse.Node{n.Pipe, n.List, n.ElseList}
	case *parse.TemplateNode:
		see(n)
		below = []parse.Node{n.Pipe}
	case *parse.IdentifierNode, *parse.FieldNode, *parse.VariableNode, *parse.StringNode:
		see(n)
	}
	for _, inner := range below {
		walkTemplate(inner, see)
	}
}
