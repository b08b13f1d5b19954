package release

import (
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/apply"
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
	if len(r.t.Only) > repairsSideBySide || r.m.o.Await != nil {
		return
	}
	r.looks = map[Key]*look{}
	for _, key := range r.t.Only {
		if r.gone.Has(key) {
			continue
		}
		gvk := chart.Object{Ref: key}.GVK()
		mapping, err := r.m.o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
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
	left    []owned.Edit
	waits   string
	// unserved: the kind is gone, with all its objects.
	unserved bool
	err      error
}

// one repairs an object. It does not look at one that is gone.
func (r *repair) one(s stored, gone bool) outcomeOf {
	out := outcomeOf{key: s.key}
	if s.moved {
		s.obj.SetAPIVersion(s.key.APIVersion)
	}
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
		live, err = r.writer(s).Create(r.ctx, client, s.obj)
		switch {
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			out.waits = deletedNamespace(s.key.Namespace)
			return out
		case err != nil && strings.Contains(err.Error(), definitionTerminating):
			out.waits = deletedDefinition(s.mapping.Resource.GroupResource().String())
			return out
		}
		// Somebody was faster, or has taken off the label. A quota, or a port that is taken, may be said before that.
		if gone && err != nil {
			return r.one(s, false)
		}
		if out.unserved = isUnserved(err); out.unserved {
			err = errUnserved(chart.Object{Ref: s.key})
		}
		out.written = err == nil
	case err == nil && live.GetDeletionTimestamp() != nil:
		out.waits = s.String() + " is being deleted"
		return out
	case err == nil:
		if by := r.t.Ref().holderOf(live); by != "" {
			err = fmt.Errorf("it belongs to %s now: delete or rename one of the two", by)
		} else {
			live, err = r.restore(client, s, live, paths, &out)
		}
	}
	if err != nil && s.moved {
		err = fmt.Errorf("%w; the version of the chart is served no more: write apiVersion: %s", err, s.key.APIVersion)
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

// definitionTerminating are the words of the API server, which has no reason for it, where an object cannot be made.
const definitionTerminating = "create not allowed while custom resource definition is terminating"

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

// writer writes an object of a version that is served no more as one of another version, if that one has all of its
// fields.
func (r *repair) writer(s stored) apply.Writer {
	w := r.m.writer(nil)
	w.DryRun, w.Strict = r.t.Report, s.moved
	return w
}

// restore gives an object that is there its values, and says whether they were others, and whose. It returns the object
// as it is then.
func (r *repair) restore(
	client dynamic.ResourceInterface, s stored, live *unstructured.Unstructured, paths []owned.Path, out *outcomeOf,
) (now *unstructured.Unstructured, err error) {
	if r.t.Report && live.GetLabels()[effect.ReleasedByLabel] != r.m.o.Instance {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, effect.ReleasedByLabel, r.m.o.Instance)
		live, err = client.Patch(r.ctx, s.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if err != nil {
			return nil, err
		}
	}
	c := change{ref: r.t.Ref(), s: s, was: s.obj, live: live, ignore: paths, ran: r.ran}
	now, left, err := c.apply(r.ctx, r.writer(s), client)
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		if s.ignored(r.t.Ignore, e.Path) {
			continue
		}
		if _, told := r.m.told.LoadOrStore(fmt.Sprint(r.t.Ref(), s.key, e.Path, e.By), nil); !told {
			out.left = append(out.left, e)
		}
	}
	if out.written = !sameValues(c.live, now); out.written {
		out.edits = owned.Edits(c.live, now, FieldManager)
	}
	return now, nil
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
