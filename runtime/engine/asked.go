package engine

import (
	"iter"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/subjects"
	"github.com/starling-operator/starling/runtime/lane"
)

// asked is an action that waits for its answer, of a module as it was then. A [RunHook] waits
// on, until what the run leaves is kept.
type asked struct {
	action  Action
	version int // of its values

	// Of a run alone:
	hook    *hook
	subject *subjects.Subject // of the hook
	request uint64            // the [Requested] that it answers, or 0
	cause   *effect.Cause     // of what it leads to
	done    RunDone           // how it has ended
}

// op numbers the action that the next call of ask appends.
func (t *turn) op() uint64 {
	t.ops++
	return t.ops
}

// ask appends an action of a module, and waits for its answer.
func (t *turn) ask(m *module, a Action) {
	m.asked[t.ops] = &asked{action: a, version: m.values.Version()}
	t.askedBy[t.ops] = m
	t.do(a)
}

// take takes out an action that waits.
func (t *turn) take(op uint64) asked {
	m := t.askedBy[op]
	a := *m.asked[op]
	delete(m.asked, op)
	delete(t.askedBy, op)
	return a
}

// run returns a run that is under way, or nil.
func (t *turn) run(id uint64) *asked {
	if m := t.askedBy[id]; m != nil && m.asked[id].hook != nil {
		return m.asked[id]
	}
	return nil
}

// runs are those of the module's hooks that are under way, with their commits.
func (m *module) runs() iter.Seq[*asked] {
	return func(yield func(*asked) bool) {
		for _, a := range m.asked {
			if a.hook != nil && !yield(a) {
				return
			}
		}
	}
}

// atWork says that runs of the module's hooks, or their commits, are under way.
func (m *module) atWork() bool {
	for range m.runs() {
		return true
	}
	return false
}

// running says whether a run of the hook, or its commit, is under way.
func (h *hook) running() bool {
	for r := range h.module.runs() {
		if r.hook == h {
			return true
		}
	}
	return false
}

// call is what a run was called with.
func (a *asked) call() RunHook { return a.action.(RunHook) }

// work is the work of a lane that a run carries out.
func (a *asked) work() lane.Work[builtins.Event] {
	call, id := a.call(), work(a.subject)
	id.Ask = a.request
	return lane.Work[builtins.Event]{ID: id, Events: call.Events, Attempt: call.Attempt}
}

// outdated says that what a run was about is not there any more: its module has stopped since, or its object is gone.
func (a *asked) outdated() bool { return a.call().Run < a.hook.module.incarnation || a.gone() }

// gone says that there is no such hook as that of a run, or no such object of it.
func (a *asked) gone() bool {
	return a.hook.module.byKey[a.hook.gen.ID] != a.hook || a.hook.subjects.At(a.subject.Key) != a.subject
}
