package sim

import (
	"errors"
	"strings"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/engine"
)

// Failure is one thing that fails now.
type Failure struct {
	engine.Failure
	// Err is the error of the run that has failed; nil for what is no run.
	Err error
}

// Failures are all that fail now. Those of requests are told of to people who ask.
func (w *World) Failures() []Failure {
	if w.engine == nil {
		return nil
	}
	var out []Failure
	for _, f := range w.engine.Failures() {
		run := w.lastFailed(f)
		switch {
		case run == nil:
			out = append(out, Failure{Failure: f})
		case !run.Asked:
			out = append(out, Failure{f, run.Failure()})
		}
	}
	return out
}

// Dropped are the fields of a module's objects that the API server has dropped, and whose templates are in the tree:
// there they can be put right.
func (w *World) Dropped(module string) (out []string) {
	m := w.o.Generation.Modules[module]
	if w.engine == nil || m == nil || m.Tree == nil || m.Tree.Chart == nil {
		return nil
	}
	for _, text := range w.engine.Unknown(module) {
		if chart.OfTheTree(m.Tree.Chart, text) {
			out = append(out, text)
		}
	}
	return out
}

// Failure is the error of the run or of its commit, nil after a success.
func (r *Run) Failure() error { return errors.Join(r.Err, r.Committed) }

// lastFailed finds the run that a failure comes from.
func (w *World) lastFailed(f engine.Failure) *Run {
	for i := len(w.Runs) - 1; i >= 0 && f.Hook != ""; i-- {
		r := &w.Runs[i]
		if r.Hook != f.Hook || r.Key != f.Key {
			continue
		}
		if err := r.Failure(); err != nil && strings.Contains(f.Reason, err.Error()) {
			return r
		}
	}
	return nil
}
