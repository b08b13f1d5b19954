package store

import (
	"encoding/json"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// maxDepth is how deep an object may be, far above what any kind needs.
const maxDepth = 1000

// copied returns a copy of an object of which nothing is shared, with the types that
// JSON decoding gives: what a Go program has put together may hold others (int,
// []string), and those go through JSON.
func copied(obj map[string]any) (map[string]any, error) {
	out, err := copyValue(obj, 0)
	if err != nil {
		return nil, err
	}
	return out.(map[string]any), nil
}

func copyValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the object is nested more than %d levels deep", maxDepth)
	}
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	case int:
		return int64(v), nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			c, err := copyValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[key] = c
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			c, err := copyValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = c
		}
		return out, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the object holds what JSON cannot: %w", err)
	}
	var out any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &out); err != nil {
		return nil, fmt.Errorf("the object holds what JSON cannot: %w", err)
	}
	return out, nil
}
