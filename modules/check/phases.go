package check

import (
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
)

// phases reports builtins that a function calls where they are refused. Of functions that
// several kinds of runs call nothing is said: they may ask which one it is.
func (c *checker) phases() {
	specs := map[string]builtins.Spec{}
	for _, s := range builtins.Table() {
		specs[s.Name] = s
	}
	type key struct {
		file string
		place
	}
	called := map[key]map[builtins.Phase]bool{}
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
		at := key{pos.Filename(), place{pos.Line, pos.Col}}
		if s.at[at.place] == nil {
			return
		}
		if called[at] == nil {
			called[at] = map[builtins.Phase]bool{}
		}
		called[at][phase] = true
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
	for at, phases := range called {
		if len(phases) != 1 {
			continue
		}
		for phase := range phases {
			s := c.files[at.file]
			c.phase(s, s.at[at.place], phase, specs)
		}
	}
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
