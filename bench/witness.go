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

// witness notes when it first saw objects of a namespace: ConfigMaps by their names, and
// with the stamp that they have; releases by their revisions.
type witness struct {
	stop context.CancelFunc // the watch

	mu   sync.Mutex
	seen map[string]time.Time
	news chan struct{} // something was seen
}

// observe watches the ConfigMaps of a namespace, from now until ctx ends.
func (b *bench) observe(ctx context.Context, namespace string) (*witness, error) {
	api := b.client.CoreV1().ConfigMaps(namespace)
	list, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return b.follow(ctx, "ConfigMaps in "+namespace, func(ctx context.Context) (watch.Interface, error) {
		return api.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	}, func(obj kruntime.Object) []string {
		if cm, ok := obj.(*corev1.ConfigMap); ok {
			return []string{cm.Name, stamped(cm.Name, cm.Data[stampKey])}
		}
		return nil
	})
}

// observeReleases watches the releases in a namespace: each revision that is deployed is
// seen by the name of its Secret.
func (b *bench) observeReleases(ctx context.Context, namespace string) (*witness, error) {
	api := b.client.CoreV1().Secrets(namespace)
	list, err := api.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return b.follow(ctx, "releases in "+namespace, func(ctx context.Context) (watch.Interface, error) {
		return api.Watch(ctx, metav1.ListOptions{LabelSelector: "owner=helm", ResourceVersion: list.ResourceVersion})
	}, func(obj kruntime.Object) []string {
		if s, ok := obj.(*corev1.Secret); ok && s.Labels["status"] == "deployed" {
			return []string{s.Name}
		}
		return nil
	})
}

// revision is the name of the Secret of a release's revision.
func revision(release string, n int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, n)
}

// follow notes the names of the objects that a watch brings. A watch that the server
// ends, as it does with clients that do not keep up, ends the run: an object that was not
// seen in time cannot be measured.
func (b *bench) follow(ctx context.Context, what string, begin func(context.Context) (watch.Interface, error), names func(kruntime.Object) []string) (*witness, error) {
	w := &witness{seen: map[string]time.Time{}, news: make(chan struct{}, 1)}
	watching, stop := context.WithCancel(ctx)
	w.stop = stop
	stream, err := begin(watching)
	if err != nil {
		stop()
		return nil, err
	}
	go func() {
		for event := range stream.ResultChan() {
			if event.Type != watch.Deleted {
				w.saw(names(event.Object), time.Now())
			}
		}
		if watching.Err() == nil {
			b.broken(fmt.Errorf("the watch on the %s has ended", what))
		}
	}()
	return w, nil
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

// count is how many names were seen so far.
func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// all waits until every name was seen and returns when the last one was.
func (w *witness) all(ctx context.Context, names []string) (time.Time, error) {
	var last time.Time
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		w.mu.Lock()
		for len(names) > 0 {
			at, ok := w.seen[names[0]]
			if !ok {
				break
			}
			if at.After(last) {
				last = at
			}
			names = names[1:]
		}
		w.mu.Unlock()
		if len(names) == 0 {
			return last, nil
		}
		select {
		case <-w.news:
		case <-late.C:
			return last, fmt.Errorf("%s and %d more were not seen within %s", names[0], len(names)-1, patience)
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
}

// first returns when the first of the names was seen.
func (w *witness) first(names []string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first time.Time
	for _, name := range names {
		if at, ok := w.seen[name]; ok && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
