package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight is what was there of a member before its set was applied.
type sight struct {
	// live is the object, without its content if it carries the label of the set; nil: it
	// was not found.
	live map[string]any
	// certain says that the object itself was asked for: a list does not show one that has
	// lost its label.
	certain bool
	// made says that the hook has made the object for this set.
	made bool
	// same says that an apply would leave the object as it is.
	same bool
}

func sightOf(marks setMarks, obj map[string]any, certain bool) sight {
	s := sight{live: obj, certain: certain}
	if obj != nil {
		s.made = marks.made(obj)
		if textOf(obj, "labels", SetLabel) == marks.id {
			s.live = slim(obj)
		}
	}
	return s
}

// created is a time that can be compared as a text.
func (s sight) created() string {
	return effect.At[string](s.live, "metadata", "creationTimestamp")
}

// reading is one request for members of one kind: a list, or one object.
type reading struct {
	mapping   Mapping
	namespace string // of a list, "" for all
	single    bool
	refs      []effect.Ref
}

// place is where a list was refused.
type place struct {
	mapping   Mapping
	namespace string
}

// look reads what is there of members that are known: many of one kind with one list. See is
// told of each, and of those that were not found. Members that may not be read, or are not
// served, are missing: their write meets the reason.
func (w *Writer) look(ctx context.Context, id string, known []member, see func(ref effect.Ref, obj map[string]any, certain bool)) error {
	readings, err := w.readings(ctx, known)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for len(readings) > 0 {
		var narrower []reading
		err := apply.SideBySide(len(readings), w.o.SideBySide, func(i int) error {
			r := readings[i]
			if r.single {
				return w.readOne(ctx, r.refs[0], see)
			}
			allowed, err := w.readList(ctx, id, r, see)
			if allowed || err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			w.refused(r.mapping, r.namespace)
			narrower = append(narrower, w.narrow(r.mapping, r.refs)...)
			return nil
		})
		if err != nil {
			return err
		}
		readings = narrower
	}
	return nil
}

// readings splits members, sorted, into requests.
func (w *Writer) readings(ctx context.Context, known []member) ([]reading, error) {
	var out []reading
	for len(known) > 0 {
		first := known[0].Ref
		var refs []effect.Ref
		for len(known) > 0 && known[0].APIVersion == first.APIVersion && known[0].Kind == first.Kind {
			refs, known = append(refs, known[0].Ref), known[1:]
		}
		m, err := w.o.Client.Mapping(ctx, first.APIVersion, first.Kind)
		switch {
		case errors.Is(err, ErrNotServed):
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, w.narrow(m, refs)...)
	}
	return out, nil
}

// narrow returns the requests for members of one kind: one list, if it is of one namespace
// or spares many requests; where it was refused, one per namespace, and at last one per
// object.
func (w *Writer) narrow(m Mapping, refs []effect.Ref) []reading {
	in := map[string][]effect.Ref{}
	var namespaces []string
	for _, ref := range refs {
		ns := ref.Namespace
		if !m.Namespaced {
			ns = ""
		}
		if in[ns] == nil {
			namespaces = append(namespaces, ns)
		}
		in[ns] = append(in[ns], ref)
	}
	if len(namespaces) > 1 {
		if len(refs) > defaultSideBySide && w.mayList(m, "") {
			return []reading{{mapping: m, refs: refs}}
		}
		var out []reading
		for _, ns := range namespaces {
			out = append(out, w.narrow(m, in[ns])...)
		}
		return out
	}
	if len(refs) > 1 && w.mayList(m, namespaces[0]) {
		return []reading{{mapping: m, namespace: namespaces[0], refs: refs}}
	}
	out := make([]reading, len(refs))
	for i := range refs {
		out[i] = reading{mapping: m, single: true, refs: refs[i : i+1]}
	}
	return out
}

func (w *Writer) mayList(m Mapping, namespace string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.unlisted[place{m, namespace}]) >= listAgain
}

// listAgain is how long a list that was refused is not asked for: rights may come at any time.
const listAgain = 30 * time.Second

// refused notes that a list is not allowed, so that nobody asks each time.
func (w *Writer) refused(m Mapping, namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlisted[place{m, namespace}] = time.Now()
}

func (w *Writer) readOne(ctx context.Context, ref effect.Ref, see func(effect.Ref, map[string]any, bool)) error {
	obj, err := w.o.Client.Get(ctx, ref)
	switch {
	case errors.Is(err, ErrNotServed), apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return err
	}
	see(ref, obj, true)
	return nil
}

// readList returns false when such a list is refused.
func (w *Writer) readList(ctx context.Context, id string, r reading, see func(effect.Ref, map[string]any, bool)) (allowed bool, err error) {
	type name struct{ namespace, name string }
	missing := make(map[name]effect.Ref, len(r.refs))
	for _, ref := range r.refs {
		at := name{ref.Namespace, ref.Name}
		if !r.mapping.Namespaced {
			at.namespace = ""
		}
		missing[at] = ref
	}
	_, err = w.o.Client.Each(ctx, r.mapping, r.namespace, metav1.ListOptions{LabelSelector: SetLabel + "=" + id}, func(obj map[string]any) error {
		found := effect.RefOf(obj)
		at := name{found.Namespace, found.Name}
		if ref, ok := missing[at]; ok {
			delete(missing, at)
			see(ref, obj, false)
		}
		return nil
	})
	switch {
	case notListed(err):
		return false, nil
	case missingResource(err):
		return true, nil
	case err != nil:
		return true, w.o.Client.Explain(err, "list", r.mapping, r.namespace)
	}
	for _, ref := range missing {
		see(ref, nil, false)
	}
	return true, nil
}

// notListed says that a list was refused.
func notListed(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}
