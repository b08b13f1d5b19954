package store

import (
	"fmt"
	"math"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/starling-operator/starling/runtime/definition"
)

// scalePaths returns where an object keeps what its scale subresource shows.
func scalePaths(k *kind) (spec, status, selector []string) {
	if k.crd == nil {
		return []string{"spec", "replicas"}, []string{"status", "replicas"}, nil
	}
	if p := k.crd.Scale.LabelSelectorPath; p != nil {
		selector = definition.SplitPath(*p)
	}
	return definition.SplitPath(k.crd.Scale.SpecReplicasPath), definition.SplitPath(k.crd.Scale.StatusReplicasPath), selector
}

// scaleOf returns the scale subresource of an object.
func scaleOf(k *kind, obj map[string]any) map[string]any {
	specAt, statusAt, selectorAt := scalePaths(k)
	meta := map[string]any{}
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion", "creationTimestamp"} {
		if v, ok := metaOf(obj)[key]; ok {
			meta[key] = v
		}
	}
	spec, status := map[string]any{}, map[string]any{"replicas": int64(0)}
	if n, _ := nested(obj, specAt...).(int64); n != 0 {
		spec["replicas"] = n
	}
	if n, ok := nested(obj, statusAt...).(int64); ok {
		status["replicas"] = n
	}
	if selectorAt != nil {
		if text, _ := nested(obj, selectorAt...).(string); text != "" {
			status["selector"] = text
		}
	} else if text := selectorText(nested(obj, "spec", "selector")); text != "" {
		status["selector"] = text
	}
	return map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": spec, "status": status}
}

func selectorText(v any) string {
	m, _ := v.(map[string]any)
	var selector metav1.LabelSelector
	if m == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(m, &selector) != nil {
		return ""
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return ""
	}
	return s.String()
}

// scale writes the scale subresource.
func (w *write) scale(scale map[string]any) (Result, error) {
	s, k := w.store, w.kind
	old, err := s.inVersion(k, s.stored(k, w.target))
	if err != nil {
		return Result{}, err
	}
	if old == nil {
		return Result{}, notFound(k, w.target.Name)
	}
	n, _ := nested(scale, "spec", "replicas").(int64)
	if n < 0 || n > math.MaxInt32 {
		return Result{}, apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, w.target.Name, nil)
	}
	if v := versionOf(scale); v != "" && v != versionOf(old) {
		return Result{}, apierrors.NewConflict(k.groupResource(), w.target.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	obj := runtime.DeepCopyJSON(old)
	specAt, _, _ := scalePaths(k)
	setNested(obj, n, specAt...)
	obj, err = s.update(k, "scale", w.options.Manager, old, obj)
	if err != nil {
		return Result{}, err
	}
	main := *w
	main.target.Subresource = ""
	res, err := main.replace(old, obj)
	if err != nil {
		return Result{}, err
	}
	res.Object = scaleOf(k, res.Object)
	return res, nil
}

// evict deletes a Pod unless a PodDisruptionBudget protects it. The status that the disruption
// controller would have computed is computed here, from the Pods that are there.
func (s *Store) evict(k *kind, t Target, eviction map[string]any, o WriteOptions) (Result, error) {
	pod := s.stored(k, t)
	if pod == nil {
		return Result{}, notFound(k, t.Name)
	}
	if name := nameOf(eviction); name != "" && name != t.Name {
		return Result{}, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if !deleting(pod) {
		if err := s.budgets(pod); err != nil {
			return Result{}, err
		}
	}
	if _, err := s.delete(k, t, DeleteOptions{DryRun: o.DryRun}); err != nil {
		return Result{}, err
	}
	return Result{Created: true, Object: map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Success", "code": int64(201)}}, nil
}

// budgets says which PodDisruptionBudget does not let a Pod go.
func (s *Store) budgets(pod map[string]any) error {
	pdbs, pods := s.table(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}), s.table(schema.GroupResource{Resource: "pods"})
	for _, key := range pdbs.keys {
		var pdb policyv1.PodDisruptionBudget
		obj := pdbs.objects[key]
		if namespaceOf(obj) != namespaceOf(pod) || runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &pdb) != nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || !selector.Matches(labelsOf(pod)) {
			continue
		}
		expected, healthy := 0, 0
		for _, key := range pods.keys {
			p := pods.objects[key]
			if namespaceOf(p) != pdb.Namespace || !selector.Matches(labelsOf(p)) {
				continue
			}
			expected++
			if !deleting(p) {
				healthy++
			}
		}
		needed := 0
		switch {
		case pdb.Spec.MaxUnavailable != nil:
			n, _ := intstr.GetScaledValueFromIntOrPercent(pdb.Spec.MaxUnavailable, expected, true)
			needed = expected - n
		case pdb.Spec.MinAvailable != nil:
			needed, _ = intstr.GetScaledValueFromIntOrPercent(pdb.Spec.MinAvailable, expected, true)
		}
		if healthy-1 < needed {
			refused := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
				Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", pdb.Name, needed, healthy)})
			return refused
		}
	}
	return nil
}

func labelsOf(obj map[string]any) labels.Set {
	list, _ := metaOf(obj)["labels"].(map[string]any)
	out := make(labels.Set, len(list))
	for key, v := range list {
		out[key], _ = v.(string)
	}
	return out
}
