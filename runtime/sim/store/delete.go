package store

import (
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DeleteOptions say how to delete.
type DeleteOptions struct {
	// Propagation is what becomes of dependents: "" for what the kind does by
	// itself (almost always background).
	Propagation metav1.DeletionPropagation
	// UID and Version, when set, must be those of the object.
	UID, Version string
	// DryRun checks and answers, and changes nothing.
	DryRun bool
}

// Deleted is the answer to a delete.
type Deleted struct {
	// Object is the object as it was last, or as it waits for its finalizers.
	Object map[string]any
	// Gone is false when finalizers hold it.
	Gone bool
	// Show says that the real server answers with the object, and not with a
	// Status.
	Show bool
}

// Delete deletes one object, or marks it when finalizers hold it. Dependents are
// dealt with by [Store.Settle]; Pods go at once, because there is no kubelet.
func (s *Store) Delete(t Target, o DeleteOptions) (Deleted, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "delete")
	if err != nil {
		return Deleted{}, err
	}
	if t.Subresource != "" {
		return Deleted{}, apierrors.NewMethodNotSupported(k.groupResource(), "delete")
	}
	return s.delete(k, t, o)
}

func (s *Store) delete(k *kind, t Target, o DeleteOptions) (Deleted, error) {
	obj, err := s.inVersion(k, s.stored(k, t))
	if err != nil {
		return Deleted{}, corrupt(k, t, err)
	}
	if obj == nil {
		return Deleted{}, notFound(k, t.Name)
	}
	options := &metav1.DeleteOptions{}
	if o.Propagation != "" {
		options.PropagationPolicy = &o.Propagation
	}
	if errs := metavalidation.ValidateDeleteOptions(options); len(errs) > 0 {
		return Deleted{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	conflict := func(what, given, is, then string) error {
		return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Kind.Kind}, t.Name,
			fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", what, given, what, is, then))
	}
	if o.UID != "" && o.UID != uidOf(obj) {
		return Deleted{}, conflict("UID", o.UID, uidOf(obj), "deleted and then recreated")
	}
	if o.Version != "" && o.Version != versionOf(obj) {
		return Deleted{}, conflict("ResourceVersion", o.Version, versionOf(obj), "modified")
	}
	if err := protected(k, t.Name); err != nil {
		return Deleted{}, err
	}
	finalizers := holding(k, obj, o.Propagation)
	if k.Builtin && k.groupResource() == crdResource && !deleting(obj) && !slices.Contains(finalizers, crdFinalizer) {
		finalizers = append(finalizers, crdFinalizer) // its objects go first
	}
	changed := obj
	if !slices.Equal(finalizers, finalizersOf(obj)) {
		changed = setFinalizers(obj, finalizers)
	}
	key := keyOf(t.Namespace, t.Name)
	if len(finalizers) == 0 && !s.held(k, obj) {
		if !o.DryRun {
			obj = withMeta(obj, "resourceVersion", versionOf(s.commit(k, key, nil)))
		}
		return Deleted{Object: obj, Gone: true, Show: k.returnsGone}, nil
	}
	if !deleting(changed) {
		changed = withMeta(changed, "deletionTimestamp", s.now())
		// Namespaces and CRDs are marked by their own code on a real server.
		if !k.Builtin || k.Plural != "namespaces" && k.groupResource() != crdResource {
			changed = withMeta(changed, "deletionGracePeriodSeconds", int64(0))
			if n := generationOf(changed); n > 0 {
				changed = withMeta(changed, "generation", n+1)
			}
		}
		if k.Builtin && k.Plural == "namespaces" {
			changed = withField(changed, "status", map[string]any{"status": map[string]any{"phase": "Terminating"}})
		}
	}
	if !o.DryRun && !reflect.DeepEqual(changed, obj) {
		changed, err = s.put(k, key, changed)
	}
	return Deleted{Object: changed, Show: true}, err
}

// holding returns the finalizers that an object has once it is deleted this way.
func holding(k *kind, obj map[string]any, p metav1.DeletionPropagation) []string {
	have := finalizersOf(obj)
	orphan, foreground := p == metav1.DeletePropagationOrphan, p == metav1.DeletePropagationForeground
	if p == "" {
		orphan = slices.Contains(have, metav1.FinalizerOrphanDependents)
		foreground = !orphan && slices.Contains(have, metav1.FinalizerDeleteDependents)
		orphan = orphan || !foreground && k.orphans
	}
	if k.Builtin && k.Plural == "events" {
		orphan, foreground = false, false
	}
	out := slices.DeleteFunc(slices.Clone(have), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if orphan {
		out = append(out, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	return out
}

// protected refuses to delete the namespaces that a cluster cannot do without.
func protected(k *kind, name string) error {
	if k.Builtin && k.Plural == "namespaces" && (name == "default" || name == "kube-system" || name == "kube-public") {
		return apierrors.NewForbidden(k.groupResource(), name, fmt.Errorf("this namespace may not be deleted"))
	}
	return nil
}

// DeleteCollection deletes what a list finds. It returns what it deleted.
func (s *Store) DeleteCollection(t Target, sel Selection, o DeleteOptions) ([]map[string]any, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "deletecollection")
	if err != nil {
		return nil, err
	}
	list, err := s.list(k, t, ListOptions{Selection: sel})
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, obj := range list.Items {
		gone, err := s.delete(k, Target{GVR: t.GVR, Namespace: namespaceOf(obj), Name: nameOf(obj)}, o)
		if err != nil {
			return out, err
		}
		out = append(out, gone.Object)
	}
	return out, nil
}
