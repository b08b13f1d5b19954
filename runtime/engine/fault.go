package engine

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine/agenda"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
)

// A panic is a bug of the engine that one module has met. It must not end the process, for it would come again after
// each start, in both replicas. The state of that module may be half changed: so the module is barred until the next
// start, which reads anew what stands in the cluster. See decision 86.

// guard does one part of the work on an input. A panic bars the module that it is about. One that is about no single
// module, nil, ends the process: nobody knows then what of the engine is half changed.
func (e *Engine) guard(m *module, in Input, part func()) {
	if m == nil {
		part()
		return
	}
	begun := len(e.out)
	defer func() {
		if why := recover(); why != nil {
			e.fault(m, fmt.Sprintf("a bug in starling: %T: %v at %s", in, why, panicked()), begun)
		}
	}()
	part()
}

// about is the module that an input is about, if it is about one; nil: that has gone, and so has what is said of it.
func (v *View) about(in Input) (m *module, one bool) {
	switch in := in.(type) {
	case answer:
		return v.askedBy[in.op()], true
	case seen:
		if h := v.watches[in.watch()]; h != nil {
			m = h.module
		}
		return m, true
	case aimed:
		return v.moduleOf(in.at()), true
	}
	return nil, false
}

// barred says that a panic has barred the module.
func (m *module) barred() bool { return m.verdict.Do == verdicts.Bar }

// fault bars a module: it gets no further step, hears of nothing, and nothing of it is written or taken away. Actions
// of the part that has met the panic are dropped; who waits for an answer gets one. Watches and webhooks of
// hooks that answer the API server stay as they are, for a policy must not open.
func (e *Engine) fault(m *module, why string, begun int) {
	answered := map[uint64]bool{}
	out := e.out[:begun:begun]
	for _, a := range e.out[begun:] {
		switch a := a.(type) {
		case Respond:
			answered[a.ID] = true
			out = append(out, a)
		case Note:
			out = append(out, a)
		}
	}
	e.out = out
	why += "; please report it; the module is left as it is until starling is started again"
	m.verdict = verdicts.Verdict{Do: verdicts.Bar, State: status.ModuleFailed, Reason: why, Settled: true, Is: verdicts.Stays}
	m.life, m.incarnation = down, e.op()
	e.agenda.Set(agenda.Module(m.name), time.Time{})
	for _, id := range slices.Sorted(maps.Keys(e.watches)) {
		if h := e.watches[id]; h.module == m {
			delete(e.watches, id)
			if !h.answersRequests() {
				e.do(StopWatch{ID: id})
			}
		}
	}
	var asks []uint64
	for _, op := range slices.Sorted(maps.Keys(m.asked)) {
		if r := e.take(op); r.hook != nil {
			e.wrote.End(r.done.Effects.Writes, r.cause)
			asks = append(asks, r.request)
		}
	}
	for _, h := range m.hooks {
		asks = append(asks, h.lane.DropAsks(h.gen.ID)...)
	}
	for _, id := range asks {
		if id != 0 && !answered[id] {
			e.do(Respond{ID: id, Err: fmt.Errorf("module %s: %s: %w", m.name, why, ErrNotReady)})
		}
	}
	e.note(builtins.LevelError, m, "", why)
	if m.isGlobal() { // nothing is installed without what its hooks would set
		m.broken = why
		e.standGlobal(m)
		return
	}
	e.stand(m)
}

// panicked is the line of the panic that is being recovered from.
func panicked() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for after := false; ; {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			after = true
		case after && !strings.HasPrefix(f.Function, "runtime."):
			parts := strings.Split(f.File, "/")
			return fmt.Sprintf("%s:%d", strings.Join(parts[max(0, len(parts)-2):], "/"), f.Line)
		}
		if !more {
			return "an unknown line"
		}
	}
}
