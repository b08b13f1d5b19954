package watch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/cluster"
)

// resolver finds out where the kinds of one group-version are, for the watches
// that wait for them. It lives as long as there are any. Its manager's mutex
// guards it.
type resolver struct {
	apiVersion string
	// waiting holds the subscriptions, and whether they were told that their
	// kind is not served.
	waiting map[*subscription]bool
	// suspects are streams whose URL has answered 404.
	suspects map[*stream]bool
	kicked   bool
	wake     chan struct{}
}

// signal leaves a token in a channel that has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// resolver returns the resolver of a group-version, and runs it. Called with m.mu
// held.
func (m *Manager) resolver(apiVersion string) *resolver {
	r := m.resolvers[apiVersion]
	if r == nil {
		r = &resolver{
			apiVersion: apiVersion,
			waiting:    map[*subscription]bool{},
			suspects:   map[*stream]bool{},
			wake:       make(chan struct{}, 1),
		}
		m.resolvers[apiVersion] = r
		if !m.closed {
			m.wg.Go(func() { m.resolve(r) })
		}
	}
	return r
}

// look queues a subscription for its resolver. Called with m.mu held.
func (m *Manager) look(sub *subscription) {
	r := m.resolver(sub.spec.APIVersion)
	r.waiting[sub] = false
	signal(r.wake)
}

// suspect has discovery asked whether a stream's kind is still served.
func (m *Manager) suspect(s *stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.streams[s.key] != s {
		return
	}
	r := m.resolver(s.key.apiVersion)
	r.suspects[s] = true
	signal(r.wake)
}

// resolve runs a resolver: it asks at once when something is new, and again with
// growing delays while something waits.
func (m *Manager) resolve(r *resolver) {
	looks := 1
	for {
		m.mu.Lock()
		if len(r.waiting) == 0 && len(r.suspects) == 0 {
			delete(m.resolvers, r.apiVersion)
			m.mu.Unlock()
			return
		}
		select {
		case <-r.wake: // this round is the answer to it
		default:
		}
		if r.kicked {
			looks, r.kicked = 1, false
		}
		m.mu.Unlock()

		if !m.round(r) {
			// Nothing is left, or something new has come: see at once.
			continue
		}
		select {
		case <-m.ctx.Done():
			return
		case <-r.wake:
		case <-time.After(m.o.Recheck.Delay(looks, 0)):
			looks++
		}
	}
}

// answer is where a kind is, or why that is not known.
type answer struct {
	mapping cluster.Mapping
	err     error
}

// round looks once for all that waits and says whether something still does.
func (m *Manager) round(r *resolver) bool {
	m.mu.Lock()
	waiting := make([]*subscription, 0, len(r.waiting))
	fresh := len(r.suspects) == 0
	for sub, reported := range r.waiting {
		waiting = append(waiting, sub)
		fresh = fresh && !reported
	}
	suspects := slices.Collect(maps.Keys(r.suspects))
	m.mu.Unlock()
	slices.SortFunc(waiting, func(a, b *subscription) int { return cmp.Compare(a.spec.ID, b.spec.ID) })

	var kinds []string
	for _, sub := range waiting {
		kinds = append(kinds, sub.spec.Kind)
	}
	for _, s := range suspects {
		kinds = append(kinds, s.key.kind)
	}
	answers := m.find(r.apiVersion, kinds, fresh)
	if m.ctx.Err() != nil {
		return true
	}

	m.mu.Lock()
	tell := m.keepServed(r, suspects, answers)
	started, more := m.admit(r, waiting, answers)
	left := len(r.waiting) > 0 || len(r.suspects) > 0
	m.mu.Unlock()
	// Streams start when all that waited are on them, to share the first list.
	for _, s := range started {
		s.start()
	}
	flush(append(tell, more...))
	return left
}

// keepServed lets streams go on whose kind is where it was, and ends the others. It returns
// the subscriptions to tell. Called with m.mu held.
func (m *Manager) keepServed(r *resolver, suspects []*stream, answers map[string]answer) (tell []*subscription) {
	for _, s := range suspects {
		a := answers[s.key.kind]
		unserved := errors.Is(a.err, cluster.ErrNotServed)
		if a.err != nil && !unserved {
			continue // cannot tell: ask again
		}
		delete(r.suspects, s)
		a.mapping.Metadata = s.mapping.Metadata
		if unserved || a.mapping != s.mapping {
			tell = append(tell, m.unserve(r, s)...)
			continue
		}
		s.mu.Lock()
		s.served = true
		s.mu.Unlock()
	}
	return tell
}

// admit puts those that wait on the streams of their kinds. It returns the streams that
// are new, and the subscriptions to tell. Called with m.mu held.
func (m *Manager) admit(r *resolver, waiting []*subscription, answers map[string]answer) (started []*stream, tell []*subscription) {
	for _, sub := range waiting {
		reported, still := r.waiting[sub]
		if !still {
			continue
		}
		a := answers[sub.spec.Kind]
		switch {
		case errors.Is(a.err, cluster.ErrNotServed):
			r.waiting[sub] = true
			if !reported {
				sub.notServed(nil)
			}
		case a.err != nil:
			sub.failed(&sub.looking, a.err)
		default:
			delete(r.waiting, sub)
			more, err := m.attach(sub, a.mapping)
			if err != nil {
				sub.failed(&sub.looking, err)
			}
			started = append(started, more...)
		}
		tell = append(tell, sub)
	}
	return started, tell
}

// find answers for kinds of a group-version. fresh trusts what is cached; otherwise, and after a first miss, one
// request answers for all kinds.
func (m *Manager) find(apiVersion string, kinds []string, fresh bool) map[string]answer {
	answers := map[string]answer{}
	var served map[string]cluster.Mapping
	var failed error
	for _, kind := range kinds {
		if _, known := answers[kind]; known {
			continue
		}
		if !fresh && served == nil && failed == nil {
			served, failed = m.o.Client.Served(m.ctx, apiVersion)
		}
		a := answer{err: failed}
		switch mapping, there := served[kind]; {
		case failed != nil:
		case there:
			a.mapping = mapping
		case !fresh:
			a.err = fmt.Errorf("%s %s: %w", apiVersion, kind, cluster.ErrNotServed)
		default:
			a.mapping, a.err = m.o.Client.Mapping(m.ctx, apiVersion, kind)
			if fresh = !errors.Is(a.err, cluster.ErrNotServed); fresh {
				failed = a.err
			}
		}
		answers[kind] = a
	}
	return answers
}

// unserve ends a stream whose kind is not served any more. All its subscriptions wait again, with all their
// streams. They hear that the objects are deleted, but for those with [Spec].Each: nobody knows whether objects are,
// for a version may be switched off, or the server of an API be away. Called with m.mu held.
func (m *Manager) unserve(r *resolver, s *stream) []*subscription {
	var subs []*subscription
	s.mu.Lock()
	for _, v := range s.views {
		subs = slices.AppendSeq(subs, maps.Keys(v.subs))
	}
	s.mu.Unlock()
	for _, sub := range subs {
		rows := m.detach(sub)
		if sub.spec.Each {
			rows = nil
		}
		events := make([]Event, len(rows))
		for i, row := range rows {
			events[i] = row.event(Deleted)
		}
		sub.notServed(events)
		r.waiting[sub] = true
	}
	return subs
}
