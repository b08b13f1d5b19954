package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// arrivals sees each object that is made, also one that is gone before anybody lists it.
type arrivals struct {
	mu        sync.Mutex
	made      map[string][]types.UID // by resource, namespace and name, one after the other
	passwords map[string][]string    // of Secrets: what data.password was, one after the other
}

// watchArrivals watches objects of these kinds in these namespaces until the test ends.
func watchArrivals(t *testing.T, namespaces []string, kinds ...schema.GroupVersionResource) *arrivals {
	t.Helper()
	a := &arrivals{made: map[string][]types.UID{}, passwords: map[string][]string{}}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	t.Cleanup(func() { cancel(); done.Wait() })
	for _, ns := range namespaces {
		for _, kind := range kinds {
			w, err := shared.Dynamic.Resource(kind).Namespace(ns).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			done.Go(func() {
				for e := range w.ResultChan() {
					o, is := e.Object.(*unstructured.Unstructured)
					if ctx.Err() != nil {
						return
					}
					if !is {
						t.Errorf("the watch of %s says %v", kind.Resource, e.Object)
						return
					}
					a.see(e.Type, arrivalKey(kind, ns, o.GetName()), o)
				}
				if ctx.Err() == nil {
					t.Errorf("the watch of %s has ended", kind.Resource)
				}
			})
		}
	}
	return a
}

func arrivalKey(kind schema.GroupVersionResource, ns, name string) string {
	return kind.Resource + " " + ns + "/" + name
}

func (a *arrivals) see(what watch.EventType, key string, o *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if what == watch.Added {
		a.made[key] = append(a.made[key], o.GetUID())
	}
	password, has, _ := unstructured.NestedString(o.Object, "data", "password")
	if known := a.passwords[key]; has && (len(known) == 0 || known[len(known)-1] != password) {
		a.passwords[key] = append(known, password)
	}
}

// sofar is how many objects were made under each key.
func (a *arrivals) sofar() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]int{}
	for key, uids := range a.made {
		out[key] = len(uids)
	}
	return out
}

// check is nil when the last object under key is this one. It says that it was made twice when there are more
// than so many.
func (a *arrivals) check(key string, last types.UID, want int) (twice bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	uids := a.made[key]
	if len(uids) == 0 || uids[len(uids)-1] != last {
		return false, fmt.Errorf("the watch has not seen %s %s yet", key, last)
	}
	passwords := a.passwords[key]
	return len(uids) > want || len(passwords) > len(uids), nil
}
