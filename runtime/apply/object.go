package apply

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/starling-operator/starling/runtime/object"
)

// Writer writes objects by server-side apply, with force: what it wants of an object is its manager's afterwards.
//
// It sends what an API server takes by no apply in another way: fields that the kind does not have are left out, with
// a warning; an object that cannot be applied, or that is invalid beside what others have written, is written whole.
// Errors are those of client-go, the one of the apply if the whole object is refused, too.
type Writer struct {
	Manager string
	// Before are the managers that have written for this one, with apply or without; itself without, as well. With the
	// first apply their fields become its own.
	Before []string
	// Wrote says of other managers that what they own of an object was written for this one; nil: of none.
	Wrote func(e metav1.ManagedFieldsEntry) bool
	// Copied says of other managers that they have made the object anew as it was, as by a backup: what they own beside
	// this one becomes its own, and the rest stays; nil: of none. It counts before Wrote.
	Copied func(e metav1.ManagedFieldsEntry) bool
	// Strict refuses an object with fields that its kind does not have.
	Strict bool
	// AsSeen applies to objects only as they were seen: one that others have changed since is the error Conflict, as it
	// always is where Apply writes in another way.
	AsSeen bool
	// DryRun has the API server answer and keep nothing.
	DryRun bool
	// Warn takes warnings as the API server words them; nil: nobody does.
	Warn func(text string)
}

const (
	// NoVersion is the version of no object: an apply with it makes one, and meets a conflict where one is.
	NoVersion = "1"
	// mostTries bounds how often one object is sent, each time with fewer fields.
	mostTries = 5
)

// Create makes an object. One that is there is left alone, and is the error AlreadyExists.
func (w Writer) Create(ctx context.Context, to dynamic.ResourceInterface, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body := Desired(want)
	body.SetResourceVersion(NoVersion)
	now, err := w.apply(ctx, to, body)
	switch {
	case apierrors.IsConflict(err):
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: want.GroupVersionKind().Group, Resource: strings.ToLower(want.GetKind())}, want.GetName())
	case !w.Strict && (cannotApply(err) || RefusesVersion(err)):
		return to.Create(ctx, Desired(want), metav1.CreateOptions{FieldManager: w.Manager, DryRun: w.dryRun()})
	}
	return now, err
}

// Object is an object that is there, and what is wanted of it.
type Object struct {
	Want, Live *unstructured.Unstructured
	// Whole is the object as it is written if it cannot be applied.
	Whole *unstructured.Unstructured
	// Was is what was wanted of it before; nil: not known.
	Was *unstructured.Unstructured
}

// Apply gives an object what is wanted of it. It returns Live itself when nothing had to be written.
func (w Writer) Apply(ctx context.Context, to dynamic.ResourceInterface, o Object) (*unstructured.Unstructured, error) {
	want := Desired(o.Want)
	if w.stands(o, want) {
		return o.Live, nil
	}
	live, err := w.claim(ctx, to, o.Live)
	if err != nil {
		return nil, err
	}
	want.SetUID(live.GetUID()) // no other object that has taken its name since
	if w.AsSeen {
		want.SetResourceVersion(live.GetResourceVersion())
	}
	now, err := w.apply(ctx, to, want)
	if w.Strict || !cannotApply(err) && !apierrors.IsInvalid(err) { // perhaps beside a field of others that excludes it
		return now, err
	}
	switch whole, failed := w.replace(ctx, to, o.Whole, live); {
	case apierrors.IsConflict(failed): // whoever writes to the object as it is then may succeed
		return nil, failed
	case failed != nil:
		return nil, err
	case w.DryRun || cannotApply(err):
		return whole, nil
	}
	want.SetResourceVersion("")
	return w.apply(ctx, to, want)
}

// stands says that an apply would leave an object as it is. A write without apply owns more than was wanted: that
// stands if nothing else is wanted now.
func (w Writer) stands(o Object, want *unstructured.Unstructured) bool {
	if !slices.ContainsFunc(o.Live.GetManagedFields(), w.before) {
		return Same(want.Object, o.Live.Object, w.Manager)
	}
	return o.Was != nil && reflect.DeepEqual(Desired(o.Was).Object, want.Object) && Holds(want.Object, o.Live.Object, w.Manager)
}

// before says whether the fields of an entry become the manager's.
func (w Writer) before(e metav1.ManagedFieldsEntry) bool {
	if e.Manager == w.Manager {
		return e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	}
	return e.Subresource == "" && (slices.Contains(w.Before, e.Manager) || w.Wrote != nil && w.Wrote(e) && !w.copied(e))
}

// copied says whether an entry has fields of all who had written the object.
func (w Writer) copied(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == Nobody || w.Copied != nil && w.Copied(e)
}

// Holds says whether live has the values of want, all of them the manager's. The manager may own more.
func Holds(want, live map[string]any, manager string) bool {
	owned := &Fields{APIVersion: want["apiVersion"], Set: map[string]any{}}
	for e := range Entries(live) {
		if e["manager"] == manager && effect.At[string](e, "subresource") == "" {
			owned.Set = Union(owned.Set, effect.At[map[string]any](e, "fieldsV1"))
		}
	}
	return comparison{Equal, true}.object(want, live, owned)
}

// Union is a, with what b has beside it.
func Union(a any, b map[string]any) map[string]any {
	of, _ := a.(map[string]any)
	out := maps.Clone(of)
	if out == nil {
		return b
	}
	for key, v := range b {
		more, is := v.(map[string]any)
		has, there := out[key]
		switch _, deeper := has.(map[string]any); {
		case !there:
			out[key] = v
		case is && deeper:
			out[key] = Union(has, more)
		}
	}
	return out
}

// Desired is a copy of an object without what the API server fills in, and without nulls.
func Desired(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: object.WithoutNulls(obj.Object)}
	for _, key := range []string{"managedFields", "creationTimestamp", "uid", "resourceVersion", "generation", "selfLink"} {
		unstructured.RemoveNestedField(out.Object, "metadata", key)
	}
	return out
}

// claim makes the manager's what was written for it without apply, and takes what it owns from nobody: the API server
// gives all fields of an object whose managedFields somebody has cleared to a manager of that name. So it does with a
// copy that somebody makes. Else fields that are wanted no more would stay.
func (w Writer) claim(ctx context.Context, to dynamic.ResourceInterface, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if w.DryRun {
		return live, nil
	}
	body, err := w.claims(live)
	return w.patch(ctx, to, live, types.JSONPatchType, body, err)
}

// patch writes to an object as it was seen. A body of nil writes nothing; err says why there is none.
func (w Writer) patch(
	ctx context.Context, to dynamic.ResourceInterface, live *unstructured.Unstructured,
	form types.PatchType, body []byte, err error,
) (*unstructured.Unstructured, error) {
	if err != nil || body == nil {
		return live, err
	}
	return to.Patch(ctx, live.GetName(), form, body, metav1.PatchOptions{FieldManager: w.Manager, DryRun: w.dryRun()})
}

// Nobody is the manager of fields that were there before the first apply.
const Nobody = "before-first-apply"

// claims is the JSON patch of managedFields; nil: they stay, or cannot be read.
func (w Writer) claims(live *unstructured.Unstructured) ([]byte, error) {
	next := live.DeepCopy()
	all, managers := next.GetManagedFields(), sets.New(w.Manager)
	for i, e := range all {
		if w.before(e) { // Helm 4 applies: its fields are taken as those that Helm 3 has written
			all[i].Operation = metav1.ManagedFieldsOperationUpdate
			managers.Insert(e.Manager)
		}
	}
	next.SetManagedFields(all)
	if csaupgrade.UpgradeManagedFields(next, managers, w.Manager) != nil {
		return nil, nil
	}
	entries := next.GetManagedFields()
	for _, own := range entries {
		for i, e := range entries {
			ours, theirs := &fieldpath.Set{}, &fieldpath.Set{}
			if own.Manager != w.Manager || own.Subresource != "" || !w.copied(e) || own.FieldsV1 == nil || e.FieldsV1 == nil ||
				ours.FromJSON(own.FieldsV1.GetRawReader()) != nil || theirs.FromJSON(e.FieldsV1.GetRawReader()) != nil {
				continue
			}
			if text, err := theirs.Difference(ours).ToJSON(); err == nil {
				entries[i].FieldsV1 = metav1.NewFieldsV1(string(text))
			}
		}
	}
	if reflect.DeepEqual(entries, live.GetManagedFields()) {
		return nil, nil
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
}

// apply sends an object, without the fields that its kind does not have.
func (w Writer) apply(ctx context.Context, to dynamic.ResourceInterface, body *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	force, unknown := true, ""
	if w.Strict {
		unknown = metav1.FieldValidationStrict
	}
	for try := 1; ; try++ {
		data, err := body.MarshalJSON()
		if err != nil {
			return nil, err
		}
		now, err := to.Patch(ctx, body.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: w.Manager, Force: &force, DryRun: w.dryRun(), FieldValidation: unknown})
		paths := undeclared(err)
		if len(paths) == 0 || try == mostTries || w.Strict {
			return now, err
		}
		for _, p := range paths {
			at, gone := drop(body.Object, p)
			if !gone {
				return now, err
			}
			if w.Warn != nil {
				w.Warn(`unknown field "` + strings.TrimPrefix(at, ".") + `"`)
			}
		}
	}
}

func (w Writer) dryRun() []string {
	if w.DryRun {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// cannotApply says that an object is of a kind without server-side apply, or that its lists have a key twice, which an
// apply cannot say.
func cannotApply(err error) bool {
	var api apierrors.APIStatus
	return TakesNoApply(err) || errors.As(err, &api) &&
		(strings.Contains(api.Status().Message, "typed patch object") || strings.Contains(api.Status().Message, "duplicate entries for key"))
}

// TakesNoApply says that an API server has no server-side apply for a kind.
func TakesNoApply(err error) bool {
	var api apierrors.APIStatus
	return errors.As(err, &api) && (api.Status().Code == http.StatusUnsupportedMediaType || api.Status().Code == http.StatusMethodNotAllowed)
}

// RefusesVersion says that an API server wants no version with an object that it makes: aggregated ones with a storage
// that is not that of Kubernetes. They have no reason for that, only words.
func RefusesVersion(err error) bool {
	var api apierrors.APIStatus
	return errors.As(err, &api) && versionRefused.MatchString(api.Status().Message)
}

var versionRefused = regexp.MustCompile(`(?i)resourceversion.*(should|must) not be set`)
