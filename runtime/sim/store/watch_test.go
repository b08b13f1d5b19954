package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestWatchersHearInOrder(t *testing.T) {
	f := setup(t, Options{})
	calls := 0
	w, err := f.Watch(Target{GVR: configMaps}, WatchOptions{Notify: func() {
		calls++
		f.Version() // the store may be called
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.create(configMaps, named("a"))
	f.create(configMaps, named("b"))
	f.patch(at(configMaps, "a"), `{"data":{"k":"1"}}`)
	f.patch(at(configMaps, "a"), `{"data":{"k":"1"}}`) // changes nothing
	if _, err := f.Delete(at(configMaps, "b"), DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ADDED a", "ADDED b", "MODIFIED a", "DELETED b"}, events(w)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if calls != 4 {
		t.Errorf("Notify was called %d times, want 4", calls)
	}
	if got := versionOf(w.Bookmark().Object); got != f.Version() {
		t.Errorf("the bookmark says %s, the store %s", got, f.Version())
	}
	w.Stop()
	f.create(configMaps, named("c"))
	if got := events(w); got != nil || w.Served() || calls != 4 {
		t.Errorf("a watch that has stopped hears %v (%d calls)", got, calls)
	}
}

func TestWatchesAndPagesFromBeforeTheHistory(t *testing.T) {
	f := setup(t, Options{})
	f.create(configMaps, named("a"))
	f.create(configMaps, named("b"))
	page, err := f.List(Target{GVR: configMaps}, ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Watch(Target{GVR: configMaps}, WatchOptions{Version: page.Version})
	if err != nil {
		t.Fatal(err)
	}
	f.Forget()
	late, err := f.Watch(Target{GVR: configMaps}, WatchOptions{Version: page.Version})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*Watcher{old, late} {
		e, ok := w.Next()
		if !ok || e.Type != "ERROR" || e.Object["code"] != int64(410) || e.Object["reason"] != "Expired" {
			t.Errorf("the first event is %v", e)
		}
		if e, ok := w.Next(); ok {
			t.Errorf("after the error comes %v", e)
		}
	}
	if _, err := f.List(Target{GVR: configMaps}, ListOptions{Limit: 1, Continue: page.Continue}); !apierrors.IsResourceExpired(err) {
		t.Errorf("the next page: %v", err)
	}
	if _, err := f.List(Target{GVR: configMaps}, ListOptions{Version: "999999"}); !apierrors.IsTimeout(err) {
		t.Errorf("a list from the future: %v", err)
	}
}

func TestTheHistoryIsBounded(t *testing.T) {
	f := setup(t, Options{History: 8})
	first := f.Version()
	for i := range 50 {
		f.create(configMaps, named(fmt.Sprintf("c%d", i)))
	}
	if n := len(f.history); n > 11 {
		t.Errorf("%d changes are kept, want about 8", n)
	}
	w, err := f.Watch(Target{GVR: configMaps}, WatchOptions{Version: first})
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := w.Next(); !ok || e.Type != "ERROR" {
		t.Errorf("a watch from before the history: %v", e)
	}
}
