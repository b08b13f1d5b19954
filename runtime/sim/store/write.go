package store

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// write is one write under way, with the store locked.
type write struct {
	store    *Store
	kind     *kind
	target   Target
	options  WriteOptions
	applies  bool // it is a server-side apply
	warnings []string
	sent     map[string]any // as it came; nil unless somebody wants to know
}

// decode brings an object into the form of its kind: unknown fields dropped, defaults set. obj may be changed.
func (w *write) decode(obj map[string]any) (map[string]any, []string, error) {
	if w.kind.typed != nil {
		out, unknown, err := w.kind.typed.decode(obj)
		if fields, is := metaOf(obj)["managedFields"].([]any); is && len(fields) == 0 && err == nil {
			setMeta(out, "managedFields", fields) // an empty list clears them, no list does not
		}
		return out, unknown, err
	}
	if _, ok := obj["metadata"].(map[string]any); !ok && obj["metadata"] != nil {
		return nil, nil, fmt.Errorf("metadata is no object")
	}
	unknown, err := w.kind.crd.says().Decode(obj, w.applies)
	return obj, unknown, err
}

// body reads what a client has sent.
func (w *write) body(obj map[string]any) (map[string]any, error) {
	if obj == nil {
		obj = map[string]any{}
	}
	obj, err := copied(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := wrongVersion(w.kind, obj); err != nil {
		return nil, err
	}
	w.came(obj)
	if obj, err = w.read(obj); err != nil {
		return nil, cannotHandle(w.kind, err)
	}
	return obj, nil
}

// read decodes what comes from a client.
func (w *write) read(obj map[string]any) (map[string]any, error) {
	out, unknown, err := w.decode(obj)
	if err == nil {
		err = w.dropped(unknown)
	}
	return out, err
}

// dropped tells the client which fields were dropped; the error is for one that wants to have them refused.
func (w *write) dropped(unknown []string) error {
	if len(unknown) > 0 && w.options.FieldValidation == "Strict" {
		return fmt.Errorf("strict decoding error: %s", strings.Join(unknown, ", "))
	}
	if w.options.FieldValidation != "Ignore" {
		w.warnings = append(w.warnings, unknown...)
	}
	return nil
}

// finalizers warns of finalizers of custom resources that name no domain.
func (w *write) finalizers(obj, old map[string]any) {
	if w.kind.crd == nil {
		return
	}
	for _, name := range finalizersOf(obj) {
		if !strings.Contains(name, "/") && !slices.Contains(finalizersOf(old), name) {
			w.warnings = append(w.warnings, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers", name))
		}
	}
}

// again decodes what the store has changed itself.
func (w *write) again(obj map[string]any) (map[string]any, error) {
	out, _, err := w.decode(obj)
	if err != nil {
		return nil, cannotHandle(w.kind, err)
	}
	return out, nil
}

func (w *write) create(obj map[string]any) (Result, error) {
	obj, err := w.body(obj)
	if err != nil {
		return Result{}, err
	}
	if err := checkNames(w.kind, w.target, obj); err != nil {
		return Result{}, err
	}
	for _, field := range []string{"managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		setMeta(obj, field, nil)
	}
	obj, err = w.store.update(w.kind, "", w.options.Manager, nil, obj)
	if err != nil {
		return Result{}, err
	}
	return w.add(obj)
}

// add stores a new object: decoded, with its field managers.
func (w *write) add(obj map[string]any) (Result, error) {
	s, k := w.store, w.kind
	if metaOf(obj) == nil {
		obj["metadata"] = map[string]any{}
	}
	generated := false
	if prefix := metaString(obj, "generateName"); prefix != "" && nameOf(obj) == "" {
		generated = true
		setMeta(obj, "name", s.newName(k.groupResource(), w.target.Namespace, prefix))
	}
	if versionOf(obj) != "" && versionOf(obj) != "0" {
		return Result{}, broken("resourceVersion should not be set on objects to be created")
	}
	if err := s.crdDeleting(k); err != nil {
		return Result{}, err
	}
	if err := s.checkNamespace(k, w.target.Namespace, nameOf(obj), w.options.DryRun); err != nil {
		return Result{}, err
	}
	if err := s.load(k, w.target.Namespace, nameOf(obj)); err != nil {
		return Result{}, err
	}
	key := keyOf(w.target.Namespace, nameOf(obj))
	for _, field := range []string{"resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		setMeta(obj, field, nil)
	}
	if k.Status && !(k.Builtin && k.Plural == "nodes") { // a kubelet registers its node with its status
		delete(obj, "status")
	}
	obj, err := w.again(obj)
	if err != nil {
		return Result{}, err
	}
	setMeta(obj, "creationTimestamp", s.now())
	setMeta(obj, "uid", s.newUID(k.groupResource(), key))
	s.prepareNew(k, obj)
	if k.generation {
		setMeta(obj, "generation", int64(1))
	}
	w.finalizers(obj, nil)
	if errs := w.validate(obj, nil); len(errs) > 0 {
		return Result{}, apierrors.NewInvalid(k.GVK().GroupKind(), nameOf(obj), errs)
	}
	if there := s.table(k.keptIn()).objects[key]; there != nil {
		if generated {
			return Result{}, apierrors.NewGenerateNameConflict(k.groupResource(), nameOf(obj), 1)
		}
		exists := apierrors.NewAlreadyExists(k.groupResource(), nameOf(obj))
		if deleting(there) {
			exists.ErrStatus.Message = "object is being deleted: " + exists.ErrStatus.Message
		}
		return Result{}, exists
	}
	if !w.options.DryRun {
		if obj, err = s.put(k, key, obj); err != nil {
			return Result{}, err
		}
		s.over.made(k, key, w.sent, obj)
	}
	return Result{Object: obj, Created: true, Warnings: w.warnings}, nil
}

func (w *write) update(obj map[string]any) (Result, error) {
	s, k := w.store, w.kind
	obj, err := w.body(obj)
	if err != nil {
		return Result{}, err
	}
	if nameOf(obj) == "" {
		return Result{}, apierrors.NewBadRequest("name must be provided")
	}
	if err := checkNames(k, w.target, obj); err != nil {
		return Result{}, err
	}
	old, err := s.inVersion(k, s.stored(k, w.target))
	if err != nil {
		return Result{}, err
	}
	if old == nil {
		if !k.putCreates || w.target.Subresource != "" {
			return Result{}, notFound(k, w.target.Name)
		}
		if uidOf(obj) != "" {
			return Result{}, w.otherUID(uidOf(obj), "")
		}
		setMeta(obj, "resourceVersion", nil)
		if obj, err = s.update(k, "", w.options.Manager, nil, obj); err != nil {
			return Result{}, err
		}
		return w.add(obj)
	}
	if uid := uidOf(obj); uid != "" && uid != uidOf(old) {
		return Result{}, w.otherUID(uid, uidOf(old))
	}
	// The field manager compares with what the update would do, so it comes first.
	if obj, err = s.update(k, w.target.Subresource, w.options.Manager, old, obj); err != nil {
		return Result{}, err
	}
	return w.replace(old, obj)
}

// otherUID is the answer to a write that is meant for another object of the name.
func (w *write) otherUID(given, is string) error {
	return apierrors.NewConflict(w.kind.groupResource(), w.target.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		w.kind.Plural, keyOf(w.target.Namespace, w.target.Name), given, is))
}

// replace stores obj, decoded and with its field managers, where old is.
func (w *write) replace(old, obj map[string]any) (Result, error) {
	s, k := w.store, w.kind
	switch version := versionOf(obj); {
	case version == "" || version == "0":
		if k.versioned {
			return Result{}, apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Plural}, w.target.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata").Child("resourceVersion"), int64(0), "must be specified for an update")})
		}
	case version != versionOf(old):
		return Result{}, apierrors.NewConflict(k.groupResource(), w.target.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	setMeta(obj, "resourceVersion", versionOf(old))
	copyMeta(obj, old, "generation")
	copyMeta(obj, old, "selfLink")
	obj = w.withinReach(old, obj)
	var err error
	if k.typed == nil { // else both parts are in the form of the kind; a schema may have defaults for what was taken away
		if obj, err = w.again(obj); err != nil {
			return Result{}, err
		}
	}
	s.prepareChanged(k, old, obj)
	if w.target.Subresource == "" && k.generation && !k.firstOnly && (!equalBut(without(old, "status", k.Status), without(obj, "status", k.Status), "metadata") || passedOn(k, old, obj)) {
		setMeta(obj, "generation", generationOf(old)+1)
	}
	if uidOf(obj) == "" {
		copyMeta(obj, old, "uid")
	}
	copyMeta(obj, old, "creationTimestamp")
	if deleting(old) {
		copyMeta(obj, old, "deletionTimestamp")
		if metaOf(obj)["deletionGracePeriodSeconds"] == nil {
			copyMeta(obj, old, "deletionGracePeriodSeconds")
		}
	}
	w.finalizers(obj, old)
	if errs := w.validate(obj, old); len(errs) > 0 {
		return Result{}, apierrors.NewInvalid(k.GVK().GroupKind(), nameOf(obj), errs)
	}
	keepTimes(old, obj)
	if reflect.DeepEqual(old, obj) {
		return Result{Object: old, Warnings: w.warnings}, nil
	}
	if !w.options.DryRun {
		key := keyOf(w.target.Namespace, w.target.Name)
		if deleting(obj) && len(finalizersOf(obj)) == 0 && !s.held(k, obj) {
			// Nobody holds it any more. Watches see it as it was stored last.
			obj = withMeta(obj, "resourceVersion", versionOf(s.commit(k, key, nil)))
		} else if obj, err = s.put(k, key, obj); err != nil {
			return Result{}, err
		}
	}
	return Result{Object: obj, Warnings: w.warnings}, nil
}

// passedOn says whether the annotations of a Deployment have changed: they go to its
// ReplicaSets, so they count as its spec does.
func passedOn(k *kind, old, obj map[string]any) bool {
	return k.typed != nil && k.Plural == "deployments" && !reflect.DeepEqual(metaOf(old)["annotations"], metaOf(obj)["annotations"])
}

// withinReach undoes what the endpoint cannot change: the main one the status, that
// of the status all else, that of approvals all but conditions.
func (w *write) withinReach(old, obj map[string]any) map[string]any {
	k := w.kind
	switch {
	case w.target.Subresource == "" && k.Status:
		return withField(obj, "status", old)
	case w.target.Subresource == approval:
		return w.store.approved(old, obj)
	case w.target.Subresource != "status":
		return obj
	}
	out := withField(old, "status", obj)
	if k.typed == nil || k.Plural == crdResource.Resource || k.Plural == apiServices {
		return runtime.DeepCopyJSON(withMeta(out, "managedFields", metaOf(obj)["managedFields"]))
	}
	out["metadata"] = obj["metadata"]
	out = runtime.DeepCopyJSON(out)
	if k.Plural == "deployments" {
		copyMeta(out, old, "labels")
	}
	return out
}

// validate checks an object that is about to be stored; old is nil for a new one.
func (w *write) validate(obj, old map[string]any) field.ErrorList {
	k := w.kind
	var errs field.ErrorList
	at := field.NewPath("metadata")
	meta, err := typedMeta(obj)
	if err != nil {
		return field.ErrorList{field.Invalid(at, nil, err.Error())}
	}
	names := nameRule(k)
	if old == nil {
		errs = apivalidation.ValidateObjectMetaAccessor(meta, k.Namespaced, names, at)
	} else {
		before, err := typedMeta(old)
		if err != nil {
			return field.ErrorList{field.Invalid(at, nil, err.Error())}
		}
		errs = append(apivalidation.ValidateObjectMetaAccessor(meta, k.Namespaced, pathSegment, at),
			apivalidation.ValidateObjectMetaAccessorUpdate(meta, before, at)...)
	}
	switch {
	case k.crd != nil:
		errs = append(errs, k.crd.Validate(obj, old, w.target.Subresource == "status")...)
	case k.groupResource() == crdResource:
		more, err := checkCRD(w.store.o.Builtins, obj, old)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath("spec"), nil, err.Error()))
		}
		errs = append(errs, more...)
	case k.Builtin:
		errs = unrepeated(append(errs, validateBuiltin(k, obj, old)...))
	}
	return errs
}

// nameRule returns what names the kind takes.
func nameRule(k *kind) apivalidation.ValidateNameFunc {
	groups := []string{"rbac.authorization.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io"}
	switch {
	case !k.Builtin:
	case k.groupResource() == namespaceResource:
		return apivalidation.NameIsDNSLabel
	case k.Group == "" && k.Plural == "services":
		return serviceName
	case k.Plural == "ipaddresses", slices.Contains(groups, k.Group):
		return pathSegment // or less: that is checked elsewhere, or for the kind's own server to say
	}
	return apivalidation.NameIsDNSSubdomain
}

func serviceName(name string, prefix bool) []string {
	if strings.Contains(name, ".") {
		return []string{"must not contain dots"}
	}
	return apivalidation.NameIsDNSLabel(name, prefix)
}

// pathSegment takes every name that can stand in a URL.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}
