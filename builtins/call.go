package builtins

import (
	"cmp"
	"context"
	"crypto/rand"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// call is one call of a builtin of this package, which may reach all that its thread does.
type call struct {
	*spec.Call
	ctx *Context // nil on a thread without one
	run *Run     // not nil where the spec's phases are those of runs only
}

// function is what a builtin of this package does.
type function func(*call) (starlark.Value, error)

// declare declares a builtin of this package.
func declare(name string, phases spec.Phase, effect spec.EffectClass, do function, params ...spec.Param) spec.Spec {
	return spec.New(name, phases, effect, func(c *spec.Call) (starlark.Value, error) {
		full := &call{Call: c, ctx: From(c.Thread)}
		if full.ctx != nil {
			full.run = full.ctx.Run
		}
		return do(full)
	}, params...)
}

// enter says what a call reaches. It refuses one at the wrong time, and says where the right one is.
func enter(t *starlark.Thread, s *spec.Spec) (spec.Scope, error) {
	c := From(t)
	scope := c.scope()
	if c == nil {
		if s.Phases != spec.Anywhere {
			return scope, spec.Finalf("%s is not available here", s.Name)
		}
		return scope, nil
	}
	if why := s.Refuses(c.Phase); why != "" {
		return scope, spec.Finalf("%s", why)
	}
	inRun := s.Effect != spec.NoEffect && s.Phases&spec.InLoad == 0 && s.Phases != spec.InTest // log lines need none
	inRun = inRun || s.Phases == spec.InDesired
	switch {
	case c.Run == nil && inRun && c.Test != nil:
		scope.Now, scope.Random = c.Test.World.Now(), c.Test.World.Random()
	case c.Run == nil && inRun, c.Phase == spec.InLoad && c.File == nil && s.Phases == spec.InLoad:
		return scope, spec.Finalf("%s is not available here", s.Name)
	}
	return scope, nil
}

// scope is what builtins of other packages reach; c may be nil.
func (c *Context) scope() spec.Scope {
	s := spec.Scope{Ctx: context.Background(), Room: func(int) error { return nil }}
	switch {
	case c == nil:
		return s
	case c.Ctx != nil:
		s.Ctx = c.Ctx
	}
	if c.Room != nil {
		s.Room = c.Room
	}
	if c.Run != nil {
		s.Now, s.Random = c.Run.Now, cmp.Or(c.Run.Random, rand.Reader)
	}
	return s
}
