package chart

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"

	"github.com/starling-operator/starling/modules/helm"
)

// possible is what an expression of a template may give, whatever the values: texts, and parts of lists and dicts.
// The zero value is the top of what a template sees.
type possible struct {
	texts  []string // unknownText stands for what cannot be told
	list   []possible
	fields map[string]possible
	// never: it gives nothing, for the template fails.
	never bool
}

func cannotTell() possible                { return possible{texts: []string{unknownText}} }
func textOf(texts ...string) possible     { return possible{texts: texts} }
func isUnknown(text string) bool          { return strings.Contains(text, unknownText) }
func (p possible) isTop() bool            { return p.texts == nil && p.list == nil && p.fields == nil && !p.never }
func (s *scope) set(n string, p possible) { s.vars[n] = either(s.vars[n], p) }

// assign notes what a pipe gives its variables. Which assignment counts hangs on conditions: all do.
func (s *scope) assign(p *parse.PipeNode, v possible) {
	for _, decl := range p.Decl {
		if old, known := s.vars[decl.Ident[0]]; known {
			v = either(old, v)
		}
		s.vars[decl.Ident[0]] = v
	}
}

// either is one of some.
func either(all ...possible) (out possible) {
	for _, p := range all {
		for _, text := range p.texts {
			if !slices.Contains(out.texts, text) {
				out.texts = append(out.texts, text)
			}
		}
		out.list = append(out.list, p.list...)
		if p.fields != nil && out.fields == nil {
			out.fields = map[string]possible{}
		}
		for k, v := range p.fields {
			if old, known := out.fields[k]; known {
				v = either(old, v)
			}
			out.fields[k] = v
		}
	}
	if len(out.texts) > maxTexts || len(out.list) > maxTexts {
		return cannotTell()
	}
	return out
}

// asTexts is what it prints.
func (p possible) asTexts() []string {
	if p.list != nil || p.fields != nil || p.isTop() {
		return append(slices.Clone(p.texts), unknownText)
	}
	return p.texts
}

// each changes all texts. Of one that cannot be told nothing is known but where it stands.
func (p possible) each(change func(string) string) possible {
	var out possible
	for _, text := range p.asTexts() {
		out = either(out, textOf(change(text)))
	}
	out.never = p.never
	return out
}

// field is what stands under a key.
func (p possible) field(key string) possible {
	v, known := p.fields[key]
	if p.fields == nil || len(p.texts) > 0 {
		return either(v, cannotTell())
	}
	if !known {
		return textOf("")
	}
	return v
}

// elements are those of a list.
func (p possible) elements() possible {
	if len(p.texts) > 0 || p.fields != nil || len(p.list) == 0 {
		return cannotTell()
	}
	return either(p.list...)
}

// pipe is what a pipe gives.
func (r *templateReader) pipe(p *parse.PipeNode, s *scope) possible {
	var last *possible
	for _, c := range p.Cmds {
		v := r.command(c, s, last)
		last = &v
	}
	if last == nil {
		return cannotTell()
	}
	return *last
}

func (r *templateReader) command(c *parse.CommandNode, s *scope, piped *possible) possible {
	if r.steps++; r.steps > maxWalk {
		r.over = true
		return cannotTell()
	}
	var args []possible
	for _, a := range c.Args[1:] {
		args = append(args, r.value(a, s))
	}
	if piped != nil {
		args = append(args, *piped)
	}
	switch first := c.Args[0].(type) {
	case *parse.IdentifierNode:
		return r.call(first.Ident, args, s)
	case *parse.FieldNode:
		if len(args) > 0 {
			return files(s.in.chart, first.Ident, args[0])
		}
	case *parse.VariableNode:
		if len(args) > 0 {
			return files(s.in.chart, first.Ident, args[0])
		}
	}
	return r.value(c.Args[0], s)
}

// files answers .Files.Get and .Files.Glob.
func files(ch *helm.Chart, names []string, arg possible) (out possible) {
	if len(names) < 2 || names[len(names)-2] != "Files" || slices.ContainsFunc(arg.asTexts(), isUnknown) {
		return cannotTell()
	}
	for _, name := range arg.texts {
		for _, f := range ch.Files {
			switch matches, err := path.Match(name, f.Name); {
			case names[len(names)-1] == "Get" && f.Name == name && len(f.Data) <= maxReadText:
				out = either(out, textOf(string(f.Data)))
			case names[len(names)-1] == "Glob" && err == nil && matches && len(f.Data) <= maxReadText:
				out = either(out, possible{fields: map[string]possible{f.Name: textOf(string(f.Data))}})
			}
		}
	}
	if out.isTop() {
		return cannotTell()
	}
	return out
}

func (r *templateReader) value(n parse.Node, s *scope) possible {
	switch n := n.(type) {
	case *parse.StringNode:
		return textOf(n.Text)
	case *parse.NumberNode:
		return textOf(n.Text)
	case *parse.BoolNode:
		return textOf("true", "false")
	case *parse.NilNode:
		return textOf("")
	case *parse.DotNode:
		return s.dot
	case *parse.PipeNode:
		return r.pipe(n, s)
	case *parse.IdentifierNode:
		return r.call(n.Ident, nil, s)
	case *parse.FieldNode:
		return fieldsIn(s.dot, n.Ident)
	case *parse.ChainNode:
		return fieldsIn(r.value(n.Node, s), n.Field)
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			return fieldsIn(s.top, n.Ident[1:])
		}
		if v, known := s.vars[n.Ident[0]]; known {
			return fieldsIn(v, n.Ident[1:])
		}
	}
	return cannotTell()
}

func fieldsIn(p possible, names []string) possible {
	for _, name := range names {
		p = p.field(name)
	}
	return p
}

// call is what a function of templates gives, of those with which kinds are made.
func (r *templateReader) call(name string, args []possible, s *scope) possible {
	last := cannotTell()
	if len(args) > 0 {
		last = args[len(args)-1]
	}
	text := func(i int) string { // of an argument that can be nothing else
		if i < len(args) && len(args[i].texts) == 1 && args[i].list == nil && args[i].fields == nil {
			return args[i].texts[0]
		}
		return unknownText
	}
	switch name {
	case "ternary":
		return either(args[:min(2, len(args))]...)
	case "default", "coalesce", "or", "and":
		return either(args...)
	case "required", "toString", "deepCopy", "mustDeepCopy":
		return last
	case "fail":
		return possible{never: true}
	case "list", "tuple":
		return possible{list: args}
	case "append", "mustAppend", "prepend", "mustPrepend", "concat":
		var all possible
		for i, a := range args {
			if name == "concat" || i == 0 {
				all = either(all, a)
			} else {
				all.list = append(slices.Clone(all.list), a)
			}
		}
		return all
	case "first", "last", "mustFirst", "mustLast":
		return last.elements()
	case "uniq", "reverse", "compact", "sortAlpha", "rest", "initial":
		return last
	case "dict":
		out := possible{fields: map[string]possible{}}
		for i := 0; i+1 < len(args); i += 2 {
			if isUnknown(text(i)) {
				return cannotTell()
			}
			out.fields[text(i)] = args[i+1]
		}
		return out
	case "set":
		if len(args) == 3 && args[0].fields != nil && !isUnknown(text(1)) {
			args[0].fields[text(1)] = either(args[0].fields[text(1)], args[2]) // for who has the dict, too
			return args[0]
		}
	case "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite":
		return either(args...)
	case "get", "index":
		if len(args) < 2 {
			break
		}
		at := args[0]
		for i := range args[1:] {
			switch {
			case at.list != nil:
				at = at.elements()
			case isUnknown(text(i + 1)):
				at = either(append(slices.Collect(maps.Values(at.fields)), cannotTell())...)
			default:
				at = at.field(text(i + 1))
			}
		}
		return at
	case "eq", "ne", "lt", "le", "gt", "ge", "not", "empty", "has", "hasKey", "contains", "hasPrefix", "hasSuffix", "semverCompare", "kindIs":
		return textOf("true", "false")
	case "print":
		return r.printed(strings.Repeat("%v", len(args)), args)
	case "printf":
		if len(args) > 0 {
			return r.printed(text(0), args[1:])
		}
	case "include", "tpl":
		if len(args) != 2 {
			break
		}
		var out []state
		for _, text := range args[0].asTexts() {
			switch {
			case isUnknown(text):
				return cannotTell()
			case name == "include":
				out = unionOf(out, r.plain(func(in []state) []state { return r.include(text, args[1], s, in) }))
			default:
				out = unionOf(out, r.plain(func(in []state) []state { return r.text(text, args[1], s, in) }))
			}
		}
		texts := possible{never: true}
		for _, st := range out {
			texts.texts = append(texts.texts, st.line)
		}
		return either(texts)
	case "toYaml", "mustToYaml", "toJson", "mustToJson":
		if last.fields != nil && last.texts == nil {
			return r.printed("apiVersion: %v\nkind: %v\n", []possible{last.field("apiVersion"), last.field("kind")})
		}
	case "quote", "squote", "trim", "lower", "upper", "title":
		return last.each(changes[name])
	case "trimSuffix", "trimPrefix":
		return last.each(func(t string) string {
			switch {
			case isUnknown(t + text(0)):
				return unknownText
			case name == "trimSuffix":
				return strings.TrimSuffix(t, text(0))
			}
			return strings.TrimPrefix(t, text(0))
		})
	case "replace":
		return last.each(func(t string) string {
			if isUnknown(t + text(0) + text(1)) {
				return unknownText
			}
			return strings.ReplaceAll(t, text(0), text(1))
		})
	case "indent", "nindent":
		return last.each(func(t string) string {
			n, err := strconv.Atoi(text(0))
			if err != nil || n < 0 || n > 100 {
				n = 2
			}
			pad := strings.Repeat(" ", n)
			t = pad + strings.ReplaceAll(t, "\n", "\n"+pad)
			if name == "nindent" {
				t = "\n" + t
			}
			return t
		})
	}
	return cannotTell()
}

// changes are functions of templates that change a text.
var changes = map[string]func(string) string{
	"quote": inQuotes, "squote": inQuotes, "trim": strings.TrimSpace, "lower": strings.ToLower, "upper": strings.ToUpper,
	//lint:ignore SA1019 deprecated, and that of Helm's function all the same
	"title": strings.Title,
}

func inQuotes(text string) string { return `"` + text + `"` }

// plain follows templates to their texts.
func (r *templateReader) plain(follow func([]state) []state) []state {
	return follow([]state{{plain: true}})
}

// printed fills a format in all ways.
func (r *templateReader) printed(format string, args []possible) possible {
	out := []string{""}
	parts := verb.Split(format, -1)
	if len(parts) != len(args)+1 || isUnknown(format) {
		return cannotTell()
	}
	for i, part := range parts {
		var next []string
		texts := []string{""}
		if i > 0 {
			texts = args[i-1].asTexts()
		}
		for _, before := range out {
			for _, text := range texts {
				next = append(next, before+text+part)
			}
		}
		if out = next; len(out) > maxTexts {
			return cannotTell()
		}
	}
	return possible{texts: out}
}
