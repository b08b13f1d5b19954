package watch

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A filter that is a program may take its time, and so may wakes, for all objects or for one that somebody has
// made large. With [Spec].Apart it is called on a goroutine of its view, one object after the
// other, so that neither the stream nor the filters of others wait for it. Of each object the
// newest state alone waits. An object that does not fit into memory is read again when its turn comes.

const (
	// maxHeld is how many bytes of objects wait for one filter.
	maxHeld = 16 << 20
	// patience is how long a list waits for room in front of one filter, for one object
	// and in all. A filter that is slower than that does not hold the list up.
	patience      = 50 * time.Millisecond
	patienceInAll = 5 * time.Second
	// readAgain lies between two attempts to read an object.
	readAgain = time.Second
)

// hand has an object of a list wait for the filter of a view. It waits while there is no
// room, but not for long.
func (s *stream) hand(v *view, l *listing, obj map[string]any, item *listed, at int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &v.queue
	t := &task{key: item.objectKey, version: Version(item.version), obj: obj, seen: time.Now(), list: l, item: item, at: at}
	if _, r := v.find(t.key); r != nil && r.version == t.version && t.version != 0 && !r.lacks {
		item.outcomes[at] = r.outcome()
		return
	}
	if q.working {
		t.size = weigh(obj)
	}
	if t.size > 0 && q.held+t.size > maxHeld && !s.await(q, l, t.size) {
		t.obj, t.size = nil, 0
	}
	if q.list == l {
		l.waiting = append(l.waiting, t)
		q.held += t.size
		s.wake(v)
	}
}

// await waits for room. It is called with s.mu held, which it gives up meanwhile.
func (s *stream) await(q *queue, l *listing, size int64) bool {
	if l.left <= 0 {
		return false
	}
	began := time.Now()
	timer := time.NewTimer(min(patience, l.left))
	defer timer.Stop()
	for q.list == l && q.held+size > maxHeld {
		s.mu.Unlock()
		over := false
		select {
		case <-l.room:
		case <-timer.C:
			over = true
		case <-s.ctx.Done():
			over = true
		}
		s.mu.Lock()
		if over {
			l.left = 0
			return false
		}
	}
	l.left -= time.Since(began)
	return true
}

// wake has somebody work at what waits. Called with s.mu held.
func (s *stream) wake(v *view) {
	if !v.queue.working && s.ctx.Err() == nil {
		v.queue.working = true
		s.m.wg.Go(func() { s.work(v) })
	}
}

// work calls the filter of a view while something waits.
func (s *stream) work(v *view) {
	var out outcome
	for {
		s.mu.Lock()
		tell := s.done(v, out)
		t, more := s.next(v)
		s.mu.Unlock()
		flush(append(tell, more...))
		if t == nil {
			return
		}
		out = s.outcome(v, t)
	}
}

// next takes the next task, and what has become of lists before it. Called with s.mu held.
func (s *stream) next(v *view) (t *task, tell []*subscription) {
	q := &v.queue
	if len(v.subs) == 0 || s.ctx.Err() != nil {
		q.forget()
	}
	for {
		if t = q.next(); t != nil {
			q.current = t
			return t, tell
		}
		l := q.list
		if l == nil || !l.complete {
			q.working = false
			return nil, tell
		}
		q.giveUp(l)
		if v.again { // a newer list is on its way
			continue
		}
		v.renewal = max(v.renewal, l.renewal)
		tell = s.fill(v, entriesOf(l.items, l.at), l.version, false, tell)
	}
}

// done takes in what the filter has made of the current task. Called with s.mu held.
func (s *stream) done(v *view, out outcome) (tell []*subscription) {
	q := &v.queue
	t := q.current
	if t == nil {
		return nil
	}
	q.current = nil
	switch {
	case v.over != nil:
	case t.list != nil:
		t.item.outcomes[t.at] = out
	case !t.void && !out.missing:
		if next := q.tasks[t.key]; next != nil && next.own && !t.own {
			t.cause = next.cause // the stream was faster than the answer to that write
		}
		tell = s.take(v, t.key, max(t.version, out.version), &out, t.seen, t.own, t.cause, nil)
	}
	q.ended(t)
	return tell
}

// outcome calls the filter.
func (s *stream) outcome(v *view, t *task) outcome {
	obj, version := t.obj, uint64(0)
	if obj == nil {
		if obj = s.read(v, t.key); obj == nil {
			return outcome{missing: true}
		}
		_, text, _ := identity(obj)
		version = Version(text)
	}
	t.obj = nil
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-s.ctx.Done():
		return outcome{missing: true}
	}
	out := v.run(obj)
	out.version = version
	if t.list != nil {
		s.listedOne(v, t.key, &out)
	}
	return out
}

// read reads one object again; nil when it is not there any more. Until that succeeds, it is
// what is wrong with the view.
func (s *stream) read(v *view, key objectKey) (found map[string]any) {
	failed := false
	for {
		found = nil
		o := s.options(metav1.ListOptions{Limit: 1})
		o.FieldSelector = strings.TrimSuffix("metadata.name="+key.name+","+s.key.fields, ",")
		_, err := s.m.o.Client.Each(s.ctx, s.mapping, key.namespace, o, func(obj map[string]any) error {
			found = obj
			return nil
		})
		if err == nil && failed {
			s.viewFailed(v, nil)
		}
		if err == nil || s.ctx.Err() != nil {
			return found
		}
		failed = true
		s.viewFailed(v, s.m.o.Client.Explain(err, "list", s.mapping, key.namespace))
		select {
		case <-s.ctx.Done():
		case <-time.After(readAgain):
		}
	}
}

// viewFailed tells of an error of one view; nil: there is none but that of the stream.
func (s *stream) viewFailed(v *view, err error) {
	s.mu.Lock()
	if err == nil {
		err = s.failed
	}
	tell := make([]*subscription, 0, len(v.subs))
	for sub, p := range v.subs {
		sub.failed(&p.failed, err)
		tell = append(tell, sub)
	}
	s.mu.Unlock()
	flush(tell)
}

// settle waits until the filter has seen all writes of this process that the view was told of.
// Called with s.mu held, which it gives up meanwhile.
func (s *stream) settle(v *view) {
	for v.queue.owned > 0 && s.ctx.Err() == nil {
		settled := v.queue.settled
		s.mu.Unlock()
		select {
		case <-settled:
		case <-s.ctx.Done():
		}
		s.mu.Lock()
	}
}

// weigh says about how many bytes of memory a decoded value takes.
func weigh(v any) int64 {
	switch v := v.(type) {
	case string:
		return 16 + int64(len(v))
	case map[string]any:
		// A map has groups of eight places for a key and a value each, two thirds of
		// which are taken.
		size := 48 + 400*int64(len(v)/8+1)
		for key, value := range v {
			size += int64(len(key)) + weigh(value)
		}
		return size
	case []any:
		size := 24 + 16*int64(len(v))
		for _, value := range v {
			size += weigh(value)
		}
		return size
	}
	return 8
}
