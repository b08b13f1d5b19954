package effect

import (
	"cmp"
	"maps"
	"strings"
	"time"
)

// WriteKind names what a [Write] does.
type WriteKind string

const (
	// WriteApply is a server-side apply of Object.
	WriteApply WriteKind = "apply"
	// WriteCreate makes Object, and fails when it is there, unless IfAbsent.
	WriteCreate WriteKind = "create"
	// WritePatch changes an object that is there, as Patch says.
	WritePatch WriteKind = "patch"
	// WriteStatus is a server-side apply of Object, which holds nothing but
	// identity and status, to the status subresource.
	WriteStatus WriteKind = "status"
	// WriteDelete deletes the object that the reference names; an object that is not there is no error.
	WriteDelete WriteKind = "delete"
	// WriteEvict asks for the eviction of a Pod; one that is not there is no error.
	WriteEvict WriteKind = "evict"
	// WriteEvent makes an Event about the object that the reference names, or counts one that is there.
	WriteEvent WriteKind = "event"
	// WriteSet makes Set what a set of objects consists of.
	WriteSet WriteKind = "apply_set"
	// WriteChildren carries out Children, side by side: one that fails holds up no other. No builtin
	// makes one: it is what a controller does about a parent.
	WriteChildren WriteKind = "children"
	// WriteFields carries out Children, one after the other, as Manager: what a controller does about fields
	// of an object that somebody else has made. No builtin makes one.
	WriteFields WriteKind = "fields"
	// WriteConfig changes a value of the user's config, as Config says. Ref is the object that holds it.
	WriteConfig WriteKind = "config"
	// WriteAddFinalizer puts Finalizer on an object that is there and not being deleted.
	// No builtin makes one: it comes before the writes of a hook with a cleanup.
	WriteAddFinalizer WriteKind = "hold"
	// WriteRemoveFinalizer takes Finalizer off an object; one that is not there is no
	// error. It comes after the writes of a cleanup.
	WriteRemoveFinalizer WriteKind = "release"
)

// Ref names one object. Namespace is empty for cluster-scoped kinds; a namespace
// given for a cluster-scoped kind is ignored.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// GroupOf is the group of an API version, "" for that of v1.
func GroupOf(apiVersion string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return ""
	}
	return group
}

// IsA says whether the object is of a kind, in whatever version of its API.
func (r Ref) IsA(apiVersion, kind string) bool {
	return r.Kind == kind && GroupOf(r.APIVersion) == GroupOf(apiVersion)
}

// AnyVersion has the group in place of the API version: it is the same in all versions of the kind.
func (r Ref) AnyVersion() Ref {
	r.APIVersion = GroupOf(r.APIVersion)
	return r
}

// String returns "ConfigMap kube-system/settings", or "Node a". Without a name it is the kind, "Pod in web".
func (r Ref) String() string {
	switch {
	case r.Name == "" && r.Namespace == "":
		return r.Kind
	case r.Name == "":
		return r.Kind + " in " + r.Namespace
	}
	return r.Kind + " " + Key(r.Namespace, r.Name)
}

// Key names an object within its kind: "kube-system/settings", or the name alone of what has no namespace.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Object is what the reference names, and nothing else of it.
func (r Ref) Object() map[string]any {
	metadata := map[string]any{"name": r.Name}
	if r.Namespace != "" {
		metadata["namespace"] = r.Namespace
	}
	return map[string]any{"apiVersion": r.APIVersion, "kind": r.Kind, "metadata": metadata}
}

// Compare orders objects by API version, kind, namespace and name.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(strings.Compare(r.APIVersion, other.APIVersion), strings.Compare(r.Kind, other.Kind),
		strings.Compare(r.Namespace, other.Namespace), strings.Compare(r.Name, other.Name))
}

// RefOf names an object; what is not there stays empty.
func RefOf(obj map[string]any) Ref {
	return Ref{
		APIVersion: At[string](obj, "apiVersion"), Kind: At[string](obj, "kind"),
		Namespace: At[string](obj, "metadata", "namespace"), Name: At[string](obj, "metadata", "name"),
	}
}

// At is the value at a path of keys; the zero value, if there is none of that type.
func At[T any](obj map[string]any, path ...string) (v T) {
	last := len(path) - 1
	for _, key := range path[:last] {
		obj, _ = obj[key].(map[string]any)
	}
	v, _ = obj[path[last]].(T)
	return v
}

// Only has of a map what is there under some keys.
func Only(m map[string]any, keys ...string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		if v, there := m[key]; there {
			out[key] = v
		}
	}
	return out
}

// Cloned puts a copy in the place of a map in obj, or an empty one where there is none, and returns it to be changed.
func Cloned(obj map[string]any, key string) map[string]any {
	out := map[string]any{}
	given, _ := obj[key].(map[string]any)
	maps.Copy(out, given)
	obj[key] = out
	return out
}

// WithMetadata returns a copy of obj and its metadata, to be changed.
func WithMetadata(obj map[string]any) (out, metadata map[string]any) {
	out = maps.Clone(obj)
	return out, Cloned(out, "metadata")
}

// Write is one object write. Its fields are never changed once it is recorded.
type Write struct {
	Kind WriteKind `json:"kind"`
	// Ref is the object that is written; of an event the one that it is about; of a set only its name.
	Ref Ref `json:"ref"`
	// Object is the object of an apply, create or status, as plain JSON data.
	Object map[string]any `json:"object,omitempty"`
	// Owner becomes the controller in the object's ownerReferences (apply, set).
	Owner *Owner `json:"owner,omitempty"`
	// Force takes over fields that another manager owns (apply, status).
	Force bool `json:"force,omitempty"`
	// IfAbsent leaves an object alone that is there (create).
	IfAbsent bool `json:"ifAbsent,omitempty"`
	// IgnoreMissing has an object that is not there be no error (patch, status).
	IgnoreMissing bool `json:"ignoreMissing,omitempty"`
	// Patch is the change of a patch.
	Patch *Patch `json:"patch,omitempty"`
	// Propagation is "background", "foreground" or "orphan" (delete).
	Propagation string `json:"propagation,omitempty"`
	// Wait is how long the object may take to be gone; 0: it is not waited for (delete).
	Wait time.Duration `json:"wait,omitempty"`
	// Unchanged makes the write fail with a conflict when the object is not as
	// it was seen any more (apply, patch, status, delete).
	Unchanged *Unchanged `json:"unchanged,omitempty"`
	// Event is what the Event says.
	Event *Event `json:"event,omitempty"`
	// Set are the members of the set.
	Set *Set `json:"set,omitempty"`
	// Children are applies and deletes of children. An apply that is not held to a UID makes the object,
	// and fails when somebody else has made it.
	Children []Write `json:"children,omitempty"`
	// Manager is the field manager of fields, which is that of the parent: those of the hook own children.
	Manager string `json:"manager,omitempty"`
	// OneMore is the id of the controller whose next parent comes to have fields of the object; else "".
	OneMore string `json:"oneMore,omitempty"`
	// Adopt has an apply of a child take over an object that is there, unless it belongs to somebody else.
	Adopt bool `json:"adopt,omitempty"`
	// Recreate deletes a child where the API server refuses an apply because a field cannot be changed:
	// once it is gone it is made anew.
	Recreate bool `json:"recreate,omitempty"`
	// Config is the change of config.
	Config *ConfigChange `json:"config,omitempty"`
	// Finalizer is that of hold and release.
	Finalizer string `json:"finalizer,omitempty"`
	// Continue has the writes after this one made though it has failed; the commit fails all the same.
	Continue bool `json:"continue,omitempty"`
	// Guard is what the grants ask of the object as it is in the cluster; nil: nothing.
	Guard *Guard `json:"guard,omitempty"`
	// Pos is the "file:line" of the call.
	Pos string `json:"pos,omitempty"`
	// Cause goes with the events that tell of the write.
	Cause *Cause `json:"-"`
}

// Fate is what has become of the write of a child.
type Fate struct {
	// Written: the child is as the write asks for.
	Written bool
	// Form stands for what the API server has made of it, where that differs from what was asked for; else "".
	Form string
	// Err says why it has failed; nil for one that was not made.
	Err error
}

// Objects returns the objects that the write changes. Events are not counted.
func (w *Write) Objects() []Ref {
	switch w.Kind {
	case WriteEvent:
		return nil
	case WriteSet:
		return refsOf(w.Set.Members)
	case WriteChildren:
		return refsOf(w.Children)
	}
	return []Ref{w.Ref}
}

func refsOf(writes []Write) []Ref {
	refs := make([]Ref, len(writes))
	for i := range writes {
		refs[i] = writes[i].Ref
	}
	return refs
}

// Owner is the object whose end is the end of what it owns.
type Owner struct {
	Ref Ref `json:"ref"`
	// UID as it was seen; "" means that of the object that has the name.
	UID string `json:"uid,omitempty"`
}

// PatchType names the kind of a patch.
type PatchType string

const (
	// PatchMerge is a JSON merge patch (RFC 7396).
	PatchMerge PatchType = "merge"
	// PatchJSON is a list of JSON patch operations (RFC 6902).
	PatchJSON PatchType = "json"
	// PatchStrategic is a strategic merge patch; custom resources know none.
	PatchStrategic PatchType = "strategic"
	// PatchJQ is a jq program that turns the object into the new object.
	PatchJQ PatchType = "jq"
)

// Patch is a change of an object that is there.
type Patch struct {
	Type PatchType `json:"type"`
	// Body is plain JSON data: a map, for PatchJSON a list.
	Body any `json:"body,omitempty"`
	// Program is that of PatchJQ. It has compiled when the patch was recorded.
	Program string `json:"program,omitempty"`
	// Subresource is "" or, for example, "status" or "scale".
	Subresource string `json:"subresource,omitempty"`
}

// Unchanged is one state of an object.
type Unchanged struct {
	// ResourceVersion may be empty: any state of the object with this UID. Only a delete takes that.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// UID may be empty.
	UID string `json:"uid,omitempty"`
}

// Event is what an Event says.
type Event struct {
	// UID of the object that it is about; "" means that of the one that has the name.
	UID string `json:"uid,omitempty"`
	// Type is "Normal" or "Warning".
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Set is all that a set of objects is to consist of.
type Set struct {
	// Name as it is given; it is the hook's own.
	Name string `json:"name"`
	// Members are applies.
	Members []Write `json:"members"`
	// Keep has them stay when the hook or its module goes.
	Keep bool `json:"keep,omitempty"`
}
