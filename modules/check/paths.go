package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/script"
)

// valueCall is a call of a values builtin whose path is written out.
type valueCall struct {
	function string // "values.set"
	path     []string
	pos      syntax.Position
	// value is what is set, nil for other functions.
	value syntax.Expr
}

func (v valueCall) reads() bool { return v.function == "values.get" || v.function == "values.has" }

// asValueCall returns the call's path, when it is a text or a list of texts.
func (s *source) asValueCall(n syntax.Node, shape map[string]any) (valueCall, bool) {
	call, ok := n.(*syntax.CallExpr)
	if !ok {
		return valueCall{}, false
	}
	name := s.builtin(call.Fn)
	switch name {
	case "values.get", "values.has", "values.set", "values.default", "values.merge", "values.remove":
	default:
		return valueCall{}, false
	}
	arg := script.ArgumentOf(call, 0, "path")
	if arg == nil {
		return valueCall{}, false
	}
	pos, _ := arg.Span()
	v := valueCall{function: name, pos: pos}
	if name == "values.set" || name == "values.default" || name == "values.merge" {
		v.value = script.ArgumentOf(call, 1, "value")
	}
	if p, ok := script.TextOf(arg); ok && p != "" {
		v.path = object.Dotted(p).Resolve(shape)
		return v, true
	}
	list, ok := arg.(*syntax.ListExpr)
	if !ok || len(list.List) == 0 {
		return valueCall{}, false
	}
	for _, e := range list.List {
		key, ok := script.TextOf(e)
		if !ok {
			return valueCall{}, false
		}
		v.path = append(v.path, key)
	}
	return v, true
}

// view is what hooks of a module see as values before any has run.
func (c *checker) view(m *generation.Module) map[string]any {
	global := c.withDerived(c.values["global"].composer.Compose())
	if m.Global {
		return values.GlobalView(global)
	}
	return values.ModuleView(c.values[m.Name].composer.Compose(), global)
}

// valuePaths holds the paths that hook files write out to the schemas.
func (c *checker) valuePaths() {
	switches := c.gen.Switches()
	for _, m := range c.modules {
		if c.values[m.Name].broken {
			continue
		}
		shape := c.view(m)
		for _, file := range append(c.ownLibraries(m), append(slices.Clip(m.Tree.HookFiles), m.Tree.ModuleFile)...) {
			s := c.files[file]
			if s == nil {
				continue
			}
			syntax.Walk(s.file, func(n syntax.Node) bool {
				if v, ok := s.asValueCall(n, shape); ok {
					c.valuePath(m, s, v, shape, switches)
				}
				c.exportCall(s, n)
				c.configCall(m, s, n)
				return true
			})
		}
	}
}

// ownLibraries are the other files of a module's folder, when nobody else loads them: the
// values that they set are the module's.
func (c *checker) ownLibraries(m *generation.Module) []string {
	if m.Global {
		return nil // modules load those of global/
	}
	own := m.Tree.Dir + "/"
	var out []string
	for file := range c.files {
		if !strings.HasPrefix(file, own) || strings.HasSuffix(file, "_test.star") || file == m.Tree.ModuleFile || slices.Contains(m.Tree.HookFiles, file) {
			continue
		}
		shared := false
		for _, s := range c.files {
			for _, from := range s.loads {
				shared = shared || from.file == file && !strings.HasPrefix(s.path, own)
			}
		}
		if !shared {
			out = append(out, file)
		}
	}
	return out
}

func (c *checker) valuePath(m *generation.Module, s *source, v valueCall, shape map[string]any, switches []string) {
	first, path := v.path[0], v.path
	isSwitch := len(path) == 1 && slices.Contains(switches, first)
	text := object.KeysText(path)
	schema := c.values[m.Name].schema
	switch {
	case isSwitch && m.Global:
		if t := s.typeOf(v.value); v.function == "values.set" && t != "" && t != "boolean" {
			pos, _ := v.value.Span()
			c.at(Error, "values", pos, text+" must be True or False, this is "+inWords([]string{t}), "")
		}
		return
	case isSwitch && !v.reads():
		c.at(Error, "values", v.pos, "only global hooks may set "+text+", which switches a module", "")
		return
	case first == values.GlobalKey && !m.Global && !v.reads():
		c.at(Error, "values", v.pos, "only global hooks may set "+text, "")
		return
	case first == values.GlobalKey:
		schema, path = c.values["global"].schema, path[1:]
	case m.Global && !v.reads():
		near := cmp.Or(message.Nearest(first, append([]string{values.GlobalKey}, switches...)), "global."+text)
		c.at(Error, "values", v.pos, "global hooks may only set global.… and the switches of modules, not "+text, "did you mean "+near+"?")
		return
	case m.Global:
		return
	}
	if schema == nil || len(path) == 0 {
		return
	}
	if v.value != nil {
		c.typesOf(s, v.value, schema, path, text)
	}
	if _, there := object.Get(shape, v.path); there {
		return
	}
	for _, p := range schema.UnknownOps([]effect.ValueOp{{Op: effect.OpRemove, Path: path}}) {
		if v.reads() {
			c.at(Warning, "values", v.pos, fmt.Sprintf("%s is never there: the schema has no such field (%s)", text, strings.TrimLeft(strings.TrimPrefix(p.Message, "unknown field"), ",; ")), "")
		} else {
			c.at(Error, "values", v.pos, fmt.Sprintf("%s cannot be set: the schema has no such field (%s)", text, strings.TrimLeft(strings.TrimPrefix(p.Message, "unknown field"), ",; ")), "")
		}
	}
}

// setting is one path that a hook sets.
type setting struct {
	hook *generation.Hook
	valueCall
	// always: each run that succeeds sets it.
	always bool
}

// conflicts finds two hooks of one module that set one path. It sees
// literal paths in the hook's function, and in functions of the tree that it calls.
func (c *checker) conflicts() {
	for _, m := range c.modules {
		var all []setting
		shape := c.view(m)
		for _, h := range m.Hooks {
			fn, ok := h.Fn.(*starlark.Function)
			if !ok {
				continue
			}
			s := c.files[fn.Position().Filename()]
			if s == nil {
				continue
			}
			if def := s.functions[fn.Name()]; def != nil {
				all = append(all, c.settings(s, h, def, shape, true, map[*syntax.DefStmt]bool{})...)
			}
		}
		c.conflictsAmong(all)
	}
}

func (c *checker) conflictsAmong(all []setting) {
	reported := map[string]bool{}
	for i, b := range all {
		for _, a := range all[:i] {
			defaults := a.function == "values.default"
			if a.hook == b.hook || defaults != (b.function == "values.default") || !overlap(a.path, b.path) {
				continue
			}
			key := a.hook.ID + " " + b.hook.ID + " " + object.KeysText(b.path)
			if reported[key] {
				continue
			}
			reported[key] = true
			severity, what := Warning, "may set"
			if a.always && b.always {
				severity, what = Error, "sets"
			}
			c.at(severity, "values", b.pos, fmt.Sprintf("hook %s sets %s, and hook %s %s %s (%s:%d): the second one to run fails",
				b.hook.HookDecl.ID, object.KeysText(b.path), a.hook.HookDecl.ID, what, object.KeysText(a.path), a.pos.Filename(), a.pos.Line), "let one hook set it, or let both give keys of one dict to values.merge")
		}
	}
}

// overlap: the paths are equal, or one contains the other.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// settings returns what a function sets, and what the functions of the tree do that it
// calls. always is true while nothing decides whether a statement runs.
func (c *checker) settings(s *source, h *generation.Hook, def *syntax.DefStmt, shape map[string]any, always bool, seen map[*syntax.DefStmt]bool) []setting {
	if seen[def] {
		return nil
	}
	seen[def] = true
	var out []setting
	for _, stmt := range def.Body {
		expr, plain := stmt.(*syntax.ExprStmt)
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.DefStmt, *syntax.LambdaExpr:
				return false // called who knows when
			case *syntax.ReturnStmt:
				always = false
			case *syntax.CallExpr:
				now := always && plain && expr.X == syntax.Expr(n)
				if id, ok := n.Fn.(*syntax.Ident); ok {
					if of, def := c.called(s, id.Name); def != nil {
						out = append(out, c.settings(of, h, def, shape, now, seen)...)
					}
				}
				if v, ok := s.asValueCall(n, shape); ok && !v.reads() && v.function != "values.merge" {
					out = append(out, setting{h, v, now})
				}
			}
			return true
		})
	}
	return out
}
