package store

import (
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/definition"
)

// Target names what a call is about.
type Target struct {
	// GVR is the resource in the version of the call.
	GVR schema.GroupVersionResource
	// Namespace is "" for cluster-scoped kinds, and for lists of all namespaces.
	Namespace string
	// Name is "" for the collection.
	Name string
	// Subresource is "", "status", "scale", "eviction" or "approval".
	Subresource string
	// Spared calls are not hit by injected errors: a test's own.
	Spared bool
}

// WriteOptions are what a write may say beside its object.
type WriteOptions struct {
	// Manager is the field manager.
	Manager string
	// Force takes over fields of other managers (server-side apply).
	Force bool
	// DryRun checks and answers, and changes nothing.
	DryRun bool
	// FieldValidation is what becomes of unknown fields: "Ignore" and "Warn" (or
	// "") drop them, the second with a warning, "Strict" refuses the write.
	FieldValidation string
}

// Result is the answer to a write.
type Result struct {
	// Object is what is there now, in the version of the call. Do not change it.
	Object map[string]any
	// Created says that it was not there before.
	Created bool
	// Warnings are for people.
	Warnings []string
}

// find returns the kind of a target, 404, or the error that is due for the call. The object of the target is known
// then.
func (s *Store) find(t Target, verb string) (*kind, error) {
	k := s.kind(t.GVR)
	if k == nil {
		return nil, noSuchPath()
	}
	k, err := s.loadSchema(k)
	if err != nil {
		return nil, err
	}
	switch {
	case k.crd != nil && (t.Subresource == "status" && !k.Status || t.Subresource == "scale" && !k.Scale):
		return nil, notFound(k, t.Name)
	case t.Subresource == "", t.Subresource == "status" && k.Status, t.Subresource == "scale" && k.Scale,
		t.Subresource == "eviction" && k.Builtin && k.Plural == "pods", t.Subresource == approval && approvable(k):
		if err := s.load(k, t.Namespace, t.Name); err != nil {
			return nil, err
		}
		return k, s.fail(t, k, verb)
	}
	return nil, noSuchPath()
}

// broken is an error that the real server gives no reason for.
func broken(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: message}}
}

// noSuchPath is the answer to a URL that leads nowhere.
func noSuchPath() error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Details = &metav1.StatusDetails{}
	return err
}

func notFound(k *kind, name string) error { return apierrors.NewNotFound(k.groupResource(), name) }

// stored returns the object as it is stored, or nil.
func (s *Store) stored(k *kind, t Target) map[string]any {
	return s.table(k.keptIn()).objects[keyOf(t.Namespace, t.Name)]
}

// inVersion returns an object, as it is stored, in the version of a kind.
func (s *Store) inVersion(k *kind, obj map[string]any) (map[string]any, error) {
	switch {
	case obj == nil || obj["apiVersion"] == k.APIVersion():
		return obj, nil
	case k.keptAs != nil:
		return inForm(k, obj), nil
	}
	out, err := s.as(k, k.Version, obj, (*definition.Version).Coerce)
	if err != nil {
		return nil, undecodable{broken(fmt.Sprintf("object not decodable revision=%s: %v", versionOf(obj), err))}
	}
	return out, nil
}

// storedForm is an object of a kind as the store keeps it.
func (s *Store) storedForm(k *kind, obj map[string]any) (map[string]any, error) {
	switch {
	case k.keptAs != nil:
		return inForm(k.keptAs, obj), nil
	case k.crd == nil || k.crd.storage == k.Version:
		return obj, nil
	}
	return s.as(k, k.crd.storage, obj, (*definition.Version).Decode)
}

// as returns an object of a kind that is not built in in another version, with what its schema makes of it. The
// objects of an origin come in the version that was asked for first, which says nothing of how they are stored.
func (s *Store) as(k *kind, version string, obj map[string]any, fit func(*definition.Version, map[string]any, bool) ([]string, error)) (map[string]any, error) {
	to := schema.GroupVersion{Group: k.Group, Version: version}
	out, err := s.convert(k, obj, to.WithKind(k.Kind.Kind))
	if err != nil || s.over != nil {
		return out, err
	}
	if out, err = copied(out); err == nil {
		if of := s.kinds[to.WithResource(k.Plural)]; of != nil {
			_, err = fit(of.crd.says(), out, false)
		}
	}
	if err != nil {
		return nil, broken(err.Error())
	}
	return out, nil
}

// put stores an object, and returns it as it is read then.
func (s *Store) put(k *kind, key string, obj map[string]any) (map[string]any, error) {
	stored, err := s.storedForm(k, obj)
	if err != nil {
		return nil, err
	}
	return s.inVersion(k, s.commit(k, key, stored))
}

// pick returns a stored object as a list or watch shows it; nil: it is not selected. It is converted before anybody
// can tell, so one that cannot be fails the lists that would not show it, too.
func (s *Store) pick(k *kind, namespace string, match func(map[string]any) bool, obj map[string]any) (map[string]any, error) {
	if obj == nil || namespace != "" && namespaceOf(obj) != namespace {
		return nil, nil
	}
	obj, err := s.view(k, obj)
	if err != nil || !match(obj) {
		return nil, err
	}
	return obj, nil
}

// Get returns one object.
func (s *Store) Get(t Target) (map[string]any, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "get")
	if err != nil {
		return nil, err
	}
	obj, err := s.view(k, s.stored(k, t))
	switch {
	case err != nil:
		return nil, corrupt(k, t, err)
	case obj == nil:
		return nil, notFound(k, t.Name)
	case t.Subresource == "scale":
		return scaleOf(k, obj), nil
	}
	return obj, nil
}

// Create adds an object.
func (s *Store) Create(t Target, obj map[string]any, o WriteOptions) (Result, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "create")
	if err != nil {
		return Result{}, err
	}
	if t.Subresource == "eviction" {
		return s.evict(k, t, obj, o)
	}
	if slices.Equal(k.verbs, []string{"create"}) {
		return s.review(k, obj)
	}
	if t.Subresource != "" {
		return Result{}, apierrors.NewMethodNotSupported(k.groupResource(), "create")
	}
	w := &write{store: s, kind: k, target: t, options: o}
	return w.create(obj)
}

// Update replaces an object.
func (s *Store) Update(t Target, obj map[string]any, o WriteOptions) (Result, error) {
	s.mu.Lock()
	defer s.unlock()
	k, err := s.find(t, "update")
	if err != nil {
		return Result{}, err
	}
	w := &write{store: s, kind: k, target: t, options: o}
	if t.Subresource == "scale" {
		return w.scale(obj)
	}
	return w.update(obj)
}

// Patch changes an object by a patch of a type: merge, JSON, strategic (built-in
// kinds only), or apply, for which data may be YAML and which creates the object
// when it is not there.
func (s *Store) Patch(t Target, typ types.PatchType, data []byte, o WriteOptions) (Result, error) {
	s.mu.Lock()
	defer s.unlock()
	verb := "patch"
	if typ == types.ApplyPatchType {
		verb = "apply"
	}
	k, err := s.find(t, verb)
	if err != nil {
		return Result{}, err
	}
	w := &write{store: s, kind: k, target: t, options: o}
	key := w.patchKey(typ, data)
	if res, is := w.repeats(key); is {
		return res, nil
	}
	before := s.version
	res, err := w.patch(typ, data)
	if err == nil && s.version == before {
		w.noteUnchanged(key, res)
	}
	return res, err
}

// checkNames fills in or compares what the URL says of an object.
func checkNames(k *kind, t Target, obj map[string]any) error {
	ns := namespaceOf(obj)
	switch {
	case !k.Namespaced:
		setMeta(obj, "namespace", nil)
	case ns != "" && ns != t.Namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case ns == "":
		setMeta(obj, "namespace", t.Namespace)
	}
	if name := nameOf(obj); t.Name != "" && name != t.Name {
		if name == "" {
			return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", t.Name))
		}
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, t.Name))
	}
	return nil
}

// wrongVersion compares an object's kind with that of the URL.
func wrongVersion(k *kind, obj map[string]any) error {
	apiVersion, _ := obj["apiVersion"].(string)
	name, _ := obj["kind"].(string)
	switch {
	case name == "" && apiVersion == "":
		obj["apiVersion"], obj["kind"] = k.APIVersion(), k.Kind.Kind
		return nil
	case apiVersion == "" || apiVersion == k.APIVersion():
		obj["apiVersion"] = k.APIVersion()
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", apiVersion, k.APIVersion()))
	}
	if name == "" {
		obj["kind"] = k.Kind.Kind
		return nil
	}
	if name != k.Kind.Kind {
		gvk := schema.FromAPIVersionAndKind(obj["apiVersion"].(string), name)
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting (%s) to (%s): unknown conversion", name, gvk.Version, k.Kind.Kind, gvk, k.GVK()))
	}
	return nil
}
