package cluster

import (
	"context"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A place is where sets of a hook may have objects: those of a kind in all namespaces, in one of them, or one object
// where lists are not allowed. The namespace or name that it does not give is empty.

// kindOf is the widest place of an object, namespaceOf the one in its namespace.
func kindOf(ref effect.Ref) effect.Ref { return effect.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind} }

func namespaceOf(ref effect.Ref) effect.Ref {
	ref.Name = ""
	return ref
}

// reading is a place, and what is looked for in it.
type reading struct {
	effect.Ref
	refs []effect.Ref
}

// placesOf are the places in which objects, sorted, are read: one list of a kind, if it is of one namespace
// or spares many requests; where it was refused, one per namespace, and at last one per object.
func (w *Writer) placesOf(refs []effect.Ref) (out []reading) {
	in := map[effect.Ref]int{}
	for _, ref := range refs {
		in[kindOf(ref)]++
		if ref.Namespace != "" {
			in[namespaceOf(ref)]++
		}
	}
	for _, ref := range refs {
		p := ref
		switch kind, namespace := kindOf(ref), namespaceOf(ref); {
		case in[kind] > max(in[namespace], defaultSideBySide) && w.mayRead(kind):
			p = kind
		case in[namespace] > 1 && w.mayRead(namespace):
			p = namespace
		}
		if last := len(out) - 1; last >= 0 && out[last].Ref == p {
			out[last].refs = append(out[last].refs, ref)
		} else {
			out = append(out, reading{p, []effect.Ref{ref}})
		}
	}
	return out
}

// listAgain is how long a place that was refused is not asked for: rights may come at any time.
const listAgain = 30 * time.Second

func (w *Writer) mayRead(place effect.Ref) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.refused[place]) >= listAgain
}

// read hands out the objects with some labels that are in a place; one that is named, whatever labels it has, and nil if
// it is not there. That a place is refused is noted, so that nobody asks each time.
func (w *Writer) read(ctx context.Context, place effect.Ref, labels string, see func(ref effect.Ref, obj map[string]any)) error {
	c := w.o.Client
	if place.Name != "" {
		obj, err := c.Get(ctx, place)
		if err == nil {
			see(place, obj)
		}
		return w.noted(place, err)
	}
	m, err := c.Mapping(ctx, place.APIVersion, place.Kind)
	if err != nil {
		return err
	}
	_, err = c.Each(ctx, m, place.Namespace, metav1.ListOptions{LabelSelector: labels}, func(obj map[string]any) error {
		see(effect.RefOf(obj), obj)
		return nil
	})
	if missingResource(err) {
		return notServed(place.APIVersion, place.Kind)
	}
	return w.noted(place, c.Explain(err, "list", m, place.Namespace))
}

func (w *Writer) noted(place effect.Ref, err error) error {
	if notListed(err) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.refused[place] = time.Now()
	}
	return err
}

// notListed says that a place was refused.
func notListed(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}
