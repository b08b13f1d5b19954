package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// userConfig is how an object differs in what it says of the user's config: value by value, below the
// keys of the ConfigMap, or in spec of a Module object. nil: in nothing. Hooks change it by config.set
// and config.remove.
func (m *masker) userConfig(instance types.NamespacedName, d store.Difference) []Field {
	var of func(obj map[string]any) map[string]any
	switch {
	case d.Kind.APIVersion() == effect.ModuleAPIVersion && d.Kind.Kind == effect.ModuleKind:
		of = func(obj map[string]any) map[string]any { return map[string]any{"spec": obj["spec"]} }
	case d.Kind.APIVersion() == "v1" && d.Kind.Kind == "ConfigMap" && d.Namespace == instance.Namespace && d.Name == instance.Name:
		of = sections
	default:
		return nil
	}
	var found differ
	found.compare(nil, of(d.Before), of(d.After))
	fields := m.masked(found.fields)
	for i := range fields {
		f := &fields[i]
		key := strings.Trim(f.Path[strings.LastIndexAny(f.Path, ".[")+1:], `"]`)
		if m.sounds(key, f.Old, f.New) && scalar(f.Old) && scalar(f.New) {
			f.Old, f.New, f.Secret = hidden(f.Old), hidden(f.New), true // however short it is
		}
	}
	return fields
}

// sections are the keys of the user's ConfigMap, those that hold a map as that.
func sections(configMap map[string]any) map[string]any {
	data, _ := configMap["data"].(map[string]any)
	out := map[string]any{}
	for key, v := range data {
		out[key] = v
		text, _ := v.(string)
		var section map[string]any
		if yaml.Unmarshal([]byte(text), &section) == nil && section != nil {
			out[key] = section
		}
	}
	return out
}
