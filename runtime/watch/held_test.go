package watch

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/lane"
)

// A watch whose objects take more memory than it may hold is stopped with a reason, at its
// first list or later; the others go on.
func TestAWatchThatHoldsTooMuchIsStopped(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("apart=%v, streamed=%v", apart, streaming), func(t *testing.T) {
				f := newFixture(t)
				if !streaming {
					f.api.NoStreaming()
				}
				f.manager.Shutdown()
				f.manager = New(Options{Client: f.client, Sink: f.recorder, Held: 2 << 20, Backoff: lane.Backoff{Factor: 1}})
				t.Cleanup(f.manager.Shutdown)
				large := strings.Repeat("x", 300<<10)
				for i := range 3 {
					f.api.Put(configMap("a", fmt.Sprint(i), "1"+large))
				}
				whole := Spec{ID: "whole", APIVersion: "v1", Kind: "ConfigMap"}
				if apart {
					whole.Filter, whole.FilterID, whole.Apart = dataFilter, "all data", true
				}
				f.manager.Start(whole)
				f.await("whole synced served=true")
				small := configMaps("small")
				small.Filter, small.FilterID = func(obj map[string]any) (v starlark.Value, keep bool, err error) {
					return starlark.String(obj["data"].(map[string]any)["d"].(string)[:1]), true, nil
				}, "small"
				f.manager.Start(small)
				f.await("small synced served=true")
				f.api.Put(configMap("a", "3", "1"+large))
				f.told("whole lacks: stopped: its objects take more than the 1 MiB that one watch may hold; keep less of each ConfigMap with filter=")
				f.snapshot("whole", "[]")
				if f.manager.Complete("whole") || !f.manager.Complete("small") {
					t.Error("what is stopped is not complete, and nothing else")
				}
				f.api.Put(configMap("a", "0", "2"))
				f.told(`small modified a/0 "2"`)
				f.snapshot("small", `["2" "1" "1" "1"]`)

				late := whole
				late.ID = "late" // is on what was stopped
				f.manager.Start(late)
				f.told("late lacks: stopped: ")
				f.manager.Stop("whole")
				f.manager.Stop("late")
				f.manager.Start(whole) // lists again, and is too large at once
				f.told("whole synced served=true")
				f.api.Put(configMap("a", "0", "1"+large))
				f.told("whole lacks: stopped: ")
				f.manager.Stop("whole")
				f.manager.Start(whole)
				f.told("whole lacks: stopped: ")
			})
		}
	}
}

// A watch that is stopped while it lists, or while its filter is at an object, leaves nothing
// behind in what all watches hold together.
func TestAWatchThatIsStoppedWhileItListsHoldsNothing(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, listed := range []bool{false, true} {
			t.Run(fmt.Sprintf("apart=%v, listed=%v", apart, listed), func(t *testing.T) {
				f := newFixture(t)
				if !listed {
					f.api.Put(configMap("a", "0", strings.Repeat("x", 300<<10)))
				}
				entered, leave := make(chan struct{}), make(chan struct{})
				f.manager.Start(Spec{
					ID: "slow", APIVersion: "v1", Kind: "ConfigMap", Apart: apart, FilterID: "slow",
					Filter: func(obj map[string]any) (starlark.Value, bool, error) {
						close(entered)
						<-leave
						return starlark.String(obj["data"].(map[string]any)["d"].(string)), true, nil
					},
				})
				if listed {
					f.await("slow synced served=true")
					f.api.Put(configMap("a", "0", strings.Repeat("x", 300<<10)))
				}
				<-entered
				f.manager.Stop("slow")
				close(leave)
				f.manager.Shutdown() // waits for what is under way
				if held := f.manager.held.all; held != 0 {
					t.Errorf("%d bytes are counted of no watch", held)
				}
			})
		}
	}
}

// The watch with whose objects all watches together hold more than they may is stopped with a
// reason, at its first list or later; the others go on, and it has room once one of them ends.
func TestTheWatchThatPassesWhatAllMayHoldIsStopped(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("apart=%v, streamed=%v", apart, streaming), func(t *testing.T) {
				f := newFixture(t)
				if !streaming {
					f.api.NoStreaming()
				}
				f.manager.Shutdown()
				f.manager = New(Options{Client: f.client, Sink: f.recorder, Held: 2 << 20, Backoff: lane.Backoff{Factor: 1}})
				t.Cleanup(f.manager.Shutdown)
				large := strings.Repeat("x", 300<<10)
				spec := func(namespace string) Spec {
					s := Spec{ID: namespace, APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{namespace}}
					if apart {
						s.Filter, s.FilterID, s.Apart = dataFilter, "all data", true
					}
					return s
				}
				for _, namespace := range []string{"a", "b", "c"} {
					for i := range 3 { // below what one watch may hold
						f.api.Put(configMap(namespace, fmt.Sprint(i), large))
					}
				}
				f.manager.Start(spec("a"))
				f.await("a synced served=true")
				f.manager.Start(spec("b"))
				f.await("b synced served=true")
				const why = "lacks: stopped: with its objects all watches hold more than 2 MiB; keep less of each ConfigMap with filter="
				f.manager.Start(spec("c"))
				f.told("c " + why)
				f.snapshot("c", "[]")
				f.api.Put(configMap("a", "0", "small"))
				f.told("a modified a/0")
				f.api.Put(configMap("b", "0", "small"))
				f.told("b modified b/0")

				f.manager.Stop("c")
				f.manager.Stop("a")
				f.manager.Start(spec("c")) // has room now
				f.told("c synced served=true")
				f.api.Put(configMap("a", "1", "small"))
				f.manager.Start(spec("a"))
				f.told("a synced served=true")
				f.api.Put(configMap("b", "0", large)) // which b held before
				f.told("b " + why)
				f.api.Put(configMap("c", "0", "small"))
				f.told("c modified c/0")
			})
		}
	}
}

// known is a result that knows what is kept of its object.
type known struct{ starlark.Value }

func (known) Size() int64 { return 650 }

func TestResultsThatKnowTheirSize(t *testing.T) {
	if n := weighValue(known{starlark.String("x")}); n != 650 {
		t.Errorf("it counts as %d bytes", n)
	}
}

// However many large objects a watch of for_each has, they leave room for others: what has none is told of alone, at the
// first list or later.
func TestLargeObjectsLeaveRoomForOthers(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("apart=%v, streamed=%v", apart, streaming), func(t *testing.T) {
				f := newFixture(t)
				if !streaming {
					f.api.NoStreaming()
				}
				f.manager.Shutdown()
				f.manager = New(Options{Client: f.client, Sink: f.recorder, Held: 2 << 20, Backoff: lane.Backoff{Factor: 1}})
				t.Cleanup(f.manager.Shutdown)
				large := strings.Repeat("x", 200<<10)
				for i := range 9 {
					f.api.Put(configMap("a", fmt.Sprint("large-", i), large))
				}
				f.api.Put(configMap("a", "small", "1"))
				spec := Spec{ID: "each", APIVersion: "v1", Kind: "ConfigMap", Each: true}
				if apart {
					spec.Filter, spec.FilterID, spec.Apart = dataFilter, "all data", true
				}
				f.manager.Start(spec)
				f.told("each failed the filter fails on ConfigMap a/large-2 (and on 6 more), and what has no result has no run before it has one: it takes 20")
				f.told("each synced served=true")
				f.api.Put(configMap("a", "small", "2"))
				f.told("each modified a/small")
				f.api.Put(configMap("a", "smaller", "1"))
				f.told("each added a/smaller")
				f.api.Put(configMap("a", "small", large)) // its last result stays
				f.told("each failed")
				f.api.Put(configMap("a", "smaller", "2"))
				f.told("each modified a/smaller")
				kept := 0
				for _, e := range f.manager.Entries("each") {
					if e.Result != nil && len(e.Result.String()) > len(large) {
						kept++
					}
				}
				if kept == 0 || kept > 4 {
					t.Errorf("%d large ones are kept", kept)
				}
			})
		}
	}
}

// When all is full, the module that holds most gives way: its largest watch is stopped, and others have their objects. A
// module that holds more than others takes nothing from them, and one that shares a small watch does not bring it down.
func TestTheModuleThatHoldsMostGivesWay(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("apart=%v, streamed=%v", apart, streaming), func(t *testing.T) {
				f := newFixture(t)
				if !streaming {
					f.api.NoStreaming()
				}
				f.manager.Shutdown()
				f.manager = New(Options{Client: f.client, Sink: f.recorder, Held: 2 << 20, Backoff: lane.Backoff{Factor: 1}})
				t.Cleanup(f.manager.Shutdown)
				spec := func(module, namespace string) Spec {
					s := Spec{ID: module + "-" + namespace, APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{namespace}, Module: module}
					if apart {
						s.Filter, s.FilterID, s.Apart = dataFilter, "all data", true
					}
					return s
				}
				large := strings.Repeat("x", 200<<10)
				for namespace, n := range map[string]int{"a": 3, "b": 4, "c": 4, "d": 2} {
					for i := range n {
						f.api.Put(configMap(namespace, fmt.Sprint(i), large))
					}
				}
				f.api.Put(configMap("small", "0", "1"))
				for _, s := range []Spec{spec("greedy", "a"), spec("greedy", "small"), spec("greedy", "b")} {
					f.manager.Start(s)
					f.await(s.ID + " synced served=true")
				}
				f.manager.Start(spec("modest", "small"))
				f.await("modest-small synced served=true")
				f.manager.Start(spec("modest", "c"))
				f.told("greedy-b lacks: stopped: all watches hold more than 2 MiB, and those of its module the most; keep less of each ConfigMap with filter=", "modest-c synced served=true")
				f.manager.Start(spec("late", "d"))
				f.told("late-d synced served=true")

				// Of for_each each object has a quarter of what others would have to give up.
				each := spec("each", "d")
				each.Each = true
				f.manager.Start(each)
				f.told("modest-c lacks: stopped: all watches hold more than 2 MiB, and those of its module the most", "each-d synced served=true")
				if n := f.manager.Size("each-d"); n != 2 {
					t.Errorf("%d of for_each", n)
				}
				for _, id := range []string{"greedy-a", "greedy-small", "modest-small", "late-d", "each-d"} {
					if !f.manager.Complete(id) {
						t.Errorf("%s is stopped", id)
					}
				}
			})
		}
	}
}

// late is the error of a filter that ran out of time.
type late struct{ error }

func (late) Timeout() bool { return true }

// A filter that ran out of time, as on a busy machine, is tried again although its object stays as it is.
func TestAFilterThatRanOutOfTime(t *testing.T) {
	for _, apart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &flaky{r: rand.New(rand.NewPCG(1, 1)), objects: map[string]map[string]any{}, news: make(chan struct{}), version: 5, first: 5, calm: true}
			c.put("a", "1")
			m := New(Options{Client: c, Sink: &recorder{t: t, more: make(chan struct{})}})
			spec, calls := configMaps("w"), 0
			spec.Apart, spec.Filter = apart, func(map[string]any) (starlark.Value, bool, error) {
				if calls++; calls == 1 {
					return nil, false, late{errors.New("no time")}
				}
				return starlark.True, true, nil
			}
			m.Start(spec)
			time.Sleep(tryAgain - time.Second)
			if got := m.Snapshot("w"); len(got) > 0 {
				t.Errorf("apart %v: at first there is %v", apart, got)
			}
			time.Sleep(time.Minute)
			if got := m.Snapshot("w"); len(got) != 1 || calls != 2 {
				t.Errorf("apart %v: %v after %d calls", apart, got, calls)
			}
			m.Shutdown()
			time.Sleep(2 * time.Hour) // a goroutine that is left is found as the bubble ends
		})
	}
}
