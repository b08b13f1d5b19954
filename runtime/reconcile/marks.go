package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/kstatus"
	"github.com/starling-operator/starling/runtime/object"
)

// A child tells of itself in its annotations, so that it is found, and deleted in the right order, when
// nobody knows its part any more.
const (
	// DesiredAnnotation holds [Part].Digest.
	DesiredAnnotation = "starling.dev/desired"
	// OrderAnnotation holds the layer, where that is not 0.
	OrderAnnotation = "starling.dev/order"
	// RetainAnnotation is "true" on a child that is retained.
	RetainAnnotation = "starling.dev/retain"
	// ParentAnnotation and ParentUIDAnnotation hold [Parent].Key and [Parent].UID.
	ParentAnnotation    = "starling.dev/parent"
	ParentUIDAnnotation = "starling.dev/parent-uid"
	// ChildAnnotation holds "namespace/name" of the child: a copy in another namespace is none.
	ChildAnnotation = "starling.dev/child"
	// ControllerLabel holds [Parent].Controller.
	ControllerLabel = "starling.dev/controller"
	// PausedAnnotation is "true" on a parent whose children are left as they are.
	PausedAnnotation = "starling.dev/paused"
	// CleanedAnnotation holds the uid of a parent whose controller need not be asked any more what must stay
	// while the parent is being deleted. Starling writes it once the controller has said so, before anything
	// is deleted; a person may write it instead.
	CleanedAnnotation = "starling.dev/cleanup-done"
)

// Parent is whose child an object is. The zero Parent is that of nobody.
type Parent struct {
	// Key is "namespace/name", or the name of a cluster-scoped parent.
	Key, UID string
	// Controller stands for the controller; it is fit for a label.
	Controller string
	// Module is that of the controller, "" where it does not matter what hooks of others apply.
	Module string
	// Owner is the entry of the child's ownerReferences, nil for none.
	Owner map[string]any
}

// Mark returns the object of a part as it is written: with what the child says of itself. The object
// stays as it is.
func Mark(obj map[string]any, p *Part, layer int, parent Parent) map[string]any {
	marks := map[string]any{DesiredAnnotation: p.Digest}
	if parent.UID != "" {
		marks[ParentAnnotation], marks[ParentUIDAnnotation] = parent.Key, parent.UID
		marks[ChildAnnotation] = childKey(p.ID.Ref)
	}
	if layer > 0 {
		marks[OrderAnnotation] = strconv.Itoa(layer)
	}
	if p.Retain {
		marks[RetainAnnotation] = "true"
	}
	obj, meta := effect.WithMetadata(obj)
	given := effect.Cloned(meta, "annotations")
	maps.DeleteFunc(given, func(key string, _ any) bool { return slices.Contains(annotations[:], key) })
	maps.Copy(given, marks)
	if parent.Controller != "" {
		effect.Cloned(meta, "labels")[ControllerLabel] = parent.Controller
	}
	if parent.Owner != nil {
		given, _ := meta["ownerReferences"].([]any)
		meta["ownerReferences"] = append(slices.Clip(given), parent.Owner)
	}
	return obj
}

// Signed returns an object as it is written, with the signature that it has already.
func Signed(obj, live map[string]any) map[string]any {
	has := effect.At[any](live, "metadata", "annotations", effect.ChildSignature)
	if has == nil {
		return obj
	}
	return object.With(obj, []string{"metadata", "annotations", effect.ChildSignature}, has)
}

// SignedBy is the patch by which a child gets its signature: the marks of whose child it is, which are there.
func SignedBy(parent Parent) map[string]any {
	return map[string]any{"metadata": map[string]any{
		"labels": map[string]any{ControllerLabel: parent.Controller}, "annotations": map[string]any{ParentUIDAnnotation: parent.UID, effect.ChildSignature: ""},
	}}
}

func childKey(r effect.Ref) string { return r.Namespace + "/" + r.Name }

var annotations = [...]string{DesiredAnnotation, OrderAnnotation, RetainAnnotation, ParentAnnotation, ParentUIDAnnotation, ChildAnnotation, effect.ChildSignature}

func text(m map[string]any, key string) string { s, _ := m[key].(string); return s }

// ParentOf returns the key and the uid of the parent that an object says it has, "" for none.
func ParentOf(obj map[string]any) (key, uid string) {
	given := effect.At[map[string]any](obj, "metadata", "annotations")
	key, _ = given[ParentAnnotation].(string)
	uid, _ = given[ParentUIDAnnotation].(string)
	return key, uid
}

// ControllerOf returns [Parent].Controller of the parent that an object says it has, "" for none.
func ControllerOf(obj map[string]any) string {
	return effect.At[string](obj, "metadata", "labels", ControllerLabel)
}

// ChildOf reads an object as it is: plain JSON data, in which a field that is not there, or of another
// type, counts as empty. An object without the marks of [Mark] is Foreign, and so is the copy of one.
func ChildOf(obj map[string]any) Child {
	meta, _ := obj["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	c := Child{
		ID: ID{Ref: effect.RefOf(obj)}, UID: text(meta, "uid"), Digest: text(annotations, DesiredAnnotation),
		Retain: text(annotations, RetainAnnotation) == "true", Deleting: text(meta, "deletionTimestamp") != "",
	}
	c.Layer, _ = strconv.Atoi(text(annotations, OrderAnnotation)) // one that is no number is as none
	c.Layer = min(max(c.Layer, 0), MaxParts)
	if name := text(annotations, ChildAnnotation); c.Digest == "" || name != "" && name != childKey(c.Ref) {
		c.Foreign = "somebody else"
	}
	status := kstatus.Of(obj)
	c.Ready, c.Reason = status.Ready, status.Reason
	if names, _ := meta["finalizers"].([]any); c.Deleting && len(names) > 0 {
		c.Reason += fmt.Sprintf(", and stays until finalizer %v is taken off", names[0])
	}
	return c
}

// Keeper says why an object that is there is not taken over for a parent, "" when it may be. An object that a
// former parent of this name has left, for it is retained, may be.
func Keeper(obj map[string]any, parent Parent) string {
	meta, _ := obj["metadata"].(map[string]any)
	owners, _ := meta["ownerReferences"].([]any)
	for _, o := range owners {
		if owner, _ := o.(map[string]any); owner["controller"] == true && owner["uid"] != parent.UID {
			return "it belongs to " + text(owner, "kind") + " " + text(owner, "name")
		}
	}
	annotations, _ := meta["annotations"].(map[string]any)
	key, of := ParentOf(obj)
	left := text(annotations, RetainAnnotation) == "true" && key == parent.Key && ControllerOf(obj) == parent.Controller
	switch {
	case of != "" && of != parent.UID && !left:
		return "it is a child of " + key
	case text(annotations, effect.MadeByAnnotation) != "":
		return "it is made by a hook"
	case text(annotations, "meta.helm.sh/release-name") != "":
		return "it is of the Helm release " + text(annotations, "meta.helm.sh/release-name")
	case text(meta, "deletionTimestamp") != "":
		return "it is being deleted"
	case of != "" || parent.Module == "":
		return ""
	}
	fields, _ := meta["managedFields"].([]any)
	for _, f := range fields {
		entry, _ := f.(map[string]any)
		if module := effect.ManagerModule(text(entry, "manager")); module != "" && module != parent.Module && entry["operation"] == "Apply" {
			return "a hook of module " + module + " has made it"
		}
	}
	return ""
}
