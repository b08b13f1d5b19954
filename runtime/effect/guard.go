package effect

import "k8s.io/apimachinery/pkg/labels"

// MadeByAnnotation names the module whose hooks have made an object. It is put
// where grants of that module say owned = True.
const MadeByAnnotation = "starling.dev/made-by"

// Guard is what the grants of a hook ask of an object as it is in the cluster when
// it is written. An object that is not there passes.
type Guard struct {
	// Any holds the conditions of which one must hold; none means that any object
	// will do.
	Any []Condition `json:"any,omitempty"`
	// Refused is the error for an object that passes none of them.
	Refused string `json:"refused,omitempty"`
	// MarkFor is the module that what is made now is marked for; "" means no mark.
	MarkFor string `json:"markFor,omitempty"`
}

// Condition is what one grant asks of an object: all that is set.
type Condition struct {
	// Labels is a label selector as kubectl takes it; "" means any object.
	Labels string `json:"labels,omitempty"`
	// MadeBy is the module that must have made the object; "" means anybody.
	MadeBy string `json:"madeBy,omitempty"`
}

// Passes reports whether obj may be written. A nil guard lets all pass.
func (g *Guard) Passes(obj map[string]any) bool {
	if g == nil || len(g.Any) == 0 || obj == nil {
		return true
	}
	for _, c := range g.Any {
		if c.Matches(obj) {
			return true
		}
	}
	return false
}

// Matches reports whether the condition holds of obj.
func (c Condition) Matches(obj map[string]any) bool {
	if c.MadeBy != "" && MadeBy(obj) != c.MadeBy {
		return false
	}
	return c.SelectsLabels(obj)
}

// SelectsLabels reports whether obj has the labels, whoever has made it.
func (c Condition) SelectsLabels(obj map[string]any) bool {
	if c.Labels == "" {
		return true
	}
	selector, err := labels.Parse(c.Labels)
	if err != nil {
		return false // it was parsed when the grant was declared
	}
	metadata, _ := obj["metadata"].(map[string]any)
	return selector.Matches(labels.Set(texts(metadata["labels"])))
}

// MadeBy returns the module that an object is marked for, or "".
func MadeBy(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	return texts(metadata["annotations"])[MadeByAnnotation]
}

func texts(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, v := range m {
		if s, ok := v.(string); ok {
			out[k] = s
		}
	}
	return out
}
