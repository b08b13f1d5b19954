package watch

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fill takes a list into views. force says that the server's history begins anew.
// Called with s.mu held; the caller flushes what it returns.
func (s *stream) fill(v *view, entries []entry, version uint64, force bool, tell []*subscription) []*subscription {
	switch {
	case v.over != nil:
		return tell
	case v.full != nil:
		return s.overfull(v, v.full, tell)
	}
	events := v.replace(entries, version, time.Now(), force)
	if why := s.recount(v); why != nil {
		return s.overfull(v, why, tell)
	}
	v.synced = true
	tell = s.showFilter(v, tell)
	for sub, p := range v.subs {
		sub.listed(p, events, v.renewal == s.renewals)
	}
	return tell
}

// listFor lists for one view that came too late for the stream's own list. Called
// with s.mu held.
func (s *stream) listFor(v *view) {
	if v.listing {
		v.again = true
		return
	}
	v.listing = true
	s.m.wg.Go(func() {
		failures := 0
		for {
			if !s.wanted(v) { // any more
				if failures > 0 {
					s.report(nil) // those who are left have no part in it
				}
				return
			}
			err := s.catchUp(v)
			if s.ctx.Err() != nil {
				return
			}
			if err == nil && s.caughtUp(v) {
				return
			}
			wait := time.Duration(0)
			if err == nil {
				failures = 0
			} else {
				failures++
				s.report(s.m.o.Client.Explain(err, "list", s.mapping, s.key.namespace))
				wait = s.m.o.Backoff.Delay(failures, rand.Float64())
			}
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(wait):
			}
		}
	})
}

// wanted says whether somebody has the view.
func (s *stream) wanted(v *view) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(v.subs) > 0
}

// caughtUp ends the catching up of a view, unless its list is outdated.
func (s *stream) caughtUp(v *view) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v.again {
		v.again = false
		return false
	}
	v.listing, v.stale = false, false
	return true
}

// catchUp lists for one view.
func (s *stream) catchUp(v *view) error {
	s.mu.Lock()
	views := []covered{s.begin(v)}
	renewal, position := s.renewals, s.position
	s.mu.Unlock()
	var items []*listed
	version, err := s.m.o.Client.Each(s.ctx, s.mapping, s.key.namespace, s.options(metav1.ListOptions{}), func(obj map[string]any) error {
		items = append(items, s.filtered(obj, views))
		return nil
	})
	if err == nil && isPast(version, position) {
		err = errPast
	}
	if err == nil {
		s.report(nil)
	}
	s.mu.Lock()
	var tell []*subscription
	list := views[0].list
	switch {
	case err != nil:
		v.queue.giveUp(list)
	case list != nil:
		list.completed(items, 0, Version(version), renewal)
		s.wake(v)
	case !v.again && !v.stale:
		v.renewal = max(v.renewal, renewal)
		tell = s.fill(v, entriesOf(items, 0), Version(version), false, nil)
	}
	s.mu.Unlock()
	flush(tell)
	if err == nil && list != nil {
		select {
		case <-list.filled:
		case <-s.ctx.Done():
		}
	}
	return err
}

// report tells all subscriptions whether the stream works.
func (s *stream) report(err error) {
	s.mu.Lock()
	var tell []*subscription
	s.served = s.served && err != nil
	if err != nil || s.failed != nil {
		s.failed = err
		for _, v := range s.views {
			for sub, p := range v.subs {
				sub.failed(&p.failed, err)
				tell = append(tell, sub)
			}
		}
	}
	s.mu.Unlock()
	flush(tell)
}

// broken looks at the error of a list or watch.
func (s *stream) broken(err error, verb string) {
	_, starts := storageStarts(err)
	switch {
	case starts:
		return // what is known stays true, and the next try is soon
	case s.ctx.Err() != nil, apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // stopped; or the next list puts it right
	case apierrors.IsNotFound(err):
		s.m.suspect(s)
		s.mu.Lock()
		served := s.served
		s.mu.Unlock()
		if !served {
			return // discovery will tell, or the next try puts it right
		}
	}
	s.report(s.m.o.Client.Explain(err, verb, s.mapping, s.key.namespace))
}
