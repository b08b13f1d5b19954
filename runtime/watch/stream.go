package watch

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// streamKey is what makes two watches share a stream.
type streamKey struct {
	apiVersion, kind                string
	namespace, name, labels, fields string
	metadata                        bool
}

// stream is one list and watch on the API server with the views of all that share
// it.
type stream struct {
	m        *Manager
	key      streamKey
	mapping  cluster.Mapping
	selector labels.Selector
	fields   fields.Selector
	ctx      context.Context
	cancel   context.CancelFunc

	mu    sync.Mutex
	views map[string]*view // by what their filter does, see viewKey
	// covered are the views that the source's current list is filtered for. They change between lists alone, on the
	// goroutine of the source.
	covered []covered
	listed  bool // the first list is in
	// renewals is how often a new list was asked for, see [Manager.Renew]; cut ends the watch that is open.
	renewals uint64
	cut      context.CancelFunc
	position uint64 // version up to which the stream has come
	failed   error
	served   bool // discovery says so, though a list or watch has answered 404
	// dead are objects that our own writes have deleted, and whose deletion the watch has yet to bring.
	dead map[objectKey]bool
}

func (m *Manager) newStream(key streamKey, at *placement) *stream {
	s := &stream{m: m, key: key, mapping: at.mapping, selector: at.labels, fields: at.fields, views: map[string]*view{}}
	s.ctx, s.cancel = context.WithCancel(m.ctx)
	return s
}

// start lists and watches until the stream is cancelled.
func (s *stream) start() {
	from := &source{stream: s}
	s.m.wg.Go(from.run)
}

// options are what every list and watch of the stream has in common.
func (s *stream) options(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector = s.key.labels
	o.FieldSelector = s.key.fields
	if s.key.name != "" {
		o.FieldSelector = strings.TrimSuffix("metadata.name="+s.key.name+","+s.key.fields, ",")
	}
	return o
}

// join puts a subscription on the view of its filter.
func (s *stream) join(sub *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := viewKey(sub.spec)
	v := s.views[key]
	if v == nil {
		v = newView(sub.spec)
		v.turn = sub.turn
		s.views[key] = v
		if s.listed {
			s.listFor(v)
		}
	}
	s.m.held.count(s, v, sub.spec.Module, 1)
	broken, lacks := v.trouble()
	v.subs[sub] = &part{stream: s, view: v, synced: v.synced && v.renewal == s.renewals, failed: s.failed, broken: broken, lacks: lacks}
	sub.add(v.subs[sub])
}

// viewKey says which subscriptions share results.
func viewKey(spec Spec) string {
	what := "watch " + spec.ID
	switch {
	case spec.Filter == nil:
		what = "whole"
	case spec.FilterID != "":
		what = "filter " + spec.FilterID
	}
	wakes := ""
	switch {
	case spec.Wakes == nil:
	case spec.WakesID != "":
		wakes = spec.WakesID
	default:
		wakes = "watch " + spec.ID
	}
	names := unique(spec.Names)
	if len(names) <= MaxNames {
		names = nil // the stream has them
	}
	return fmt.Sprintf("%q %q %t %t %t %t %t %q %q %q", unique(spec.ExcludeNamespaces), names, spec.Omit != nil, spec.KeepObject, spec.Both, spec.Old, spec.Each, spec.Finalizer, what, wakes)
}

// leave takes a subscription off; rows are what it kept, and empty says that
// nobody is left.
func (s *stream) leave(sub *subscription, v *view) (rows []*row, empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows = slices.Clone(v.rows)
	delete(v.subs, sub)
	s.m.held.count(s, v, sub.spec.Module, -1)
	if len(v.subs) == 0 {
		maps.DeleteFunc(s.views, func(_ string, other *view) bool { return other == v })
	}
	return rows, len(s.views) == 0
}

// covers says whether an object may be one of the stream's.
func (s *stream) covers(ref effect.Ref) bool {
	return (s.key.namespace == "" || s.key.namespace == ref.Namespace) && (s.key.name == "" || s.key.name == ref.Name)
}

// observe takes in the answer to our own write.
func (s *stream) observe(ref effect.Ref, obj map[string]any, cause *effect.Cause, asked time.Time) {
	key := objectKey{ref.Namespace, ref.Name}
	if !s.mapping.Namespaced {
		key.namespace = ""
	}
	if obj == nil {
		s.gone(key, cause, asked)
		return
	}
	found, version, set := identity(obj)
	if found != key || Version(version) == 0 {
		return // no answer to compare: the watch will bring it
	}
	if !s.selector.Matches(set) {
		obj = nil
	}
	switch matches, known := matchFields(s.fields, obj); {
	case !known:
		return
	case !matches:
		obj = nil
	}
	s.change(key, Version(version), obj, true, cause)
}

// change takes one object at one version into all views; obj nil means that it is
// gone. own marks a change that the stream itself has yet to bring; cause is then that of
// the write.
func (s *stream) change(key objectKey, version uint64, obj map[string]any, own bool, cause *effect.Cause) {
	seen := time.Now()
	s.mu.Lock()
	var inline []*view
	if obj != nil {
		for _, v := range s.views {
			if _, current := v.find(key); !v.apart && !v.known(key, current, version) && !s.outrun(v, current, version, own) {
				inline = append(inline, v)
			}
		}
	}
	s.mu.Unlock()
	// Filters may take a while: not under the lock, where snapshots wait. An object that the answer to our
	// own write has shown is not filtered again.
	outcomes := make(map[*view]outcome, len(inline))
	for _, v := range inline {
		outcomes[v] = v.run(obj)
	}

	s.mu.Lock()
	if !own {
		s.position = max(s.position, version)
	}
	if own || obj == nil {
		delete(s.dead, key)
	}
	var tell []*subscription
	for _, v := range s.views {
		_, current := v.find(key)
		switch {
		case v.over != nil:
		case obj != nil && s.outrun(v, current, version, own):
		case obj == nil && v.apart:
			tell = s.take(v, key, v.queue.gone(key, version), nil, seen, own, cause, tell)
		case obj == nil:
			tell = s.take(v, key, version, nil, seen, own, cause, tell)
		case v.apart:
			if !v.leavesOut(key) && !v.known(key, current, version) {
				v.queue.add(key, version, obj, seen, own, cause)
				s.wake(v)
			}
		default:
			out, ok := outcomes[v]
			if !ok && !v.known(key, current, version) { // joined in this very moment
				out = v.run(obj)
			}
			tell = s.take(v, key, version, &out, seen, own, cause, tell)
		}
	}
	s.mu.Unlock()
	flush(tell)
}

// outrun says that the stream has come past the version that our own write made of an object, and that the
// view has no such object: it has gone, or left the selection, before the answer to the write came.
// Called with s.mu held.
func (s *stream) outrun(v *view, current *row, version uint64, own bool) bool {
	return own && current == nil && version <= s.position && !v.behind()
}

// gone takes out an object that our own write has deleted, at a version that is not
// known. One that somebody has made anew since then stays.
func (s *stream) gone(key objectKey, cause *effect.Cause, asked time.Time) {
	s.mu.Lock()
	var tell []*subscription
	for _, v := range s.views {
		if v.over != nil || v.seenSince(key, asked) {
			continue
		}
		if _, current := v.find(key); current != nil {
			s.bury(key)
		}
		version := uint64(0)
		if v.apart {
			version = v.queue.gone(key, 0)
		}
		tell = s.take(v, key, version, nil, time.Now(), true, cause, tell)
	}
	s.mu.Unlock()
	flush(tell)
}

// bury notes that an object is gone before the watch says so. Called with s.mu held.
func (s *stream) bury(key objectKey) {
	if s.dead == nil {
		s.dead = map[objectKey]bool{}
	}
	s.dead[key] = true
}

// outlived takes in that the watch has brought an object, and says that it is one that we have deleted since: somebody
// has changed it before. An object that was made anew comes as added.
func (s *stream) outlived(key objectKey, added bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if added {
		delete(s.dead, key)
	}
	return s.dead[key]
}

// take takes what the filter has made of one object into a view; out nil means that the
// object is gone. Called with s.mu held.
func (s *stream) take(v *view, key objectKey, version uint64, out *outcome, seen time.Time, own bool, cause *effect.Cause, tell []*subscription) []*subscription {
	var event Event
	var changed bool
	_, before := v.find(key)
	behind := v.behind()
	wasBroken := v.failed.len() > 0
	if out == nil {
		event, changed = v.remove(key, version, seen, own || behind)
	} else {
		s.crowded(v, key, out)
		event, changed = v.put(key, version, *out, seen, own || behind)
	}
	if !behind && len(v.gone) > 0 {
		v.forgetGone(s.position)
	}
	_, after := v.find(key)
	if why := s.hold(v, after.weight()-before.weight()); why != nil {
		return s.overfull(v, why, tell)
	}
	// A run must not begin with a snapshot that lacks an object, and none needs to
	// begin twice when it lacks no more.
	lacks := v.failed.lacks > 0 && !v.Each
	if lacks {
		tell = s.showFilter(v, tell)
	}
	if changed {
		event.Cause = cause
		events := []Event{event}
		for sub, p := range v.subs {
			sub.changed(p, events)
			tell = append(tell, sub)
		}
	}
	if !lacks && (wasBroken || v.failed.len() > 0) {
		tell = s.showFilter(v, tell)
	}
	return tell
}

// showFilter tells the subscriptions of a view how its filter fares. Called with s.mu
// held.
func (s *stream) showFilter(v *view, tell []*subscription) []*subscription {
	err, lacks := v.trouble()
	for sub, p := range v.subs {
		sub.filterFailed(p, err, lacks)
		tell = append(tell, sub)
	}
	return tell
}

// flush tells the subscriptions what they have to hear. Those whose objects have their own runs hear last: such a run
// then begins when all else that sees its object is known, and not once before and once after.
func flush(subs []*subscription) {
	for _, last := range []bool{false, true} {
		for _, sub := range subs {
			if sub.spec.Each == last {
				sub.flush()
			}
		}
	}
}
