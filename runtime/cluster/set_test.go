package cluster

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// setWorld applies the set "children" of ConfigMaps, as one process after another.
type setWorld struct {
	t      *testing.T
	api    *apitest.Server
	writer *Writer
}

func newSetWorld(t *testing.T) *setWorld {
	w := &setWorld{t: t, api: apitest.New(t)}
	w.restart()
	return w
}

func (s *setWorld) restart() {
	s.writer = NewWriter(WriterOptions{Client: newClient(s.t, s.api), Namespace: "ops", Name: "starling", Instance: "ops.starling"})
}

func (s *setWorld) apply(names ...string) error {
	w := effect.Write{Kind: effect.WriteSet, Ref: effect.Ref{Kind: "set", Name: "children"}, Set: &effect.Set{Name: "children"}}
	for _, name := range names {
		ref := configRef
		ref.Name = name
		w.Set.Members = append(w.Set.Members, effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: configMap("a", name)})
	}
	return s.writer.Write(context.Background(), "starling/web/f", w)
}

func (s *setWorld) expect(want ...string) {
	s.t.Helper()
	got := []string{}
	for _, n := range s.api.Snapshot("v1", "ConfigMap", func(o map[string]any) any { return effect.RefOf(o).Name }) {
		got = append(got, n.(string))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// sets are those in memory, of the one hook.
func (s *setWorld) sets() map[string]*set {
	if h := s.writer.hooks["starling/web/f"]; h != nil {
		return h.sets
	}
	return nil
}

func (s *setWorld) records() int {
	return len(s.api.Snapshot("v1", "Secret", func(o map[string]any) any { return o }))
}

func TestSet(t *testing.T) {
	s := newSetWorld(t)
	if err := s.apply("b", "c"); err != nil {
		t.Fatal(err)
	}
	s.expect("b", "c")
	before := s.api.Count("patch secrets")
	if err := s.apply("b", "c"); err != nil {
		t.Fatal(err)
	}
	if n := s.api.Count("patch secrets") - before; n > 0 || s.records() != 1 {
		t.Errorf("a set that stays as it is writes the record %d times; %d records", n, s.records())
	}
	s.restart()
	if err := s.apply("c", "d"); err != nil {
		t.Fatal(err)
	}
	s.expect("c", "d")

	// Members are healed, also without their label; what others made stays.
	s.api.Put(configMap("a", "c"))
	s.api.Remove("v1", "ConfigMap", "a", "d")
	s.api.Put(configMap("a", "e"))
	if err := s.apply("c", "d"); err != nil {
		t.Fatal(err)
	}
	s.expect("c", "d", "e")
	err := s.apply("c", "d", "e")
	if want := `cannot apply ConfigMap a/e: it is there, and set "children" of this hook did not make it: delete it, or give the member another name (2 of 3 objects of set "children" applied)`; err == nil || err.Error() != want {
		t.Errorf("error is\n%v, want\n%s", err, want)
	}
	s.expect("c", "d", "e")
	if err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.expect("e")
	if s.records() != 0 {
		t.Error("the record of a hook without objects stays")
	}
}

// Sets come and go with the objects that hooks are about.
func TestSetsThatAreEmptyAreForgotten(t *testing.T) {
	s := newSetWorld(t)
	for _, step := range []struct {
		names []string
		kept  int
	}{{[]string{"b", "c"}, 1}, {[]string{"c"}, 1}, {nil, 0}, {[]string{"b"}, 1}, {nil, 0}} {
		if err := s.apply(step.names...); err != nil {
			t.Fatal(err)
		}
		s.expect(append([]string{}, step.names...)...)
		if n := len(s.sets()); n != step.kept {
			t.Errorf("%q: %d sets in memory, want %d", step.names, n, step.kept)
		}
	}
}

// One by one, objects of one kind go in the opposite order, the same each time.
func TestSetPrunesInOrder(t *testing.T) {
	s := newSetWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	if err := s.apply(names...); err != nil {
		t.Fatal(err)
	}
	var gone []string
	s.writer.o.SideBySide = 1
	s.writer.o.Observe = func(ref effect.Ref, obj map[string]any, _ *effect.Cause, _ time.Time) {
		if obj == nil {
			gone = append(gone, ref.Name)
		}
	}
	if err := s.apply(); err != nil {
		t.Fatal(err)
	}
	if slices.Reverse(gone); !slices.Equal(gone, names) {
		t.Errorf("deleted %q, from the end", gone)
	}
}

// Somebody has put another object in the place of a member that is to go: also one with all its marks, as
// from a file that was saved.
func TestSetLeavesWhatOthersMade(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		s := newSetWorld(t)
		if err := s.apply("b", "c", "d"); err != nil {
			t.Fatal(err)
		}
		saved := s.api.Snapshot("v1", "ConfigMap", func(o map[string]any) any { return o })[0].(map[string]any)
		s.api.Remove("v1", "ConfigMap", "a", "b")
		s.api.Remove("v1", "ConfigMap", "a", "c")
		metadata := saved["metadata"].(map[string]any)
		for _, key := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp"} {
			delete(metadata, key)
		}
		s.api.Put(saved)
		s.api.Put(configMap("a", "c"))
		if restarts {
			s.restart()
		}
		if err := s.apply("d"); err != nil {
			t.Fatal(err)
		}
		s.expect("b", "c", "d")
	}
}

// The process dies after each of its writes in turn; the next one lists less.
func TestSetAfterACrash(t *testing.T) {
	for n := range 6 {
		s := newSetWorld(t)
		ctx, cancel := context.WithCancel(context.Background())
		var done atomic.Int64 // members are written side by side
		s.writer = NewWriter(WriterOptions{Client: newClient(t, s.api, finished), Namespace: "ops", Name: "starling", Instance: "ops.starling",
			Observe: func(effect.Ref, map[string]any, *effect.Cause, time.Time) {
				if done.Add(1) >= int64(n) {
					cancel()
				}
			}})
		w := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children"}}
		for _, name := range []string{"b", "c", "d"} {
			ref := configRef
			ref.Name = name
			w.Set.Members = append(w.Set.Members, effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: configMap("a", name)})
		}
		_ = s.writer.Write(ctx, "starling/web/f", w)
		cancel()
		s.restart()
		if err := s.apply("d"); err != nil {
			t.Fatalf("after %d writes: %v", n, err)
		}
		s.expect("d")
	}
}

func TestSetWithABrokenRecord(t *testing.T) {
	s := newSetWorld(t)
	if err := s.apply("b"); err != nil {
		t.Fatal(err)
	}
	record := s.api.Snapshot("v1", "Secret", func(o map[string]any) any { return o })[0].(map[string]any)
	record["data"] = map[string]any{"places": "e30="}
	s.api.Put(record)
	s.restart()
	if err := s.apply("c"); err == nil || !strings.Contains(err.Error(), "which records where sets of objects are, cannot be read: delete it") {
		t.Errorf("error is %v", err)
	}
	s.expect("b")
	s.api.Remove("v1", "Secret", "ops", effect.RefOf(record).Name)
	s.restart()
	if err := s.apply("c"); err != nil {
		t.Error(err)
	}
	s.expect("c") // what carries the marks is found where the hook has objects still
}

func TestSetWhoseKindIsGone(t *testing.T) {
	s := newSetWorld(t)
	s.api.Serve(widget)
	w := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children"}}
	obj := configMap("a", "w")
	obj["apiVersion"], obj["kind"] = widget.APIVersion, widget.Kind
	w.Set.Members = []effect.Write{{Kind: effect.WriteApply, Ref: effect.RefOf(obj), Force: true, Object: obj}}
	if err := s.writer.Write(context.Background(), "starling/web/f", w); err != nil {
		t.Fatal(err)
	}
	s.api.Unserve(widget)
	s.restart()
	if err := s.apply("b"); err != nil {
		t.Fatal(err)
	}
	s.expect("b")
	// It may be served again, with its objects.
	record := s.api.Snapshot("v1", "Secret", func(o map[string]any) any { return o })[0].(map[string]any)
	places, err := base64.StdEncoding.DecodeString(record["data"].(map[string]any)["places"].(string))
	if err != nil || !strings.Contains(string(places), widget.Kind) {
		t.Errorf("the record has forgotten the kind: %s, %v", places, err)
	}
}

// A namespace that is given for a cluster-scoped object says nothing: the member is found where lists show it.
func TestSetOfClusterScopedObjects(t *testing.T) {
	s := newSetWorld(t)
	s.api.Serve(apitest.Kind{APIVersion: "example.com/v1", Kind: "Gadget", Resource: "gadgets"})
	apply := func(names ...string) {
		t.Helper()
		w := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children"}}
		for _, name := range names {
			obj := configMap("a", name)
			obj["apiVersion"], obj["kind"] = "example.com/v1", "Gadget"
			w.Set.Members = append(w.Set.Members, effect.Write{Kind: effect.WriteApply, Ref: effect.RefOf(obj), Force: true, Object: obj})
		}
		if err := s.writer.Write(context.Background(), "starling/web/f", w); err != nil {
			t.Fatal(err)
		}
		there := s.api.Snapshot("example.com/v1", "Gadget", func(o map[string]any) any { return effect.RefOf(o).String() })
		want := []any{}
		for _, name := range names {
			want = append(want, "Gadget "+name)
		}
		if diff := cmp.Diff(want, append([]any{}, there...)); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
	}
	apply("b", "c")
	writes := s.api.Count("patch gadgets")
	apply("b", "c")
	s.restart()
	apply("b", "c")
	if n := s.api.Count("patch gadgets") - writes; n > 0 {
		t.Errorf("members that are as they should be are written %d times", n)
	}
	s.restart()
	apply("c")
}

func TestEvents(t *testing.T) {
	api := apitest.New(t)
	uid := uidOf(api.Put(configMap("a", "x")))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := NewWriter(WriterOptions{Client: newClient(t, api), Now: func() time.Time { return now }})
	say := func(ref effect.Ref, message string) {
		t.Helper()
		if err := w.Write(context.Background(), "starling/web/f", effect.Write{Kind: effect.WriteEvent, Ref: ref,
			Event: &effect.Event{Type: "Normal", Reason: "Copied", Message: message}}); err != nil {
			t.Fatal(err)
		}
	}
	events := func() []any {
		return api.Snapshot("v1", "Event", func(o map[string]any) any {
			about := o["involvedObject"].(map[string]any)
			return []any{o["metadata"].(map[string]any)["namespace"], about["name"], about["uid"], o["message"], o["count"], o["lastTimestamp"]}
		})
	}
	say(configRef, "once")
	now = now.Add(30 * time.Second)
	say(configRef, "once") // too soon to count
	want := []any{[]any{"a", "x", uid, "once", int64(1), "2026-01-01T00:00:00Z"}}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Errorf("after two at once (-want +got):\n%s", diff)
	}
	now = now.Add(time.Minute)
	say(configRef, "once")
	want = []any{[]any{"a", "x", uid, "once", int64(2), "2026-01-01T00:01:30Z"}}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Errorf("a minute later (-want +got):\n%s", diff)
	}
	say(configRef, "another")
	say(effect.Ref{APIVersion: "v1", Kind: "Node", Name: "n"}, "about nothing")
	if n := len(events()); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
	long := strings.Repeat("x", 253)
	if name := eventName("m", "", effect.Write{Ref: effect.Ref{Name: long}, Event: &effect.Event{}}); len(name) > 253 {
		t.Errorf("the name has %d characters", len(name))
	}
}

// A grant for Events gives no right to read what they are about: an Event says the uid where a watch
// has it, and goes without it where nobody may know it.
func TestEventsAboutWhatMayNotBeRead(t *testing.T) {
	api := apitest.New(t)
	uid := uidOf(api.Put(configMap("a", "x")))
	api.Deny("get configmaps", http.StatusForbidden)
	for _, known := range []map[string]any{nil, api.Object("v1", "ConfigMap", "a", "x")} {
		w := NewWriter(WriterOptions{Client: newClient(t, api), Known: func(effect.Ref) map[string]any { return known }})
		event := effect.Write{Kind: effect.WriteEvent, Ref: configRef, Event: &effect.Event{Type: "Warning", Reason: "Bad", Message: "text"}}
		for range 2 { // it is the same Event
			if err := w.Write(t.Context(), "starling/web/f", event); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := map[any]int{}
	for _, uid := range api.Snapshot("v1", "Event", func(o map[string]any) any { return o["involvedObject"].(map[string]any)["uid"] }) {
		got[uid]++
	}
	if diff := cmp.Diff(map[any]int{nil: 1, uid: 1}, got); diff != "" {
		t.Errorf("uids (-want +got):\n%s", diff)
	}
	api.Deny("get configmaps", http.StatusInternalServerError)
	w := NewWriter(WriterOptions{Client: newClient(t, api)})
	if err := w.Write(t.Context(), "starling/web/f", effect.Write{Kind: effect.WriteEvent, Ref: configRef, Event: &effect.Event{Reason: "A"}}); err == nil {
		t.Error("an API server that is out of order is no error")
	}
}

// The same hook of the same module, in another instance, has its own sets.
func TestSetsKnowTheirInstance(t *testing.T) {
	s := newSetWorld(t)
	if err := s.apply("b"); err != nil {
		t.Fatal(err)
	}
	s.writer = NewWriter(WriterOptions{Client: newClient(t, s.api), Namespace: "ops", Name: "other", Instance: "ops.other"})
	if err := s.apply("b"); err == nil || !strings.Contains(err.Error(), "did not make it") {
		t.Errorf("a member of the other instance's set: %v", err)
	}
	if err := s.apply(); err != nil {
		t.Fatal(err)
	}
	s.expect("b")
}

// An object that others have made holds up no other member. Former members go all the same where the
// hook says on_error = "continue".
func TestSetGoesOnBesideAForeignObject(t *testing.T) {
	for _, goesOn := range []bool{false, true} {
		s := newSetWorld(t)
		if err := s.apply("b", "c"); err != nil {
			t.Fatal(err)
		}
		s.api.Put(configMap("a", "d"))
		s.api.Put(configMap("a", "f"))
		w := effect.Write{Kind: effect.WriteSet, Set: &effect.Set{Name: "children"}, Continue: goesOn}
		for _, name := range []string{"d", "f", "c", "e", "g"} {
			ref := configRef
			ref.Name = name
			w.Set.Members = append(w.Set.Members, effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: configMap("a", name)})
		}
		err := s.writer.Write(context.Background(), "starling/web/f", w)
		const foreign = `it is there, and set "children" of this hook did not make it: delete it, or give the member another name`
		if want := `cannot apply ConfigMap a/d: ` + foreign + `; cannot apply ConfigMap a/f: ` + foreign + ` (3 of 5 objects of set "children" applied)`; err == nil || err.Error() != want {
			t.Errorf("error is\n%v, want\n%s", err, want)
		}
		if goesOn {
			s.expect("c", "d", "e", "f", "g")
		} else {
			s.expect("b", "c", "d", "e", "f", "g")
		}
		s.restart()
		if err := s.apply(); err != nil {
			t.Fatal(err)
		}
		s.expect("d", "f")
	}
}
