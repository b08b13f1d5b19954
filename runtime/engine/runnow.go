package engine

import (
	"errors"
	"fmt"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/lane"
)

// Runs that somebody asks for who does not wait for their end: their events wait in the lane of the hook, beside
// those that come by themselves. So limits, retries and commits are those of any run.

// ErrStandsBy says that another process holds the Lease.
var ErrStandsBy = errors.New("this starling stands by")

// Runnable returns the ids of the hooks that [RunNow] has run, or says why there is no run.
func (v *View) Runnable(in RunNow) (hooks []string, err error) {
	switch {
	case v.gen == nil:
		return nil, errors.New("nothing has been started yet; try again in a moment")
	case v.standsBy():
		return nil, ErrStandsBy
	}
	m := v.module(in.Module)
	if m == nil {
		return nil, fmt.Errorf("there is no module %q; see: starling get modules", in.Module)
	}
	if in.Hook != "" && m.byKey[in.Hook] == nil {
		return nil, fmt.Errorf("there is no hook %q in module %s; see: starling get hooks %s", in.Hook, m.name, m.name)
	}
	if err := v.refusesRuns(m); err != nil {
		return nil, err
	}
	for _, h := range m.hooks {
		if in.Hook != "" && in.Hook != h.gen.ID {
			continue
		}
		err = h.refusesRun()
		if err == nil {
			hooks = append(hooks, h.gen.ID)
		}
	}
	if in.Hook == "" { // the others run when their time comes
		err = nil
	}
	return hooks, err
}

// refusesRuns says why no hook of the module runs now.
func (g *ground) refusesRuns(m *module) error {
	switch {
	case m.life == leaving:
		return fmt.Errorf("module %s is being uninstalled", m.name)
	case m.life != down:
		return nil
	case m.isGlobal():
		return errors.New("the global hooks have not started yet; try again in a moment")
	}
	state, reason := g.moduleState(m)
	if state == status.ModuleOff {
		return fmt.Errorf("module %s is off, so nothing of it runs", m.name)
	}
	return fmt.Errorf("module %s is %s: %s", m.name, state, reason)
}

// refusesRun says why the hook does not run now though its module is up.
func (h *hook) refusesRun() error {
	switch {
	case h.barred != "":
		return fmt.Errorf("hook %s: %s", h.gen.ID, h.barred)
	case len(h.causes("")) == 0 && h.answersRequests():
		return fmt.Errorf("hook %s runs for requests alone", h.gen.ID)
	case len(h.causes("")) == 0:
		return fmt.Errorf("hook %s runs at a stage of its module; run module %s", h.gen.ID, h.module.name)
	case h.forEach() && h.subjects.Len() == 0:
		return fmt.Errorf("hook %s runs for each object of %s, and there is none", h.gen.ID, h.gen.ForEach)
	}
	return nil
}

// runNow queues what has been asked for.
func (e *Engine) runNow(in RunNow) {
	hooks, err := e.Runnable(in)
	if err != nil {
		return // things have changed since Runnable was asked
	}
	if in.Hook == "" {
		e.reconcile(Reconcile{Module: in.Module})
	}
	for _, id := range hooks {
		h := e.any(in.Module).byKey[id]
		for _, s := range h.subjects.All() {
			events := h.causes(s.Key)
			for i := range events {
				events[i].Asked = true
			}
			e.add(h, s, lane.Unordered, events...)
		}
		e.retryAll(h, 0)
		e.note(builtins.LevelInfo, h.module, h.gen.ID, "somebody has asked for a run")
	}
}
