package sim

import (
	"errors"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/reconcile"
)

var errNotStarted = errors.New("nothing was started yet")

// Explain returns what the values of a module, or of "global", are made of. It fails
// without a process.
func (w *World) Explain(module string) (values.ExplainInput, error) {
	if w.engine == nil {
		return values.ExplainInput{}, errNotStarted
	}
	return w.engine.Explain(module)
}

// Parents is [engine.View.Parents]. It fails without a process.
func (w *World) Parents(module, key string) ([]status.Parent, error) {
	if w.engine == nil {
		return nil, errNotStarted
	}
	return w.engine.Parents(module, key)
}

// Actions is [engine.View.Actions]. There are none without a process.
func (w *World) Actions(hook, key string) ([]reconcile.Action, bool) {
	if w.engine == nil {
		return nil, false
	}
	return w.engine.Actions(hook, key)
}
