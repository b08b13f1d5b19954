package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Write carries out one write in one request and returns the API server's answer.
// The answer to an apply is the object as it is now. The answer to a delete is
// the object while finalizers or a grace period still hold it, and nil once it is
// gone or was never there. manager is the field manager of an apply, "" for the
// client's own.
//
// Errors are one line for people and never show what is in the object. They wrap
// client-go's status errors, so apierrors.IsConflict and the like hold, and
// [ErrNotServed] and [ErrFenced].
func (c *Client) Write(ctx context.Context, manager string, w effect.Write) (map[string]any, error) {
	if manager == "" {
		manager = c.manager
	}
	switch w.Kind {
	case effect.WriteApply:
		return c.apply(ctx, manager, w)
	case effect.WriteDelete:
		return c.delete(ctx, w)
	}
	return nil, fmt.Errorf("cannot write %s: unknown kind of write %q", w.Ref, w.Kind)
}

func (c *Client) apply(ctx context.Context, manager string, w effect.Write) (map[string]any, error) {
	act := action{verb: "patch", ref: w.Ref}
	m, err := c.target(ctx, w.Ref)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	body, err := json.Marshal(w.Object)
	if err != nil {
		return nil, fmt.Errorf("cannot apply %s: the object cannot be written as JSON", w.Ref)
	}
	req, err := c.request(http.MethodPatch, m, w.Ref.Namespace, w.Ref.Name)
	if err != nil {
		return nil, err
	}
	req = req.SetHeader("Content-Type", applyType).Param("fieldManager", manager).Body(body)
	if w.Force {
		req = req.Param("force", "true")
	}
	answer, err := c.do(ctx, req)
	if err != nil {
		if missingResource(err) {
			c.forgetKind(m)
			return nil, notServed(w.Ref.APIVersion, w.Ref.Kind)
		}
		return nil, c.explain(err, act)
	}
	return decodeObject(answer)
}

func (c *Client) delete(ctx context.Context, w effect.Write) (map[string]any, error) {
	act := action{verb: "delete", ref: w.Ref}
	m, err := c.target(ctx, w.Ref)
	if err != nil {
		return nil, c.explain(err, act)
	}
	act.mapping = m
	policy := metav1.DeletePropagationBackground
	switch w.Propagation {
	case "", "background":
	case "foreground":
		policy = metav1.DeletePropagationForeground
	case "orphan":
		policy = metav1.DeletePropagationOrphan
	default:
		return nil, fmt.Errorf("cannot delete %s: propagation %q is none of background, foreground, orphan", w.Ref, w.Propagation)
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy,
	})
	if err != nil {
		return nil, err
	}
	req, err := c.request(http.MethodDelete, m, w.Ref.Namespace, w.Ref.Name)
	if err != nil {
		return nil, err
	}
	answer, err := c.do(ctx, req.SetHeader("Content-Type", jsonType).Body(body))
	switch {
	case missingResource(err):
		c.forgetKind(m)
		return nil, notServed(w.Ref.APIVersion, w.Ref.Kind)
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, c.explain(err, act)
	}
	obj, err := decodeObject(answer)
	if err != nil {
		return nil, err
	}
	if !stillThere(obj) {
		return nil, nil
	}
	return obj, nil
}

// stillThere tells the object of a delete that waits (for finalizers, or a grace
// period) from the answer to one that is done: a Status, or the last state.
func stillThere(obj map[string]any) bool {
	meta, _ := obj["metadata"].(map[string]any)
	if obj["kind"] == "Status" || meta["deletionTimestamp"] == nil {
		return false
	}
	finalizers, _ := meta["finalizers"].([]any)
	grace, _ := meta["deletionGracePeriodSeconds"].(int64)
	return len(finalizers) > 0 || grace > 0
}

// target checks that ref names one object of a kind that is served.
func (c *Client) target(ctx context.Context, ref effect.Ref) (Mapping, error) {
	m, err := c.Mapping(ctx, ref.APIVersion, ref.Kind)
	if err != nil {
		return Mapping{}, err
	}
	if ref.Name == "" {
		return Mapping{}, fmt.Errorf("a %s without a name cannot be written: set metadata.name", ref.Kind)
	}
	if m.Namespaced && ref.Namespace == "" {
		return Mapping{}, fmt.Errorf("%s cannot be written: its kind lives in namespaces, so set metadata.namespace", ref)
	}
	return m, nil
}
