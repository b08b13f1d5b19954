package rest_test

import (
	"fmt"
	"maps"
	"strings"
)

// convertLamp converts the lamps of the parity cases: those of v1alpha1 have a text, "level: 3", those of v1 a number and a
// field that their schema does not have. Other kinds are not converted.
func convertLamp(crd string, obj map[string]any, to string) (map[string]any, error) {
	if !strings.HasPrefix(crd, "lamps.") {
		return nil, nil
	}
	out := maps.Clone(obj)
	spec, _ := obj["spec"].(map[string]any)
	switch _, version, _ := strings.Cut(to, "/"); version {
	case "v1":
		var level int64
		if _, err := fmt.Sscanf(fmt.Sprint(spec["config"]), "level: %d", &level); err != nil {
			return nil, fmt.Errorf("%v is no level", spec["config"])
		}
		out["spec"] = map[string]any{"level": level, "odd": true}
	case "v1alpha1":
		if spec["level"] == nil {
			return nil, fmt.Errorf("there is no level")
		}
		out["spec"] = map[string]any{"config": fmt.Sprintf("level: %v", spec["level"])}
	}
	out["apiVersion"] = to
	return out, nil
}
