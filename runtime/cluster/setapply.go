package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/effect"
)

// applying is one apply of a set.
type applying struct {
	writer  *Writer
	marks   setMarks
	write   effect.Write
	members []effect.Write
	asked   map[effect.Ref]effect.Write // the members
	known   map[effect.Ref]string       // the uids of what the set may have made
	owner   map[string]any              // the entry of ownerReferences that all get; nil: none

	mu   sync.Mutex // lists are read side by side
	seen map[effect.Ref]sight
}

func (w *Writer) applying(ctx context.Context, manager string, wr effect.Write) *applying {
	a := &applying{
		writer: w, marks: w.marksOf(manager, wr.Set.Name, wr.Set.Keep), write: wr, members: slices.Clone(wr.Set.Members),
		asked: make(map[effect.Ref]effect.Write, len(wr.Set.Members)), seen: map[effect.Ref]sight{},
	}
	for i := range a.members {
		m := &a.members[i]
		if kind, err := w.o.Client.Mapping(ctx, m.Ref.APIVersion, m.Ref.Kind); err == nil && !kind.Namespaced && m.Ref.Namespace != "" {
			var metadata map[string]any // as lists show it
			m.Ref.Namespace = ""
			m.Object, metadata = effect.WithMetadata(m.Object)
			delete(metadata, "namespace")
		}
		a.asked[m.Ref] = *m
	}
	return a
}

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

// created is a time that can be compared as a text.
func (s sight) created() string {
	return effect.At[string](s.live, "metadata", "creationTimestamp")
}

// see notes an object of the set that was found.
func (a *applying) see(ctx context.Context, ref effect.Ref, obj map[string]any, certain bool) {
	s := sight{live: obj, certain: certain}
	if obj != nil {
		s.made = a.marks.made(obj)
		if m, listed := a.asked[ref]; listed {
			p, err := a.begin(ctx, m)
			s.same = err == nil && p.stands(obj)
		}
		if textOf(obj, "labels", SetLabel) == a.marks.id {
			s.live = slim(obj)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[ref] = s
}

// look reads what is there of members that are known and not seen: many of one kind with one list. Those that may not be
// read, or are not served, are missing: their write meets the reason.
func (a *applying) look(ctx context.Context) error {
	w, unread := a.writer, []effect.Ref{}
	for ref := range a.known {
		if _, seen := a.seen[ref]; !seen {
			unread = append(unread, ref)
		}
	}
	for len(unread) > 0 {
		sought := w.placesOf(unread)
		places := slices.SortedFunc(maps.Keys(sought), effect.Ref.Compare)
		unread = nil
		err := apply.SideBySide(len(places), w.o.SideBySide, func(i int) error {
			p := places[i]
			err := w.read(ctx, p, SetLabel+"="+a.marks.id, func(ref effect.Ref, obj map[string]any) { a.see(ctx, ref, obj, p.Name != "") })
			switch {
			case errors.Is(err, ErrNotServed):
				return nil
			case !notListed(err):
				return err
			case p.Name == "":
				a.mu.Lock()
				defer a.mu.Unlock()
				unread = append(unread, sought[p]...)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// apply applies the members that are not as they should be, and returns the uids of all
// that are now. One that is refused holds up no other.
func (a *applying) apply(ctx context.Context) (now map[effect.Ref]string, refused, err error) {
	w, members := a.writer, a.members
	if err := a.look(ctx); err != nil {
		return nil, nil, err
	}
	uids := make([]string, len(members))
	errs, err := w.order(ctx, false).Each(len(members), func(i int) string { return members[i].Ref.Kind }, func(i int) (err error) {
		uids[i], err = a.member(ctx, members[i])
		return err
	})
	now = make(map[effect.Ref]string, len(members))
	for i, m := range members {
		if uids[i] != "" {
			now[m.Ref] = uids[i]
		}
	}
	return now, apply.Joined(errs), err
}

func (a *applying) begin(ctx context.Context, m effect.Write) (*pending, error) {
	m.Owner, m.Cause = nil, a.write.Cause
	m.Object = a.marks.on(m.Object)
	p, err := a.writer.o.Client.begin(ctx, a.marks.manager, m)
	if err != nil {
		return nil, err
	}
	p.owner, p.sign, p.whole = a.owner, a.marks.sign(m.Ref), true
	p.ours = func(live map[string]any) error {
		if a.marks.claims(m.Ref, live, a.known[m.Ref]) {
			return nil
		}
		return fmt.Errorf("cannot apply %s: it is there, and set %q of this hook did not make it: delete it, or give the member another name", m.Ref, a.write.Set.Name)
	}
	return p, nil
}

// member applies one member, unless it is as it should be.
func (a *applying) member(ctx context.Context, m effect.Write) (uid string, err error) {
	s := a.seen[m.Ref]
	if s.same {
		return uidOf(s.live), nil
	}
	p, err := a.begin(ctx, m)
	if err != nil {
		return "", err
	}
	p.live, p.seen = s.live, true
	obj, err := a.writer.applyClaimed(ctx, p, a.write.Cause)
	return uidOf(obj), err
}

// prune deletes former members: kinds in the order of an uninstall, of one kind the newest
// first. One that is refused holds up no other.
func (a *applying) prune(ctx context.Context, gone []effect.Ref) error {
	slices.SortFunc(gone, func(x, y effect.Ref) int {
		return cmp.Or(cmp.Compare(a.seen[y].created(), a.seen[x].created()), y.Compare(x))
	})
	refused, err := a.writer.order(ctx, true).Each(len(gone), func(i int) string { return gone[i].Kind }, func(i int) error {
		return a.pruneOne(ctx, gone[i])
	})
	return cmp.Or(err, apply.Joined(refused))
}

// pruneOne deletes a former member. One that somebody else has put in its place stays, and so
// does a copy.
func (a *applying) pruneOne(ctx context.Context, ref effect.Ref) error {
	s, uid := a.seen[ref], a.known[ref]
	seen, known := s.live, uid != "" && uidOf(s.live) == uid
	switch {
	case seen == nil && s.certain, seen != nil && !s.made && !known:
		return nil
	case known: // its marks do not matter
		seen = map[string]any{"metadata": map[string]any{"uid": uid}}
	}
	// One that was not seen may have lost its label.
	err := a.writer.remove(ctx, a.marks.manager, ref, seen, a.write.Cause, func(live map[string]any) bool {
		return uid != "" && uidOf(live) == uid || a.marks.made(live)
	})
	if seen == nil && errors.Is(err, ErrNotServed) {
		return nil // its objects have gone with the kind
	}
	return err
}
