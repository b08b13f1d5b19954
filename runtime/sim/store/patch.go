package store

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxJSONPatch is how many operations a JSON patch may have, as on a real server.
const maxJSONPatch = 10000

func (w *write) patch(typ types.PatchType, data []byte) (Result, error) {
	s, k := w.store, w.kind
	old, err := s.inVersion(k, s.stored(k, w.target))
	if err != nil {
		return Result{}, err
	}
	if typ == types.ApplyPatchType {
		return w.applied(old, data)
	}
	if old == nil {
		return Result{}, notFound(k, w.target.Name)
	}
	base := old
	if w.target.Subresource == "scale" {
		base = scaleOf(k, old)
	}
	var obj map[string]any
	switch typ {
	case types.MergePatchType, types.JSONPatchType:
		obj, err = w.jsonPatched(typ, base, data)
	case types.StrategicMergePatchType:
		obj, err = w.strategic(base, data)
	default:
		err = noSuchPatch(k.typed != nil)
	}
	if err != nil {
		return Result{}, err
	}
	if w.target.Subresource == "scale" {
		return w.scale(obj)
	}
	if err := checkNames(k, w.target, obj); err != nil {
		return Result{}, err
	}
	if obj, err = s.update(k, w.target.Subresource, w.options.Manager, old, obj); err != nil {
		return Result{}, err
	}
	return w.replace(old, obj)
}

// noSuchPatch is the answer to a patch of a type that the kind does not take:
// strategic ones need a built-in kind.
func noSuchPatch(builtin bool) error {
	accepted := "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
	if builtin {
		accepted = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml"
	}
	err := apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Details = nil
	err.ErrStatus.Message = "the body of the request was in an unknown format - accepted media types include: " + accepted
	return err
}

// patched decodes what a patch has made of an object.
func (w *write) patched(text []byte) (map[string]any, error) {
	invalid := func(err error) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(text), err.Error())})
	}
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &obj); err != nil {
		return nil, invalid(err)
	}
	if obj == nil {
		return nil, invalid(fmt.Errorf("the patch leaves no object"))
	}
	if w.target.Subresource == "scale" {
		return obj, nil
	}
	if err := wrongVersion(w.kind, obj); err != nil {
		if w.kind.typed != nil {
			return nil, invalid(err)
		}
		return nil, apierrors.NewInvalid(w.kind.GVK().GroupKind(), w.target.Name, field.ErrorList{field.Invalid(field.NewPath("kind"), obj["kind"], err.Error())})
	}
	out, err := w.read(obj)
	if err != nil {
		return nil, invalid(err)
	}
	return out, nil
}

func (w *write) jsonPatched(typ types.PatchType, old map[string]any, data []byte) (map[string]any, error) {
	before, err := json.Marshal(old)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if typ == types.MergePatchType {
		var object map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		after, err := jsonpatch.MergePatch(before, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return w.patched(after)
	}
	var list []any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &list); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(list) > maxJSONPatch {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatch, len(list)))
	}
	operations, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return w.patched(after)
}

func (w *write) strategic(old map[string]any, data []byte) (map[string]any, error) {
	if w.kind.typed == nil {
		return nil, noSuchPatch(false)
	}
	var patch map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	model, err := w.kind.typed.scheme.New(w.kind.GVK())
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	out, err := strategicpatch.StrategicMergeMapPatch(runtime.DeepCopyJSON(old), patch, model)
	if err != nil {
		return nil, broken(err.Error())
	}
	obj, err := w.read(out)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), fmt.Sprintf("%+v", patch), err.Error())})
	}
	return obj, nil
}

// applied is server-side apply; old is nil when the object is not there.
func (w *write) applied(old map[string]any, data []byte) (Result, error) {
	s, k := w.store, w.kind
	var patch map[string]any
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &patch) != nil { // most are JSON, whose reader takes a tenth of the time
		patch = nil
		text, err := yaml.YAMLToJSON(data)
		if err == nil {
			err = kjson.UnmarshalCaseSensitivePreserveInts(text, &patch)
		}
		if err != nil {
			return Result{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if patch == nil {
		patch = map[string]any{}
	}
	w.came(patch)
	if w.options.Manager == "" {
		return Result{}, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "", field.ErrorList{
			field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	if w.target.Subresource == "scale" {
		return Result{}, noSuchPatch(k.typed != nil)
	}
	if old == nil && w.target.Subresource != "" {
		return Result{}, notFound(k, w.target.Name)
	}
	obj, err := s.apply(k, w.target.Subresource, w.options.Manager, w.options.Force, old, patch)
	if err != nil {
		return Result{}, err
	}
	w.applies = true
	obj, unknown, err := w.decode(obj)
	if err != nil {
		return Result{}, apierrors.NewInternalError(err)
	}
	if err := w.dropped(unknown); err != nil {
		return Result{}, cannotHandle(k, err)
	}
	if old == nil && uidOf(obj) != "" {
		return Result{}, apierrors.NewConflict(k.groupResource(), w.target.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uidOf(obj)))
	}
	if err := checkNames(k, w.target, obj); err != nil {
		return Result{}, err
	}
	if old == nil {
		setMeta(obj, "resourceVersion", nil)
		return w.add(obj)
	}
	return w.replace(old, obj)
}
