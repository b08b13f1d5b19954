package store

import (
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/starling-operator/starling/runtime/apply"
)

// fieldManager is that of a kind's subresource. It is cheap to make, but for the types.
func (s *Store) fieldManager(k *kind, subresource string) (*managedfields.FieldManager, error) {
	gvk := k.GVK()
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if paths := k.reset(subresource); paths != nil {
		reset = fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(k.APIVersion()): paths})
	}
	o := objects{s, k}
	make := managedfields.NewDefaultCRDFieldManager
	if k.typed != nil {
		make = managedfields.NewDefaultFieldManager
	}
	return make(k.types(), o, o, o, gvk, gvk.GroupVersion(), subresource, reset)
}

// reset returns the fields that a request to the subresource cannot change, so that
// nobody comes to own them by it.
func (k *kind) reset(subresource string) *fieldpath.Set {
	switch {
	case subresource == "" && k.Status:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case subresource == approval:
		return beyondApproval
	case subresource != "status":
		return nil
	case k.typed == nil || k.Plural == crdResource.Resource || k.Plural == apiServices:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	case k.Plural == "pods":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "deletionTimestamp"), fieldpath.MakePathOrDie("metadata", "ownerReferences"))
	case k.Plural == "deployments":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels"))
	}
	return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
}

// update records that manager has changed live to obj, and returns obj with its
// managedFields.
func (s *Store) update(k *kind, subresource, manager string, live, obj map[string]any) (map[string]any, error) {
	f, err := s.fieldManager(k, subresource)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out, err := f.Update(wrapped(k, live), wrapped(k, obj), manager)
	if err != nil {
		// An object that does not fit its schema: who owns what stays as it was,
		// and validation says what is wrong.
		made := runtime.DeepCopyJSON(obj)
		setMeta(made, "managedFields", metaOf(live)["managedFields"])
		return made, nil
	}
	made := out.(*unstructured.Unstructured).Object
	s.stamp(live, made)
	return made, nil
}

// apply merges patch into live, server-side apply.
func (s *Store) apply(k *kind, subresource, manager string, force bool, live, patch map[string]any) (map[string]any, error) {
	f, err := s.fieldManager(k, subresource)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out, err := f.Apply(wrapped(k, live), &unstructured.Unstructured{Object: patch}, manager, force)
	if err != nil {
		return nil, err
	}
	made := out.(*unstructured.Unstructured).Object
	s.stamp(live, made)
	return made, nil
}

// wrapped is a copy of an object for a field manager, which changes it; nil stands
// for one that is not there yet.
func wrapped(k *kind, obj map[string]any) *unstructured.Unstructured {
	if obj == nil {
		if k.typed != nil {
			return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(k.typed.empty())}
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.APIVersion(), "kind": k.Kind.Kind}}
	}
	return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(obj)}
}

// stamp puts the store's time where the library has put the machine's.
func (s *Store) stamp(live, obj map[string]any) {
	before := managedEntries(live)
	for _, e := range managedEntries(obj) {
		touched := true
		for _, old := range before {
			if sameEntry(old, e) {
				touched = old["time"] != e["time"]
				break
			}
		}
		if touched && e["time"] != nil {
			e["time"] = s.now()
		}
	}
}

func managedEntries(obj map[string]any) []map[string]any {
	return slices.Collect(apply.Entries(obj))
}

func sameEntry(a, b map[string]any) bool {
	return a["manager"] == b["manager"] && a["operation"] == b["operation"] && a["apiVersion"] == b["apiVersion"] && a["subresource"] == b["subresource"]
}

// keepTimes gives obj the managedFields times of old when nothing else differs.
func keepTimes(old, obj map[string]any) {
	before, after := managedEntries(old), managedEntries(obj)
	if len(before) != len(after) {
		return
	}
	for i := range before {
		if !sameEntry(before[i], after[i]) || !reflect.DeepEqual(before[i]["fieldsV1"], after[i]["fieldsV1"]) {
			return
		}
	}
	if !equalBut(old, obj, "metadata", "managedFields") {
		return
	}
	for i := range before {
		after[i]["time"] = before[i]["time"]
	}
}

// equalBut compares two objects, leaving out what is at path.
func equalBut(a, b map[string]any, path ...string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		w, ok := b[key]
		switch {
		case !ok:
			return false
		case key != path[0]:
			if !reflect.DeepEqual(v, w) {
				return false
			}
		case len(path) > 1:
			x, _ := v.(map[string]any)
			y, _ := w.(map[string]any)
			if !equalBut(x, y, path[1:]...) {
				return false
			}
		}
	}
	return true
}

// objects stands for the object machinery that a field manager wants: most kinds have one
// version, and defaults are set elsewhere.
type objects struct {
	store *Store
	kind  *kind
}

// Convert implements [runtime.ObjectConvertor].
func (objects) Convert(in, out, context any) error {
	return fmt.Errorf("objects are not converted in place")
}

// ConvertToVersion implements [runtime.ObjectConvertor].
func (o objects) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	gvk := u.GroupVersionKind()
	to, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok || to == gvk {
		v, isVersion := gv.(schema.GroupVersion)
		if !isVersion || v == gvk.GroupVersion() || v.Group != gvk.Group && gvk != coreEvent && gvk != groupEvent {
			return in, nil
		}
		to = v.WithKind(gvk.Kind)
	}
	made, err := o.store.convert(o.kind, u.Object, to)
	if err == nil {
		made, err = copied(made)
	}
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: made}
	out.SetGroupVersionKind(to)
	return out, nil
}

// ConvertFieldLabel implements [runtime.ObjectConvertor].
func (objects) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements [runtime.ObjectDefaulter].
func (objects) Default(runtime.Object) {}

// New implements [runtime.ObjectCreater].
func (o objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if o.kind.typed != nil {
		return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(o.kind.typed.empty())}, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
