package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// stampKey is the key of a ConfigMap's data that tells its changes apart.
const stampKey = "stamp"

// stamped is what a witness calls a ConfigMap with a stamp.
func stamped(name, stamp string) string { return name + "=" + stamp }

// witness notes when it first saw objects of a namespace, by the names that it gives them.
type witness struct {
	b    *bench
	stop context.CancelFunc // the watch

	mu   sync.Mutex
	seen map[string]time.Time
	news chan struct{} // something was seen
}

// watched is what a witness needs of a client for one kind.
type watched[L metav1.ListInterface] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// observe watches the ConfigMaps of a namespace, from now on. They are seen by their names, and with the stamp
// that they have.
func (b *bench) observe(namespace string) *witness {
	return observe(b, b.configMaps(namespace), "", func(cm *corev1.ConfigMap) []string {
		return []string{cm.Name, stamped(cm.Name, cm.Data[stampKey])}
	})
}

// observe notes the names of the objects that a watch brings. A watch that the server
// ends, as it does with clients that do not keep up, ends the run: an object that was not
// seen in time cannot be measured.
func observe[T kruntime.Object, L metav1.ListInterface](
	b *bench, api watched[L], labels string, names func(T) []string,
) *witness {
	ctx, stop := context.WithCancel(b.ctx)
	b.Cleanup(stop)
	list, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	b.check(err)
	stream, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: labels, ResourceVersion: list.GetResourceVersion()})
	b.check(err)
	w := &witness{b: b, stop: stop, seen: map[string]time.Time{}, news: make(chan struct{}, 1)}
	go func() {
		for event := range stream.ResultChan() {
			if obj, ok := event.Object.(T); ok && event.Type != watch.Deleted {
				w.saw(names(obj), time.Now())
			}
		}
		if ctx.Err() == nil {
			b.broken(fmt.Errorf("a watch of the bench on %T has ended", *new(T)))
		}
	}()
	return w
}

func (w *witness) saw(names []string, now time.Time) {
	w.mu.Lock()
	for _, name := range names {
		if _, known := w.seen[name]; !known {
			w.seen[name] = now
		}
	}
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// count returns how many names were seen so far.
func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// at returns when a name was first seen; zero: not yet.
func (w *witness) at(name string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[name]
}

// all waits until every name was seen and returns when the first and the last one was.
func (w *witness) all(names ...string) (first, last time.Time) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for len(names) > 0 {
		at := w.at(names[0])
		if at.IsZero() {
			select {
			case <-w.news:
			case <-late.C:
				w.b.Fatalf("%s and %d more were not seen within %s", names[0], len(names)-1, patience)
			case <-w.b.ctx.Done():
				w.b.Fatal(w.b.ctx.Err())
			}
			continue
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
		names = names[1:]
	}
	return first, last
}

// after has somebody do something, and returns how long it took from then until all names were seen.
func (w *witness) after(do func() error, names ...string) time.Duration {
	began := time.Now()
	w.b.check(do())
	_, last := w.all(names...)
	return last.Sub(began)
}
