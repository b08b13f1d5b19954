package cluster

import (
	"context"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
)

// Right is one right, as RBAC has it: a verb on objects of a resource, or on a URL.
type Right struct {
	// Namespace is "" for the whole cluster; Resource may hold a subresource: "pods/eviction"; Name is "" for all objects.
	Namespace, Group, Resource, Name string
	// URL is set instead of them.
	URL  string
	Verb string
}

// May asks the API server whether the client has a right.
func (c *Client) May(ctx context.Context, r Right) (bool, error) {
	spec := map[string]any{}
	if r.URL != "" {
		spec["nonResourceAttributes"] = map[string]any{"path": r.URL, "verb": r.Verb}
	} else {
		resource, sub, _ := strings.Cut(r.Resource, "/")
		spec["resourceAttributes"] = map[string]any{
			"namespace": r.Namespace, "group": r.Group, "resource": resource, "subresource": sub, "name": r.Name, "verb": r.Verb,
		}
	}
	const version, kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	status, err := c.Ask(ctx, effect.Ask{
		Ref:    effect.Ref{APIVersion: version, Kind: kind},
		Object: map[string]any{"apiVersion": version, "kind": kind, "spec": spec},
	})
	allowed, _ := status["allowed"].(bool)
	return allowed, err
}
