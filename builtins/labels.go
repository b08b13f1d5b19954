package builtins

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// labels reads a dict of labels.
func (c *call) labels(param string) (map[string]string, error) {
	v := c.Arg(param)
	if v == nil {
		return nil, nil
	}
	plain, err := object.ToPlainAt(v, []string{param})
	if err != nil {
		return nil, err
	}
	given, _ := plain.(map[string]any)
	out := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		text, isText := given[key].(string)
		domain, _, _ := strings.Cut(key, "/")
		switch {
		case len(validation.IsQualifiedName(key)) > 0:
			return nil, fmt.Errorf("%s: %q is no key of a label", param, spec.Clip(key))
		case !isText || len(validation.IsValidLabelValue(text)) > 0:
			return nil, fmt.Errorf("%s: %s: a label is a text of up to 63 letters, digits, -, . and _", param, key)
		case domain == "starling.dev", key == "app.kubernetes.io/managed-by":
			return nil, fmt.Errorf("%s: %s is set by Starling or by Helm", param, key)
		}
		out[key] = text
	}
	return out, nil
}

// labelled puts the labels of the module on an object that a hook makes. Those that it names itself stay.
func (r *Run) labelled(metadata map[string]any) {
	labels, isMap := metadata["labels"].(map[string]any)
	if len(r.Labels) == 0 || metadata["labels"] != nil && !isMap { // the API server says what is wrong
		return
	}
	if labels == nil {
		labels = map[string]any{}
		metadata["labels"] = labels
	}
	for key, text := range r.Labels {
		if _, there := labels[key]; !there {
			labels[key] = text
		}
	}
}
