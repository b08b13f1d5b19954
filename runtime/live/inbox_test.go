package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/lane"
)

func event(typ, name string, version int) builtins.Event {
	return builtins.Event{Type: typ, Namespace: "a", Name: name, Result: starlark.MakeInt(version)}
}

// taken says what the inbox gives out, in order.
func taken(b *inbox) string {
	var out []string
	for in, ok := b.take(); ok; in, ok = b.take() {
		text := strings.TrimPrefix(fmt.Sprintf("%T", in), "engine.")
		if changed, ok := in.(engine.WatchChanged); ok {
			text = changed.ID
			for _, ev := range changed.Events {
				text += fmt.Sprintf(" %s:%s:%s", ev.Type, ev.Name, ev.Result)
				if ev.Old != nil {
					text += ":after " + ev.Old.String()
				}
				if ev.Same {
					text += ":same"
				}
				if ev.Wakes != nil {
					text += ":" + strings.Join(ev.Wakes.Keys, "+")
				}
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestWhatWaitsForTheEngineIsJoined(t *testing.T) {
	change := func(id string, events ...builtins.Event) func(*inbox) {
		return func(b *inbox) { b.changed(engine.WatchChanged{ID: id, Events: events}, true) }
	}
	put := func(in engine.Input) func(*inbox) { return func(b *inbox) { b.put(in) } }
	same := event("modified", "x", 3)
	same.Same = true
	wakes := func(version int, keys ...string) builtins.Event {
		ev := event("modified", "x", version)
		ev.Wakes = effect.WakesKeys(keys...)
		return ev
	}
	old := func(version int) builtins.Event {
		ev := event("modified", "x", version)
		ev.Old = starlark.MakeInt(version - 1)
		return ev
	}
	for name, c := range map[string]struct {
		puts []func(*inbox)
		want string
	}{
		"one change":         {[]func(*inbox){change("w", event("added", "x", 1))}, "w added:x:1"},
		"the last state":     {[]func(*inbox){change("w", event("added", "x", 1)), change("w", event("modified", "x", 2)), change("w", event("modified", "x", 3))}, "w added:x:1 modified:x:3"},
		"an object again":    {[]func(*inbox){change("w", event("added", "x", 1), event("deleted", "x", 1)), change("w", event("added", "x", 2))}, "w deleted:x:1 added:x:2"},
		"marks alone":        {[]func(*inbox){change("w", event("modified", "x", 2)), change("w", same)}, "w modified:x:3"},
		"marks at first":     {[]func(*inbox){change("w", same), change("w", same)}, "w modified:x:3:same"},
		"what was before":    {[]func(*inbox){change("w", old(2)), change("w", old(3)), change("w", same), change("w", old(4))}, "w modified:x:4:after 1"},
		"a move":             {[]func(*inbox){change("w", wakes(1, "a", "b")), change("w", wakes(2, "b", "c"))}, "w modified:x:2:a+b+c"},
		"a move to all":      {[]func(*inbox){change("w", wakes(1, "a")), change("w", event("modified", "x", 2)), change("w", wakes(3, "b"))}, "w modified:x:3"},
		"other watches":      {[]func(*inbox){change("w", event("added", "x", 1)), change("v", event("added", "y", 1)), change("w", event("added", "z", 2))}, "w added:x:1 added:z:2, v added:y:1"},
		"what a list parts":  {[]func(*inbox){change("w", event("added", "x", 1)), put(engine.WatchSynced{ID: "w"}), change("w", event("added", "y", 2))}, "w added:x:1, WatchSynced, w added:y:2"},
		"two equal lists":    {[]func(*inbox){put(engine.WatchSynced{ID: "w"}), put(engine.WatchSynced{ID: "w"})}, "WatchSynced"},
		"a kind that comes":  {[]func(*inbox){put(engine.WatchSynced{ID: "w"}), put(engine.WatchSynced{ID: "w", Served: true})}, "WatchSynced, WatchSynced"},
		"the last trouble":   {[]func(*inbox){put(engine.WatchFailed{ID: "w", Reason: "1"}), put(engine.WatchFailed{ID: "w"})}, "WatchFailed"},
		"trouble of two":     {[]func(*inbox){put(engine.WatchFailed{ID: "w"}), put(engine.WatchFailed{ID: "v"})}, "WatchFailed, WatchFailed"},
		"the last ConfigMap": {[]func(*inbox){put(engine.Config{}), put(engine.Committed{}), put(engine.Config{State: engine.ConfigMissing})}, "Config, Committed"},
		"all answers":        {[]func(*inbox){put(engine.Committed{}), put(engine.Committed{})}, "Committed, Committed"},
	} {
		b := newInbox()
		for _, put := range c.puts {
			put(b)
		}
		if got := taken(b); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if len(b.last) > 0 {
			t.Errorf("%s: %d entries are remembered after they are taken", name, len(b.last))
		}
	}
}

// An engine that does not get on is no reason to fill the memory.
func TestTheInboxIsBounded(t *testing.T) {
	b := newInbox()
	for i := range 100_000 {
		b.changed(engine.WatchChanged{ID: "w", Events: []builtins.Event{event("modified", fmt.Sprint(i%100), i)}}, true)
		b.changed(engine.WatchChanged{ID: "v", Events: []builtins.Event{event("added", fmt.Sprint(i), i)}}, false)
		b.put(engine.Config{})
		b.put(engine.WatchFailed{ID: "w", Reason: fmt.Sprint(i)})
	}
	for i := range 2 * maxRequests {
		err := b.request(engine.Requested{ID: uint64(i), Hook: "web/a"})
		if full := i >= maxRequests; full != errors.Is(err, engine.ErrBusy) {
			t.Fatalf("request %d: %v", i, err)
		}
	}
	if len(b.queue) != 4 || len(b.requests) != maxRequests {
		t.Errorf("%d inputs and %d requests wait", len(b.queue), len(b.requests))
	}
	if n := len(b.last["w"].events); n != 100 {
		t.Errorf("%d events of 100 objects wait", n)
	}
	if n := len(b.last["v"].events); n != lane.MaxEvents+1 {
		t.Errorf("%d events wait for a hook that gets one sync for more than %d", n, lane.MaxEvents)
	}
}

// Somebody waits for the answer to a request: what else waits does not delay it.
func TestRequestsGoFirst(t *testing.T) {
	b := newInbox()
	for range 1000 {
		b.put(engine.Committed{})
	}
	if err := b.request(engine.Requested{}); err != nil {
		t.Fatal(err)
	}
	b.putFirst(engine.RunDone{})
	if got := taken(b); !strings.HasPrefix(got, "Requested, RunDone, Committed, ") {
		t.Errorf("got %s", got[:60])
	}
}

// Requests without end do not keep what else waits from being handled.
func TestRequestsLeaveRoom(t *testing.T) {
	b := newInbox()
	b.put(engine.Committed{})
	for range 2 * maxAheadRequests {
		b.putFirst(engine.RunDone{})
	}
	b.put(engine.Saved{})
	for n := 1; ; n++ {
		in, ok := b.take()
		if _, waited := in.(engine.Saved); waited {
			break
		}
		if b.putFirst(engine.RunDone{}); !ok || n > 3*maxAheadRequests {
			t.Fatalf("%d inputs came before it", n)
		}
	}
}

// Changes that bring about no run are not measured as if they did.
func TestWhatTriggersARun(t *testing.T) {
	hook := func(cleanup starlark.Callable) *generation.Hook {
		return &generation.Hook{ID: "web/a", HookDecl: &builtins.HookDecl{Cleanup: cleanup}}
	}
	cleanup := starlark.NewBuiltin("cleanup", nil)
	all, added := &builtins.WatchBinding{}, &builtins.WatchBinding{Events: []string{"added"}}
	for name, c := range map[string]struct {
		watch engine.StartWatch
		event builtins.Event
		want  bool
	}{
		"any change":           {engine.StartWatch{Hook: hook(nil), Watch: all}, event("modified", "x", 1), true},
		"an unwanted type":     {engine.StartWatch{Hook: hook(nil), Watch: added}, event("modified", "x", 1), false},
		"a wanted type":        {engine.StartWatch{Hook: hook(nil), Watch: added}, event("added", "x", 1), true},
		"an object is gone":    {engine.StartWatch{Hook: hook(nil), Watch: all, Each: true}, event("deleted", "x", 1), false},
		"cleanup of an object": {engine.StartWatch{Hook: hook(cleanup), Watch: all, Each: true}, event("deleted", "x", 1), true},
		"the finalizer alone":  {engine.StartWatch{Hook: hook(cleanup), Watch: all, Each: true}, builtins.Event{Type: "modified", Same: true, Held: true}, false},
		"a deletion begins":    {engine.StartWatch{Hook: hook(cleanup), Watch: all, Each: true}, builtins.Event{Type: "modified", Same: true, Deleting: true}, true},
		"a watch that ended":   {engine.StartWatch{}, event("added", "x", 1), false},
	} {
		if got := triggers(c.watch, c.event); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// Of events that are for some objects none is left out, however many wait: there is no sync for all
// that would stand for them.
func TestEventsForSomeObjectsAreAllKept(t *testing.T) {
	b, n := newInbox(), 2*lane.MaxEvents
	for i := range n {
		some := event("modified", fmt.Sprint("some", i), i)
		some.Wakes = effect.WakesKeys("x")
		b.changed(engine.WatchChanged{ID: "v", Events: []builtins.Event{some, event("modified", fmt.Sprint("all", i), i)}}, false)
	}
	in, _ := b.take()
	some := 0
	for _, ev := range in.(engine.WatchChanged).Events {
		if ev.Wakes != nil {
			some++
		}
	}
	if all := len(in.(engine.WatchChanged).Events) - some; some != n || all != lane.MaxEvents+1 {
		t.Errorf("%d events for one object wait, %d for all", some, all)
	}
}
