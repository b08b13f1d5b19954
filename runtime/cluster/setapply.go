package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

// applying is one apply of a set.
type applying struct {
	writer      *Writer
	manager, id string
	write       effect.Write
	known       map[effect.Ref]string // the uids that are recorded
	seen        map[effect.Ref]sight
}

// apply applies the members that are not as they should be, and returns the uids of all
// that are now.
func (a *applying) apply(ctx context.Context, recorded []member) (map[effect.Ref]string, error) {
	w, members := a.writer, a.write.Set.Members
	if err := a.findOwner(ctx); err != nil {
		return nil, err
	}
	refs, asked := make([]effect.Ref, len(members)), make(map[effect.Ref]effect.Write, len(members))
	for i, m := range members {
		refs[i], asked[m.Ref] = m.Ref, m
	}
	var err error
	a.seen, err = w.look(ctx, a.id, recorded, func(ref effect.Ref, live map[string]any) bool {
		m, listed := asked[ref]
		return listed && a.same(ctx, m, live)
	})
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	now := make(map[effect.Ref]string, len(members))
	err = kindByKind(refs, w.o.SideBySide, false, func(i int) error {
		uid, err := a.member(ctx, members[i])
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		now[refs[i]] = uid
		return nil
	})
	return now, err
}

// findOwner looks for the owner once, for all members.
func (a *applying) findOwner(ctx context.Context) error {
	owner := a.write.Owner
	if owner == nil || owner.UID != "" || len(a.write.Set.Members) == 0 {
		return nil
	}
	first := a.write.Set.Members[0]
	first.Owner = owner
	entry, err := a.writer.o.Client.ownerReference(ctx, first)
	if err != nil {
		return err
	}
	uid, _ := entry["uid"].(string)
	a.write.Owner = &effect.Owner{Ref: owner.Ref, UID: uid}
	return nil
}

// same says whether an apply of m would leave live as it is.
func (a *applying) same(ctx context.Context, m effect.Write, live map[string]any) bool {
	p, err := a.begin(ctx, m)
	if err != nil {
		return false
	}
	p.live = live
	return p.check() == nil && asItShouldBe(p.wanted(), live, p.manager)
}

func (a *applying) begin(ctx context.Context, m effect.Write) (*pending, error) {
	m.Owner, m.Cause = a.write.Owner, a.write.Cause
	m.Object = withLabel(m.Object, SetLabel, a.id)
	p, err := a.writer.o.Client.begin(ctx, a.manager, m)
	if err != nil {
		return nil, err
	}
	p.ours = func(live map[string]any) error {
		if isMember(live, a.id, a.known[m.Ref]) {
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
	asked := time.Now()
	obj, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	a.writer.o.Observe(m.Ref, obj, a.write.Cause, asked)
	return uidOf(obj), nil
}

// prune deletes former members, kinds in the order of an uninstall.
func (w *Writer) prune(ctx context.Context, manager, id string, gone []member, seen map[effect.Ref]sight, cause *effect.Cause) error {
	refs := make([]effect.Ref, len(gone))
	for i := range gone {
		refs[i] = gone[i].Ref
	}
	return kindByKind(refs, w.o.SideBySide, true, func(i int) error {
		return w.pruneOne(ctx, manager, id, gone[i], seen[refs[i]], cause)
	})
}

// pruneOne deletes a former member. One that somebody else has put in its place stays.
func (w *Writer) pruneOne(ctx context.Context, manager, id string, m member, s sight, cause *effect.Cause) error {
	live := s.live
	if live == nil && !s.certain { // it may have lost its label
		var err error
		if live, err = w.o.Client.Get(ctx, m.Ref); err != nil && !errors.Is(err, ErrNotServed) {
			return err
		}
	}
	if live == nil || !isMember(live, id, m.UID) {
		return nil
	}
	asked := time.Now()
	obj, err := w.o.Client.Write(ctx, manager, effect.Write{Kind: effect.WriteDelete, Ref: m.Ref,
		Unchanged: &effect.Unchanged{UID: uidOf(live)}})
	if err == nil {
		w.o.Observe(m.Ref, obj, cause, asked)
	}
	return err
}
