package generation

import (
	"fmt"

	"github.com/starling-operator/starling/runtime/condition"
)

// checkConditions refuses conditions of reviews that the API server would refuse: with
// them it would take none of the instance's webhooks.
func (g *Generation) checkConditions() {
	var compiler condition.Compiler
	for m, h := range g.Hooks() {
		for _, b := range h.Bindings {
			if b.Admission == nil || len(b.Admission.Conditions) == 0 {
				continue
			}
			if _, err := compiler.Compile(b.Admission); err != nil {
				m.join(fmt.Errorf("%s: hook %s: %w", b.Admission.Pos, h.HookDecl.ID, err))
			}
		}
	}
}
