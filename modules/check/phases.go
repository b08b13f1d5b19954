package check

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
)

// function is one function or lambda of a file.
type function struct {
	file string
	place
}

// phases reports builtins that a function calls where they are refused, and those of the
// functions of its file that it calls. Of functions that several kinds of runs call
// nothing is said, they may ask which one it is; nor of those that other files load.
func (c *checker) phases() {
	specs := map[string]builtins.Spec{}
	for _, s := range builtins.Table() {
		specs[s.Name] = s
	}
	called := map[function]map[builtins.Phase]bool{}
	note := func(fn starlark.Callable, phase builtins.Phase) {
		f, ok := fn.(*starlark.Function)
		if !ok {
			return
		}
		pos := f.Position()
		s := c.files[pos.Filename()]
		if s == nil {
			return // of the standard library
		}
		at := function{pos.Filename(), place{pos.Line, pos.Col}}
		for _, fn := range s.reachable(at) {
			if called[fn] == nil {
				called[fn] = map[builtins.Phase]bool{}
			}
			called[fn][phase] = true
		}
	}
	for _, m := range c.modules {
		note(m.Enabled, builtins.PhaseEnabled)
		note(m.ChartValues, builtins.PhaseFilter)
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				switch {
				case b.Admission != nil:
					note(h.Fn, builtins.PhaseReview)
				case b.Receive != nil:
					note(h.Fn, builtins.PhaseReceive)
				case b.Convert != nil:
					for _, step := range b.Convert.Steps {
						note(step, builtins.PhaseConvert)
					}
				default:
					note(h.Fn, builtins.PhaseRun)
				}
				if b.Watch != nil {
					note(b.Watch.Filter, builtins.PhaseFilter)
				}
			}
			note(h.Cleanup, builtins.PhaseRun)
		}
	}
	elsewhere := c.loadedNames()
	for at, phases := range called {
		def, isDef := c.files[at.file].at[at.place].(*syntax.DefStmt)
		if len(phases) != 1 || isDef && elsewhere[def.Name.Name] {
			continue
		}
		for phase := range phases {
			s := c.files[at.file]
			c.phase(s, s.at[at.place], phase, specs)
		}
	}
}

// reachable returns a function and those of its file that it calls by name, directly or
// not. Names that mean something else anywhere in the file are left out.
func (s *source) reachable(from function) []function {
	if s.at[from.place] == nil {
		return nil
	}
	out := []function{from}
	for i := 0; i < len(out); i++ {
		syntax.Walk(s.at[out[i].place], func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok {
				return true
			}
			id, ok := call.Fn.(*syntax.Ident)
			if !ok || s.functions[id.Name] == nil || s.times[id.Name] != 1 {
				return true
			}
			def := s.functions[id.Name].Def
			if to := (function{s.path, place{def.Line, def.Col}}); !slices.Contains(out, to) {
				out = append(out, to)
			}
			return true
		})
	}
	return out
}

// loadedNames are the names that files of the tree load from others of it.
func (c *checker) loadedNames() map[string]bool {
	out := map[string]bool{}
	for _, s := range c.files {
		for _, stmt := range s.file.Stmts {
			if load, ok := stmt.(*syntax.LoadStmt); ok && !strings.HasSuffix(s.path, "_test.star") {
				for _, from := range load.From {
					out[from.Name] = true
				}
			}
		}
	}
	return out
}

func (c *checker) phase(s *source, fn syntax.Node, phase builtins.Phase, specs map[string]builtins.Spec) {
	syntax.Walk(fn, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		name := s.builtin(call.Fn)
		spec, ok := specs[name]
		if !ok {
			return true
		}
		if why := spec.Refuses(phase); why != "" {
			pos, _ := call.Span()
			c.at(Error, "phases", pos, why, "")
		}
		return true
	})
}
