package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
)

// look is a request that reads an object before the manifest is there.
type look struct {
	done chan struct{}
	live *unstructured.Unstructured
	err  error
}

// lookAhead reads a few objects while the manifest is read.
func (r *repair) lookAhead() {
	if len(r.t.Only) > repairsSideBySide || r.m.o.Lifeless {
		return
	}
	r.looks = map[Key]*look{}
	for _, key := range r.t.Only {
		if r.gone[key] {
			continue
		}
		gvk := object{APIVersion: key.APIVersion, Kind: key.Kind}
		mapping, err := r.m.o.Mapper.RESTMapping(gvk.groupKind(), gvk.version())
		if err != nil || r.looks[key] != nil {
			continue // said when its turn comes
		}
		l := &look{done: make(chan struct{})}
		r.looks[key] = l
		go func() {
			defer close(l.done)
			l.live, l.err = r.m.dynamic.Resource(mapping.Resource).Namespace(key.Namespace).Get(r.ctx, key.Name, metav1.GetOptions{})
		}()
	}
}

// outcomeOf is how the repair of one object went.
type outcomeOf struct {
	key     Key
	seen    *Object // nil: it is not there, and need not be
	written bool
	edits   []owned.Edit
	waits   string
	// unserved: the kind is gone, with all its objects.
	unserved bool
	err      error
}

// one repairs an object. It does not look at one that is gone.
func (r *repair) one(s stored, gone bool) outcomeOf {
	out := outcomeOf{key: s.key}
	paths, _ := owned.Ignored(r.t.Ignore, s.key.APIVersion, s.key.Kind, s.key.Name)
	client := r.m.dynamic.Resource(s.mapping.Resource).Namespace(s.key.Namespace)
	var live *unstructured.Unstructured
	var err error
	if !gone {
		live, err = r.look(client, s.key)
	}
	missing := gone || apierrors.IsNotFound(err)
	switch {
	case missing:
		if runsOnce(s.obj) || r.t.Only == nil && s.obj.GroupVersionKind().GroupKind() == jobKind {
			return out
		}
		live, err = client.Create(r.ctx, s.obj, metav1.CreateOptions{FieldManager: FieldManager(), DryRun: r.dryRun()})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			out.waits = deletedNamespace(s.key.Namespace)
			return out
		}
		// Somebody was faster, or has taken off the label. A quota, or a port that is taken, may
		// be said before that.
		if gone && err != nil {
			return r.one(s, false)
		}
		if out.unserved = isUnserved(err); out.unserved {
			err = errUnserved(object{APIVersion: s.key.APIVersion, Kind: s.key.Kind, Namespace: s.key.Namespace, Name: s.key.Name})
		}
		out.written = err == nil
	case err == nil && live.GetDeletionTimestamp() != nil:
		out.waits = s.String() + " is being deleted"
		return out
	case err == nil:
		if err = r.belongs(live); err == nil {
			was := live
			if live, out.written, err = r.restore(client, s, live, paths); out.written {
				out.edits = owned.Edits(was, live, FieldManager())
			}
		}
	}
	if err != nil {
		out.err = err
		return out
	}
	seen := observe(s.key, live, paths)
	seen.Missing = missing && r.t.Report
	out.seen = &seen
	return out
}

// isUnserved says that what a write was answered means that there is no such kind. Other things
// are not found, too: the namespace, or the role of a binding.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "the server could not find the requested resource")
}

func (r *repair) look(client dynamic.ResourceInterface, key Key) (*unstructured.Unstructured, error) {
	if l := r.looks[key]; l != nil {
		<-l.done
		return l.live, l.err
	}
	return client.Get(r.ctx, key.Name, metav1.GetOptions{})
}

func (r *repair) dryRun() []string {
	if r.t.Report {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// belongs refuses an object that another release has taken over.
func (r *repair) belongs(live *unstructured.Unstructured) error {
	annotations := live.GetAnnotations()
	name, namespace := annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"]
	if name == "" || name == r.t.Name && (namespace == "" || namespace == r.t.Namespace) {
		return nil
	}
	return fmt.Errorf("it belongs to the helm release %s in namespace %s now: delete or rename one of the two", name, namespace)
}

// restore gives an object that is there its values, and says whether they were others. It
// returns the object as it is then.
func (r *repair) restore(client dynamic.ResourceInterface, s stored, live *unstructured.Unstructured, paths []owned.Path) (*unstructured.Unstructured, bool, error) {
	if r.t.Report && live.GetLabels()[effect.ReleasedByLabel] != r.m.o.Instance {
		var err error
		if live, err = r.relabel(client, s); err != nil {
			return nil, false, err
		}
	}
	fields := live.GetManagedFields()
	paths = append(paths[:len(paths):len(paths)], owned.HandedOver(fields)...)
	now, want, err := r.merge(client, s, live, paths)
	if err != nil {
		return nil, false, err
	}
	if _, ours := owned.Of(fields, FieldManager(), nil); !r.t.Report && (!ours || owned.Taken(now.GetManagedFields(), FieldManager(), want.Object, paths)) {
		// The next change of what is not owned would not be seen.
		if applied, err := r.own(client, s, now, paths); err == nil {
			now = applied
		}
	}
	return now, !sameValues(live, now), nil
}

// mostMerges is how often a repair writes an object that others change meanwhile.
const mostMerges = 3

// merge writes what differs of an object, and returns it as it is then, and what was wanted. Between the read and
// the write somebody may have taken away a field that was right when it was read: the answer lacks it, and would
// be taken for what Starling has left.
func (r *repair) merge(client dynamic.ResourceInterface, s stored, now *unstructured.Unstructured, paths []owned.Path) (_, want *unstructured.Unstructured, err error) {
	var last []byte
	for tries := 0; ; tries++ {
		want = s.obj.DeepCopy()
		owned.Leave(s.obj.DeepCopy().Object, want.Object, now.Object, paths)
		patch, kind, err := threeWay(s, want, now)
		if err != nil {
			return nil, nil, err
		}
		// Of what was just written the API server has kept another form, or nothing.
		if string(patch) == "{}" || last != nil && within(last, patch) {
			return now, want, nil
		}
		if tries == mostMerges {
			return nil, nil, errors.New("somebody changes it again and again at this very moment")
		}
		last = patch
		if patch, err = of(now, patch); err != nil {
			return nil, nil, err
		}
		now, err = client.Patch(r.ctx, s.key.Name, kind, patch, metav1.PatchOptions{FieldManager: FieldManager(), DryRun: r.dryRun()})
		if err != nil {
			return nil, nil, err
		}
		if r.t.Report { // nothing was written
			return now, want, nil
		}
	}
}

// relabel writes the label by which an object is watched.
func (r *repair) relabel(client dynamic.ResourceInterface, s stored) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{effect.ReleasedByLabel: r.m.o.Instance}}})
	if err != nil {
		return nil, err
	}
	return client.Patch(r.ctx, s.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager()})
}

// own applies an object, so that its fields are Starling's again. Some objects that Helm can
// write cannot be applied, such as those that name a port twice: the error says so.
func (r *repair) own(client dynamic.ResourceInterface, s stored, live *unstructured.Unstructured, paths []owned.Path) (*unstructured.Unstructured, error) {
	want := s.obj.DeepCopy()
	owned.Leave(s.obj.DeepCopy().Object, want.Object, live.Object, paths)
	owned.Keep(want.Object, nil, owned.Apart(live.GetManagedFields(), paths))
	want.SetUID(live.GetUID())
	data, err := want.MarshalJSON()
	if err != nil {
		return nil, err
	}
	force := true
	return client.Patch(r.ctx, s.key.Name, types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: FieldManager(), Force: &force})
}

// sameValues compares two states of an object without what Starling and the API server note of it.
func sameValues(a, b *unstructured.Unstructured) bool {
	plain := func(u *unstructured.Unstructured) map[string]any {
		u = u.DeepCopy()
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
		delete(u.Object, "status") // others write it meanwhile
		labels := u.GetLabels()
		delete(labels, effect.ReleasedByLabel)
		u.SetLabels(labels)
		return u.Object
	}
	return reflect.DeepEqual(plain(a), plain(b))
}
