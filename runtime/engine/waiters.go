package engine

// await has the module looked at when something changes of one that its verdict hangs on:
// those that it requires, and the one that comes first.
func (e *Engine) await(m *module, after string) {
	for _, name := range m.gen.Decl.Requires {
		e.awaits(m, name)
	}
	if after != "" {
		e.awaits(m, after)
	}
}

// awaitNobody forgets for whom a module waits.
func (e *Engine) awaitNobody(m *module) {
	for name, waiters := range e.waiters {
		if delete(waiters, m); len(waiters) == 0 {
			delete(e.waiters, name)
		}
	}
}

func (e *Engine) awaits(m *module, name string) {
	if e.waiters[name] == nil {
		e.waiters[name] = map[*module]bool{}
	}
	e.waiters[name][m] = true
}

// touchDependents has those looked at again whose fate may hang on m.
func (e *Engine) touchDependents(m *module) {
	if m == e.global {
		pending, failing := e.globalState()
		if pending == e.globalPending && failing == e.globalFailing {
			return
		}
		e.globalPending, e.globalFailing = pending, failing
	}
	if m == e.global {
		e.touchAll()
		return
	}
	waiters := e.waiters[m.name]
	delete(e.waiters, m.name) // whoever still waits says so again
	for other := range waiters {
		e.touch(other)
	}
	for _, name := range e.removed {
		if other := e.modules[name]; other != m {
			e.touch(other)
		}
	}
}
