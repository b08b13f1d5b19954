package store

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// review answers a question about a user. Everybody may do everything here, and no token is
// one of the cluster.
func (s *Store) review(k *kind, obj map[string]any) (Result, error) {
	w := &write{store: s, kind: k}
	obj, err := w.body(obj)
	if err != nil {
		return Result{}, err
	}
	obj = runtime.DeepCopyJSON(obj)
	all := []any{"*"}
	switch k.Plural {
	case "selfsubjectrulesreviews":
		obj["status"] = map[string]any{
			"resourceRules":    []any{map[string]any{"verbs": all, "apiGroups": all, "resources": all}},
			"nonResourceRules": []any{map[string]any{"verbs": all, "nonResourceURLs": all}},
			"incomplete":       false,
		}
	case "selfsubjectreviews":
		obj["status"] = map[string]any{"userInfo": map[string]any{"username": "kubernetes-admin", "groups": []any{"system:masters", "system:authenticated"}}}
	case "tokenreviews":
		obj["status"] = map[string]any{"user": map[string]any{}, "error": fmt.Sprintf("a %s is answered by a real API server only", k.Kind.Kind)}
	default:
		obj["status"] = map[string]any{"allowed": true}
	}
	return Result{Object: obj, Created: true}, nil
}
