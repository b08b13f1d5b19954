package effect

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// MadeByAnnotation holds the mark of the module whose hooks have made an object, see
// [Instance.Mark]. It is put where grants of that module say owned = True.
const MadeByAnnotation = "starling.dev/made-by"

// Guard is what the grants of a hook ask of an object as it is in the cluster when
// it is written. An object that is not there passes.
type Guard struct {
	// Any holds the conditions of which one must hold; none means that any object will do.
	Any []Condition `json:"any,omitempty"`
	// Refused is the error for an object that passes none of them.
	Refused string `json:"refused,omitempty"`
	// MarkFor is the mark that what is made now gets; "" means none.
	MarkFor string `json:"markFor,omitempty"`
}

// Condition is what one grant asks of an object: all that is set.
type Condition struct {
	// Labels is a label selector as kubectl takes it; "" means any object.
	Labels string `json:"labels,omitempty"`
	// MadeBy is the mark that the object must have; "" means any or none.
	MadeBy string `json:"madeBy,omitempty"`
}

// Passes reports whether obj, which ref names, may be written. A nil guard lets all pass.
func (g *Guard) Passes(seal *Seal, ref Ref, obj map[string]any) bool {
	if g == nil || len(g.Any) == 0 || obj == nil {
		return true
	}
	return slices.ContainsFunc(g.Any, func(c Condition) bool { return c.matches(seal, ref, obj) })
}

func (c Condition) matches(seal *Seal, ref Ref, obj map[string]any) bool {
	return (c.MadeBy == "" || seal.MadeBy(ref, obj, c.MadeBy)) && c.SelectsLabels(obj)
}

// SelectsLabels reports whether obj has the labels.
func (c Condition) SelectsLabels(obj map[string]any) bool {
	if c.Labels == "" {
		return true
	}
	selector, err := labels.Parse(c.Labels)
	if err != nil {
		return false // it was parsed when the grant was declared
	}
	return selector.Matches(labels.Set(texts(obj, "labels")))
}

// Mark is what objects are marked with that hooks of a module have made. It names the
// instance, too: another one may have a module of that name.
func (i Instance) Mark(module string) string {
	if i == (Instance{}) {
		return module
	}
	return i.Namespace + "/" + i.Name + "/" + module
}

// texts are the labels or the annotations of an object.
func texts(obj map[string]any, field string) map[string]string {
	m := At[map[string]any](obj, "metadata", field)
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}
