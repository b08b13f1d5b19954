package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// The objects of sets say themselves whose they are. A process that begins has to find them once, by
// the label of their hook: also those of kinds and namespaces that the hook does not name any more. So
// a Secret for each hook, not for each set, names the places where its sets may have objects.
// It is written before the first object in a new place.

// manyNamespaces is how many namespaces of a kind are listed one by one.
const manyNamespaces = 8

// standing is what this process knows of a place.
type standing int

const (
	// placeUnread: what was there before it began is not known yet.
	placeUnread standing = iota
	// placeDenied: an earlier process has recorded it, and this one may not read it.
	placeDenied
	// placeKnown: all is known that was there.
	placeKnown
)

// hookSets is what is known of the sets of one hook.
type hookSets struct {
	writer  *Writer
	manager string
	// Guarded by the writer's mutex:
	users int             // who apply or remove its sets
	sets  map[string]*set // by name
	goes  bool            // the record tells of a set that goes with the hook

	mu sync.Mutex // one who reads or writes places at a time
	// places are the recorded ones.
	places map[effect.Ref]standing
	// certain says that the record says just this.
	certain bool
	// untidy says that the record may name places without objects: an earlier process may have
	// ended before it could shorten it, or the write has failed.
	untidy bool
	broken error
}

// enter makes sure that all members of a set may be found after a crash, and returns what the set
// may have made before.
func (h *hookSets) enter(ctx context.Context, s *set, a *applying) (map[effect.Ref]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.read(ctx, a); err != nil {
		return nil, err
	}
	next := maps.Clone(h.places)
	if err := h.widen(ctx, next, a); err != nil {
		return nil, err
	}
	goes := h.goes || len(a.asked) > 0 && !a.write.Set.Keep
	if err := h.record(ctx, next, goes); err != nil {
		return nil, err
	}
	before := h.writer.knownOf(s)
	all := maps.Clone(before)
	for ref := range a.asked {
		all[ref] = before[ref]
		if h.places[kindOf(ref)] == placeDenied || h.places[namespaceOf(ref)] == placeDenied {
			before[ref] = all[ref] // an earlier process may have made it
		}
	}
	h.writer.remember(s, all)
	return before, nil
}

// read takes in what was there before this process began, once. An earlier process may have had wider rights: an
// apply goes on without the places that it may not read, since it reads its members by name; a removal does not.
func (h *hookSets) read(ctx context.Context, a *applying) error {
	if h.broken != nil {
		return h.broken
	}
	var unread []effect.Ref
	for p, is := range h.places {
		if is != placeKnown && (a == nil || is == placeUnread || h.writer.mayRead(p)) {
			unread = append(unread, p)
		}
	}
	slices.SortFunc(unread, effect.Ref.Compare)
	var mu sync.Mutex
	return apply.SideBySide(len(unread), h.writer.o.SideBySide, func(i int) error {
		p := unread[i]
		err := h.readPlace(ctx, p, a)
		if errors.Is(err, ErrNotServed) {
			return nil // it may be served again, with its objects
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			h.places[p] = placeKnown
		case a == nil || !notListed(err):
			return fmt.Errorf("%w (sets of this hook may have objects there)", err)
		case h.places[p] == placeUnread:
			h.places[p] = placeDenied
			h.writer.o.Warn(h.manager, fmt.Sprintf("%v; an earlier process was allowed to: what it made there, and sets of this hook list no more, stays until Starling has this right", err))
		}
		return nil
	})
}

// readPlace takes in the members of the hook's sets that are in a place. Those of the set that is
// being applied, if any, are seen.
func (h *hookSets) readPlace(ctx context.Context, p effect.Ref, a *applying) error {
	w := h.writer
	return w.read(ctx, p, hookLabel+"="+w.hookID(h.manager), func(ref effect.Ref, obj map[string]any) {
		name, ok := w.nameOf(h.manager, obj)
		if !ok {
			return
		}
		if a != nil && a.marks.name == name {
			a.see(ctx, ref, obj, p.Name != "")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		s := h.set(name)
		if _, known := s.members[ref]; !known {
			s.members[ref] = uidOf(obj)
		}
		if s.at == 0 { // not applied by this process
			s.keeps = s.keeps || textOf(obj, "annotations", keepAnnotation) != ""
		}
	})
}

// widen adds the places of members that are not in places. A list is tried, since it has to be possible when
// the next process begins.
func (h *hookSets) widen(ctx context.Context, places map[effect.Ref]standing, a *applying) error {
	in := namespacesOf(slices.AppendSeq(slices.Collect(maps.Keys(places)), maps.Keys(a.asked)))
	for _, m := range a.members {
		if _, is := placeIn(places, m.Ref); is {
			continue
		}
		kind, namespace, at := kindOf(m.Ref), namespaceOf(m.Ref), m.Ref // its write meets why it is not listed
		for _, p := range []effect.Ref{kind, namespace} {
			if p != namespace && len(in[kind]) <= manyNamespaces || !h.writer.mayRead(p) {
				continue
			}
			err := h.readPlace(ctx, p, a)
			if err == nil || p == namespace && errors.Is(err, ErrNotServed) { // its definition may be a member
				at = p
				break
			}
			if !notListed(err) && !errors.Is(err, ErrNotServed) {
				return err
			}
		}
		if at == kind {
			maps.DeleteFunc(places, func(p effect.Ref, _ standing) bool { return kindOf(p) == kind })
		}
		places[at] = placeKnown
	}
	return nil
}

// namespacesOf are the namespaces of some objects or places, by kind.
func namespacesOf(refs []effect.Ref) map[effect.Ref]map[string]bool {
	out := map[effect.Ref]map[string]bool{}
	for _, ref := range refs {
		if out[kindOf(ref)] == nil {
			out[kindOf(ref)] = map[string]bool{}
		}
		out[kindOf(ref)][ref.Namespace] = true
	}
	return out
}

// placeIn is the place in which an object is found by the next process: none that this one may not read.
func placeIn(places map[effect.Ref]standing, ref effect.Ref) (p effect.Ref, is bool) {
	for _, p := range []effect.Ref{kindOf(ref), namespaceOf(ref), ref} {
		if how, is := places[p]; is && how != placeDenied {
			return p, true
		}
	}
	return effect.Ref{}, false
}

// tidy drops the places in which no set has objects any more, and narrows those that are wider than
// needed, when objects have gone. All places have been read.
func (h *hookSets) tidy(ctx context.Context, gone bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.untidy = h.untidy || gone; !h.untidy {
		return nil
	}
	next, goes := map[effect.Ref]standing{}, false
	for p, is := range h.places {
		if is != placeKnown {
			next[p], goes = is, h.goes
		}
	}
	var members []effect.Ref
	h.writer.mu.Lock()
	for _, s := range h.sets {
		goes = goes || len(s.members) > 0 && !s.keeps
		members = slices.AppendSeq(members, maps.Keys(s.members))
	}
	h.writer.mu.Unlock()
	in := namespacesOf(members)
	for _, ref := range members {
		p, is := placeIn(h.places, ref)
		if p == kindOf(ref) && len(in[p]) <= manyNamespaces/2 {
			p = namespaceOf(ref)
		}
		if is {
			next[p] = placeKnown
		}
	}
	err := h.record(ctx, next, goes)
	h.untidy = err != nil
	return err
}

// record writes down where sets may have objects, if that is not so already.
func (h *hookSets) record(ctx context.Context, places map[effect.Ref]standing, goes bool) error {
	all := slices.SortedFunc(maps.Keys(places), effect.Ref.Compare)
	recorded := slices.SortedFunc(maps.Keys(h.places), effect.Ref.Compare)
	if h.certain && slices.Equal(all, recorded) && (goes == h.goes || len(all) == 0) {
		h.places = places
		return nil
	}
	h.certain = false // until it is known what is stored
	if err := h.writer.writeRecord(ctx, h.manager, all, !goes); err != nil {
		return err
	}
	h.places, h.certain = places, true
	h.writer.mu.Lock()
	defer h.writer.mu.Unlock()
	h.goes = goes && len(all) > 0
	return nil
}

// A place is where sets of a hook may have objects: those of a kind in all namespaces, in one of them, or one object
// where lists are not allowed. The namespace or name that it does not give is empty.

// kindOf is the widest place of an object, namespaceOf the one in its namespace.
func kindOf(ref effect.Ref) effect.Ref { return effect.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind} }

func namespaceOf(ref effect.Ref) effect.Ref {
	ref.Name = ""
	return ref
}

// placesOf are the places in which objects are read, and which ones in each: one list of a kind, if it is of one
// namespace or spares many requests; where it was refused, one per namespace, and at last one per object.
func (w *Writer) placesOf(refs []effect.Ref) map[effect.Ref][]effect.Ref {
	out := map[effect.Ref][]effect.Ref{}
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
		out[p] = append(out[p], ref)
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
