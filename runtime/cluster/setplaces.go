package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The objects of sets say themselves whose they are. A process that begins has to find them once, by
// the label of their hook: also those of kinds and namespaces that the hook does not name any more. So
// a Secret for each hook, not for each set, names the places where its sets may have objects.
// It is written before the first object in a new place.

// setPlace is where sets of a hook may have objects: those of a kind in one namespace, in all of
// them, or one object where lists are not allowed.
type setPlace struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is "" for all, and for kinds that are in none.
	Namespace string `json:"namespace,omitempty"`
	// Name is "" where objects are listed.
	Name string `json:"name,omitempty"`
}

// manyNamespaces is how many namespaces of a kind are listed one by one.
const manyNamespaces = 8

// hookSets is what is known of the sets of one hook.
type hookSets struct {
	writer  *Writer
	manager string
	users   int // who apply or remove its sets; guarded by the writer's mutex

	mu sync.Mutex // one who reads or writes places at a time
	// places are the recorded ones; true: this process knows what was there before it began.
	places map[setPlace]bool
	// refused are places of an earlier process that this one may not read, and when it was told so last.
	refused map[setPlace]time.Time
	// goes says that the record tells of a set that goes with the hook.
	goes bool
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
	known := h.writer.knownOf(s)
	all := maps.Clone(known)
	for ref := range a.asked {
		all[ref] = known[ref]
		if h.mayBeThere(ref) {
			known[ref] = all[ref]
		}
	}
	h.writer.remember(s, all)
	return known, nil
}

// read takes in what was there before this process began, once. An earlier process may have had wider rights: an
// apply goes on without the places that it may not read, since it reads its members by name; a removal does not.
func (h *hookSets) read(ctx context.Context, a *applying) error {
	if h.broken != nil {
		return h.broken
	}
	var unread []setPlace
	for p, read := range h.places {
		if !read && (a == nil || time.Since(h.refused[p]) >= listAgain) {
			unread = append(unread, p)
		}
	}
	slices.SortFunc(unread, func(a, b setPlace) int { return compareRefs(effect.Ref(a), effect.Ref(b)) })
	var mu sync.Mutex
	return apply.SideBySide(len(unread), h.writer.o.SideBySide, func(i int) error {
		p := unread[i]
		err := h.readPlace(ctx, p, a)
		if errors.Is(err, ErrNotServed) {
			return nil // it may be served again, with its objects
		}
		if a != nil && notListed(err) {
			mu.Lock()
			defer mu.Unlock()
			if h.refused[p].IsZero() {
				h.writer.o.Warn(h.manager, fmt.Sprintf("%v; an earlier process was allowed to: what it made there, and sets of this hook list no more, stays until Starling has this right", err))
			}
			h.refused[p] = time.Now()
			if m, err := h.writer.o.Client.Mapping(ctx, p.APIVersion, p.Kind); err == nil && p.Name == "" {
				h.writer.refused(m, p.Namespace)
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w (sets of this hook may have objects there)", err)
		}
		mu.Lock()
		defer mu.Unlock()
		h.places[p] = true
		delete(h.refused, p)
		return nil
	})
}

// mayBeThere says that an earlier process may have made the object, in a place that this one may not read.
func (h *hookSets) mayBeThere(ref effect.Ref) bool {
	for p := range h.refused {
		if p.APIVersion == ref.APIVersion && p.Kind == ref.Kind && (p.Namespace == "" || p.Namespace == ref.Namespace) && p.Name == "" {
			return true
		}
	}
	return false
}

// readPlace takes in the members of the hook's sets that are in a place. Those of the set that is
// being applied, if any, are seen.
func (h *hookSets) readPlace(ctx context.Context, p setPlace, a *applying) error {
	w := h.writer
	m, err := w.o.Client.Mapping(ctx, p.APIVersion, p.Kind)
	if err != nil {
		return err
	}
	type found struct {
		name    string
		keeps   bool
		members []member
	}
	sets := map[string]*found{}
	take := func(obj map[string]any) error {
		name, ok := w.nameOf(h.manager, obj)
		if !ok {
			return nil
		}
		id, ref := w.setID(h.manager, name), effect.RefOf(obj)
		if sets[id] == nil {
			sets[id] = &found{name: name}
		}
		sets[id].members = append(sets[id].members, member{ref, uidOf(obj)})
		sets[id].keeps = sets[id].keeps || textOf(obj, "annotations", keepAnnotation) != ""
		if a != nil && a.marks.id == id {
			a.see(ctx, ref, obj, p.Name != "")
		}
		return nil
	}
	if p.Name != "" {
		obj, err := w.o.Client.Get(ctx, effect.Ref(p))
		if err != nil {
			return err
		}
		if obj != nil {
			_ = take(obj)
		}
	} else if _, err := w.o.Client.Each(ctx, m, p.Namespace, metav1.ListOptions{LabelSelector: hookLabel + "=" + w.hookID(h.manager)}, take); err != nil {
		if missingResource(err) {
			return notServed(p.APIVersion, p.Kind)
		}
		return w.o.Client.Explain(err, "list", m, p.Namespace)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, f := range sets {
		s, all := w.setIn(id), map[effect.Ref]string{}
		for _, m := range slices.Concat(f.members, s.members) {
			all[m.Ref] = m.UID
		}
		s.members = membersOf(all)
		if s.at == 0 { // not applied by this process
			s.manager, s.name, s.keeps = h.manager, f.name, s.keeps || f.keeps
		}
	}
	return nil
}

// widen adds the places of members that are not in places.
func (h *hookSets) widen(ctx context.Context, places map[setPlace]bool, a *applying) error {
	type kind struct{ apiVersion, kind string }
	added := map[kind][]effect.Ref{}
	for _, m := range a.write.Set.Members {
		if _, is := h.placeOf(places, m.Ref); !is {
			k := kind{m.Ref.APIVersion, m.Ref.Kind}
			added[k] = append(added[k], m.Ref)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(added), func(a, b kind) int { return strings.Compare(a.kind+" "+a.apiVersion, b.kind+" "+b.apiVersion) }) {
		if err := h.widenKind(ctx, places, added[k], a); err != nil {
			return err
		}
	}
	return nil
}

// widenKind adds the places of objects of one kind. A list is tried, since it has to be possible when
// the next process begins.
func (h *hookSets) widenKind(ctx context.Context, places map[setPlace]bool, refs []effect.Ref, a *applying) error {
	w, kind := h.writer, setPlace{APIVersion: refs[0].APIVersion, Kind: refs[0].Kind}
	m, err := w.o.Client.Mapping(ctx, kind.APIVersion, kind.Kind)
	unserved := errors.Is(err, ErrNotServed) // its definition may be a member
	if err != nil && !unserved {
		return err
	}
	add := func(p setPlace) (bool, error) {
		if unserved {
			places[p] = true
			return true, nil
		}
		if !w.mayList(m, p.Namespace) {
			return false, nil
		}
		err := h.readPlace(ctx, p, a)
		switch {
		case notListed(err):
			w.refused(m, p.Namespace)
			return false, nil
		case err != nil:
			return false, err
		}
		places[p] = true
		return true, nil
	}
	namespaces := map[string]bool{}
	for p := range places {
		if p.APIVersion == kind.APIVersion && p.Kind == kind.Kind {
			namespaces[p.Namespace] = true
		}
	}
	for _, ref := range refs {
		namespaces[ref.Namespace] = true
	}
	if len(namespaces) > manyNamespaces && !unserved {
		added, err := add(kind)
		if err != nil {
			return err
		}
		if added {
			maps.DeleteFunc(places, func(p setPlace, _ bool) bool {
				return p != kind && p.APIVersion == kind.APIVersion && p.Kind == kind.Kind
			})
			return nil
		}
	}
	for _, ref := range refs {
		if _, is := h.placeOf(places, ref); is {
			continue
		}
		p := kind
		if m.Namespaced || unserved {
			p.Namespace = ref.Namespace
		}
		added, err := add(p)
		if err != nil {
			return err
		}
		if !added {
			p.Name = ref.Name
			places[p] = true
			delete(h.refused, p) // its write meets the reason
		}
	}
	return nil
}

// placeOf is the place in which an object is found by the next process: none that this one may not read.
func (h *hookSets) placeOf(places map[setPlace]bool, ref effect.Ref) (p setPlace, is bool) {
	for _, p := range []setPlace{
		{ref.APIVersion, ref.Kind, "", ""}, {ref.APIVersion, ref.Kind, ref.Namespace, ""},
		{ref.APIVersion, ref.Kind, ref.Namespace, ref.Name}, {ref.APIVersion, ref.Kind, "", ref.Name},
	} {
		if _, is := places[p]; is && h.refused[p].IsZero() {
			return p, true
		}
	}
	return setPlace{}, false
}

// tidy drops the places in which no set has objects any more, and narrows those that are wider than
// needed, when objects have gone. All places have been read.
func (h *hookSets) tidy(ctx context.Context, gone bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.untidy = h.untidy || gone; !h.untidy {
		return nil
	}
	next, goes := map[setPlace]bool{}, false
	for p, read := range h.places {
		if !read {
			next[p], goes = false, h.goes
		}
	}
	namespaces := map[setPlace]map[string]bool{}
	h.writer.mu.Lock()
	for _, s := range h.writer.sets {
		if s.manager != h.manager {
			continue
		}
		goes = goes || len(s.members) > 0 && !s.keeps
		for _, m := range s.members {
			p, is := h.placeOf(h.places, m.Ref)
			if !is {
				continue
			}
			if namespaces[p] == nil {
				namespaces[p] = map[string]bool{}
			}
			namespaces[p][m.Namespace] = true
		}
	}
	h.writer.mu.Unlock()
	for p, in := range namespaces {
		if p.Namespace != "" || p.Name != "" || in[""] || len(in) > manyNamespaces/2 {
			next[p] = true
			continue
		}
		for ns := range in {
			next[setPlace{p.APIVersion, p.Kind, ns, ""}] = true
		}
	}
	err := h.record(ctx, next, goes)
	h.untidy = err != nil
	return err
}

// record writes down where sets may have objects, if that is not so already.
func (h *hookSets) record(ctx context.Context, places map[setPlace]bool, goes bool) error {
	names := func(places map[setPlace]bool) []setPlace {
		return slices.SortedFunc(maps.Keys(places), func(a, b setPlace) int { return compareRefs(effect.Ref(a), effect.Ref(b)) })
	}
	all := names(places)
	if h.certain && slices.Equal(all, names(h.places)) && (goes == h.goes || len(all) == 0) {
		h.places = places
		return nil
	}
	h.certain = false // until it is known what is stored
	if err := h.writer.writeRecord(ctx, h.manager, all, !goes); err != nil {
		return err
	}
	h.places, h.goes, h.certain = places, goes && len(all) > 0, true
	return nil
}
