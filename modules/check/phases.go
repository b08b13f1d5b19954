package check

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins/spec"
)

// function is one function or lambda of a file.
type function struct {
	file string
	place
}

// phases reports builtins that a function calls where they are refused, and those of the
// functions of the tree that it calls by name. Of functions that several kinds of runs
// call nothing is said, they may ask which one it is.
func (c *checker) phases() {
	specs := c.table.specs
	called := map[function]map[spec.Phase]bool{}
	note := func(fn starlark.Callable, phase spec.Phase) {
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
		for _, fn := range c.reachable(at) {
			if called[fn] == nil {
				called[fn] = map[spec.Phase]bool{}
			}
			called[fn][phase] = true
		}
	}
	for _, m := range c.modules {
		note(m.Enabled, spec.InEnabled)
		note(m.Readiness, spec.InEnabled)
		note(m.ChartValues, spec.InFilter)
		note(m.SettingsCheck, spec.InFilter)
		for _, h := range m.Hooks {
			for _, b := range h.Bindings {
				switch {
				case b.Admission != nil:
					note(h.Fn, spec.InReview)
				case b.Receive != nil:
					note(h.Fn, spec.InReceive)
				case b.Convert != nil && b.Convert.Joined: // they are among those of the first one
				case b.Convert != nil:
					for _, step := range b.Convert.Steps {
						note(step, spec.InConvert)
					}
				case h.Controller != nil && !h.Decides():
					note(h.Fn, spec.InObserve)
					note(h.Controller.Act, spec.InObserve)
				case h.Controller != nil:
					note(h.Fn, spec.InDesired)
					note(h.Controller.Status, spec.InDesired)
					note(h.Controller.Cleanup, spec.InDesired)
				default:
					note(h.Fn, spec.InRun)
				}
				if b.Watch != nil {
					note(b.Watch.Filter, spec.InFilter)
					note(b.Watch.Wakes, spec.InFilter)
					for _, x := range b.Watch.Index {
						note(x.Fn, spec.InFilter)
					}
				}
			}
			note(h.Cleanup, spec.InRun)
		}
	}
	for at, phases := range called {
		if len(phases) != 1 || c.calledElsewhere(at, called) {
			continue
		}
		for phase := range phases {
			s := c.files[at.file]
			c.phase(s, s.at[at.place], phase, specs)
		}
	}
}

// reachable returns a function and those of the tree that it calls by name, directly or
// not. Names that mean something else anywhere in a file are left out.
func (c *checker) reachable(from function) []function {
	if c.files[from.file].at[from.place] == nil {
		return nil
	}
	out := []function{from}
	for i := 0; i < len(out); i++ {
		s := c.files[out[i].file]
		syntax.Walk(s.at[out[i].place], func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok {
				return true
			}
			id, ok := call.Fn.(*syntax.Ident)
			if !ok {
				return true
			}
			if of, def := c.called(s, id.Name); def != nil {
				if to := (function{of.path, place{def.Def.Line, def.Def.Col}}); !slices.Contains(out, to) {
					out = append(out, to)
				}
			}
			return true
		})
	}
	return out
}

// calledElsewhere says that a file loads the function and does more with it than what
// was found: it hands it on, or calls it where nobody knows when.
func (c *checker) calledElsewhere(at function, known map[function]map[spec.Phase]bool) bool {
	def, ok := c.files[at.file].at[at.place].(*syntax.DefStmt)
	if !ok {
		return false
	}
	for _, s := range c.files {
		if strings.HasSuffix(s.path, "_test.star") {
			continue
		}
		for name, from := range s.loads {
			if from != (loadedName{at.file, def.Name.Name}) {
				continue
			}
			uses, calls := 0, 0
			for _, stmt := range s.file.Stmts {
				if _, isLoad := stmt.(*syntax.LoadStmt); !isLoad {
					uses += mentions(stmt, name, false)
				}
			}
			for fn := range known {
				if fn.file == s.path {
					calls += mentions(s.at[fn.place], name, true)
				}
			}
			if calls < uses {
				return true
			}
		}
	}
	return false
}

// mentions counts how often a node has a name, or calls it.
func mentions(node syntax.Node, name string, called bool) int {
	n := 0
	syntax.Walk(node, func(at syntax.Node) bool {
		e := at
		if call, ok := at.(*syntax.CallExpr); ok && called {
			e = call.Fn
		} else if called {
			return true
		}
		if id, ok := e.(*syntax.Ident); ok && id.Name == name {
			n++
		}
		return true
	})
	return n
}

// called returns the function that a name stands for in a file, and the file that it is
// of: its own or one that it loads. Nil when the name has several meanings there.
func (c *checker) called(s *source, name string) (*source, *syntax.DefStmt) {
	if s.times[name] != 1 {
		return nil, nil
	}
	if def := s.functions[name]; def != nil {
		return s, def
	}
	from, ok := s.loads[name]
	of := c.files[from.file]
	if !ok || of == nil || of.times[from.name] != 1 || of.functions[from.name] == nil {
		return nil, nil
	}
	return of, of.functions[from.name]
}

func (c *checker) phase(s *source, fn syntax.Node, phase spec.Phase, specs map[string]spec.Spec) {
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
