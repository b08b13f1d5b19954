package webhook

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/modules"
)

// CheckModule says why what a Module object asks for is refused; "": it is not. The object may be
// that of another instance.
type CheckModule func(ctx context.Context, object map[string]any) (refused string, err error)

const (
	// modulesPath is where the API server asks about Module objects, modulesHook the name of the answers in metrics.
	modulesPath = "/modules"
	modulesHook = "Module objects"
	// modulesTimeout is how long it waits, in seconds: the failure policy is to go on.
	modulesTimeout = 3
)

// modules makes the configuration object of reviews of Module objects. Asked about are changes of
// spec.values alone, so that an object whose values do not pass can be changed otherwise.
func (s shape) modules(own effect.Instance) map[string]any {
	group, version, _ := strings.Cut(modules.APIVersion, "/")
	label := fmt.Sprintf("has(object.metadata.labels) && %[1]q in object.metadata.labels && object.metadata.labels[%[1]q] == %[2]q", effect.InstanceLabel, own.Label())
	conditions := [][2]string{
		{"values", "has(object.spec) && has(object.spec.values)"},
		{"changed", "oldObject == null || !has(oldObject.spec) || !has(oldObject.spec.values) || oldObject.spec.values != object.spec.values"},
		{"instance", fmt.Sprintf(`has(object.spec) && has(object.spec.instance) && object.spec.instance != "" ? object.spec.instance == %q : %s`, own.Namespace+"/"+own.Name, label)},
	}
	var match []any
	for _, c := range conditions {
		match = append(match, map[string]any{"name": c[0], "expression": c[1]})
	}
	return map[string]any{
		"apiVersion": registration, "kind": kindValidating,
		"metadata": map[string]any{
			"name":        own.Prefix() + "modules",
			"labels":      map[string]any{effect.InstanceLabel: s.instance},
			"annotations": map[string]any{},
		},
		"webhooks": []any{map[string]any{
			"name":         "values.modules.starling.dev",
			"clientConfig": s.reach.client(s.namespace, modulesPath, s.bundle),
			"rules": []any{map[string]any{
				"apiGroups": []any{group}, "apiVersions": []any{version}, "resources": []any{"modules"},
				"operations": []any{"CREATE", "UPDATE"}, "scope": "Cluster",
			}},
			"failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "None",
			"namespaceSelector": map[string]any{}, "objectSelector": map[string]any{},
			"timeoutSeconds": int64(modulesTimeout), "admissionReviewVersions": []any{"v1"},
			"matchConditions": match,
		}},
	}
}

// reviewModule answers a review of a Module object.
func (s *server) reviewModule(ctx context.Context, review *builtins.Review) (result string, answer []byte, err error) {
	refused, err := s.checkModule(ctx, review.Object)
	if err != nil {
		return "", nil, err
	}
	var response builtins.Response
	if refused != "" {
		response.Denied = &builtins.Denial{Message: refused, Code: http.StatusUnprocessableEntity}
	}
	return answerReview(review, response)
}
