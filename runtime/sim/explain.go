package sim

import (
	"errors"

	"github.com/starling-operator/starling/modules/values"
)

// Explain returns what the values of a module, or of "global", are made of. It fails
// without a process.
func (w *World) Explain(module string) (values.ExplainInput, error) {
	if w.engine == nil {
		return values.ExplainInput{}, errors.New("nothing was started yet")
	}
	return w.engine.Explain(module)
}
