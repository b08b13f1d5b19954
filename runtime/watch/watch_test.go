package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	"go.starlark.net/starlark"
)

func TestFollowsObjects(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streaming), func(t *testing.T) {
			f := newFixture(t)
			if !streaming {
				f.api.NoStreaming()
			}
			f.api.Put(configMap("b", "x", "1"))
			f.api.Put(configMap("a", "y", "2"))
			f.api.Put(configMap("a", "hidden", "skip"))
			f.manager.Start(configMaps("w"))
			f.await("w synced served=true")
			f.snapshot("w", `["2" "1"]`)
			if n := f.manager.Size("w"); n != 2 {
				t.Errorf("size is %d, want 2", n)
			}

			f.api.Put(configMap("a", "z", "3"))
			f.await(`w added a/z "3"`)
			noise := configMap("a", "z", "3")
			noise["data"].(map[string]any)["noise"] = "much"
			f.api.Put(noise) // same result: no event
			f.api.Put(configMap("a", "z", "4"))
			f.await(`w modified a/z "4"`)
			f.api.Put(configMap("a", "hidden", "seen"))
			f.await(`w added a/hidden "seen"`)
			f.api.Put(configMap("b", "x", "skip"))
			f.await(`w deleted b/x "1"`)
			f.api.Remove("v1", "ConfigMap", "a", "y")
			f.await(`w deleted a/y "2"`)
			f.snapshot("w", `["seen" "4"]`)
			f.nothing()
		})
	}
}

func TestWholeObjectsWithoutFilter(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	f.manager.Start(Spec{ID: "w", APIVersion: "v1", Kind: "ConfigMap"})
	f.await("w synced served=true")
	got := f.manager.Snapshot("w")[0].(starlark.HasAttrs)
	if kind, err := got.Attr("kind"); err != nil || kind != starlark.String("ConfigMap") {
		t.Errorf("kind is %v (%v), want ConfigMap: items of lists do not carry it", kind, err)
	}
}

func TestSelectors(t *testing.T) {
	f := newFixture(t)
	labelled := configMap("a", "x", "1")
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"app": "web"}
	f.api.Put(labelled)
	f.api.Put(configMap("a", "y", "2"))
	f.api.Put(configMap("b", "y", "3"))
	f.api.Put(configMap("c", "y", "4"))

	labels := configMaps("labels")
	labels.Labels = "app=web"
	f.manager.Start(labels)
	f.await("labels synced served=true")
	f.snapshot("labels", `["1"]`)

	parts := configMaps("parts")
	parts.Namespaces, parts.Names = []string{"b", "a"}, []string{"y", "x"}
	f.manager.Start(parts)
	f.await("parts synced served=true")
	f.snapshot("parts", `["1" "2" "3"]`)

	bad := configMaps("bad")
	bad.Labels = "app in"
	f.manager.Start(bad)
	f.mustFail("bad", "label selector")
}

// mustFail awaits one failure of a watch that contains text.
func (f *fixture) mustFail(id, text string) {
	f.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		f.mu.Lock()
		more := f.more
		var line string
		if len(f.lines) > 0 {
			line, f.lines = f.lines[0], f.lines[1:]
		}
		f.mu.Unlock()
		if line != "" {
			if !strings.HasPrefix(line, id+" failed ") || !strings.Contains(line, text) {
				f.t.Fatalf("the sink was told %q, want a failure of %s with %q", line, id, text)
			}
			return
		}
		select {
		case <-more:
		case <-deadline:
			f.t.Fatalf("no failure of %s", id)
		}
	}
}

func TestBurstStaysInOrder(t *testing.T) {
	f := newFixture(t)
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")
	const n = 1000
	var want []string
	for i := range n {
		f.api.Put(configMap("a", "x", fmt.Sprint(i)))
		typ := Modified
		if i == 0 {
			typ = Added
		}
		want = append(want, fmt.Sprintf("w %s a/x \"%d\"", typ, i))
	}
	f.await(want...)
}

func TestRelistTellsRealDifferencesOnly(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"same", "changed", "gone"} {
		f.api.Put(configMap("a", name, name))
	}
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")

	f.unseen(func() {
		f.api.Put(configMap("a", "changed", "other"))
		f.api.Put(configMap("a", "new", "new"))
		f.api.Remove("v1", "ConfigMap", "a", "gone")
		f.api.Expire() // 410 Gone
	})
	f.await(`w modified a/changed "other"`, `w deleted a/gone "gone"`, `w added a/new "new"`)
	f.snapshot("w", `["other" "new" "same"]`)

	f.api.Cut() // goes on where it was
	f.api.Put(configMap("a", "new", "newer"))
	f.await(`w modified a/new "newer"`)
	f.nothing()
}

// With Lists each list is told of, and how far the watch has come with it.
func TestListsAreTold(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	spec := configMaps("w")
	spec.Lists, spec.Namespaces = true, []string{"a", "b"}
	f.manager.Start(spec)
	f.await("w synced served=true")
	f.manager.Start(configMaps("other"))
	f.await("other synced served=true")
	before := f.manager.Positions("w")
	f.unseen(func() {
		f.api.Put(configMap("b", "y", "1"))
		f.api.Remove("v1", "ConfigMap", "b", "y")
		f.api.Expire()
	})
	f.await("w synced served=true", "w synced served=true")
	at := f.manager.Positions("w")
	if len(at) != 2 || at.In("a") <= before.In("a") || at.In("b") <= before.In("b") || at.In("c") != 0 {
		t.Errorf("it has come from %v to %v", before, at)
	}
	f.nothing()
}

func TestForbiddenKeepsTrying(t *testing.T) {
	f := newFixture(t)
	f.api.NoStreaming()
	f.api.Deny("list configmaps", 403)
	f.manager.Start(configMaps("w"))
	f.mustFail("w", "not allowed to list configmaps")
	f.api.Deny("list configmaps", 0)
	f.await("w failed <nil>", "w synced served=true")
	f.nothing()
}

// A list that is not found, of a kind that discovery serves, is told of: an API server behind another one answers so.
func TestAListThatIsNotFoundIsToldOf(t *testing.T) {
	f := newFixture(t)
	f.api.NoStreaming()
	f.api.Deny("list configmaps", 404)
	f.manager.Start(configMaps("w"))
	f.mustFail("w", "cannot list ConfigMap: the server could not find the requested resource")
	f.api.Deny("list configmaps", 0)
	f.await("w failed <nil>", "w synced served=true")
	f.api.Put(configMap("a", "x", "1"))
	f.await(`w added a/x "1"`)
	f.nothing()
}

func TestSharesStreams(t *testing.T) {
	f := newFixture(t)
	f.api.NoStreaming()
	f.api.Put(configMap("a", "x", "1"))
	f.manager.Start(configMaps("one"))
	f.await("one synced served=true")
	// The same filter: nothing is asked.
	f.manager.Start(configMaps("two"))
	f.await("two synced served=true")
	if n := f.api.Count("list configmaps"); n != 1 {
		t.Errorf("%d lists for the same filter, want 1", n)
	}
	// Another filter joins late: one list more, and the same watch.
	late := Spec{ID: "late", APIVersion: "v1", Kind: "ConfigMap", FilterID: "name",
		Filter: func(obj map[string]any) (starlark.Value, bool, error) {
			key, _, _ := identity(obj)
			return starlark.String(key.name), true, nil
		}}
	f.manager.Start(late)
	f.await("late synced served=true")
	f.snapshot("late", `["x"]`)
	if n := f.api.Count("list configmaps"); n != 2 {
		t.Errorf("%d lists, want 2", n)
	}

	f.manager.Stop("one")
	f.manager.Stop("two")
	f.api.Put(configMap("a", "y", "2"))
	f.await(`late added a/y "y"`)
	f.manager.Stop("late")
	f.manager.Start(configMaps("again"))
	f.await("again synced served=true")
	f.snapshot("again", `["1" "2"]`)
	f.nothing()
}

func TestKindThatIsNotServed(t *testing.T) {
	f := newFixture(t)
	widget := apitest.Kind{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
	f.manager.Start(Spec{ID: "w", APIVersion: "example.com/v1", Kind: "Widget", Filter: dataFilter})
	f.await("w synced served=false")
	f.snapshot("w", "[]")

	f.api.Serve(widget)
	put := func(name, d string) {
		obj := configMap("a", name, d)
		obj["apiVersion"], obj["kind"] = "example.com/v1", "Widget"
		f.api.Put(obj)
	}
	put("x", "1")
	f.manager.Kick()
	f.await("w synced served=true")
	put("y", "2")
	f.await(`w added a/y "2"`)

	f.api.Unserve(widget)
	f.await(`w deleted a/x "1"`, `w deleted a/y "2"`, "w synced served=false")
	f.snapshot("w", "[]")
	f.api.Serve(widget)
	f.await("w synced served=true")
	f.nothing()
}

// A caller that wants each object is not told that those of a kind that is not served are deleted: they may be there.
func TestEachOfAKindThatIsNotServed(t *testing.T) {
	f := newFixture(t)
	widget := apitest.Kind{APIVersion: "example.com/v1", Kind: "Widget", Resource: "widgets", Namespaced: true}
	f.api.Serve(widget)
	obj := configMap("a", "x", "1")
	obj["apiVersion"], obj["kind"] = "example.com/v1", "Widget"
	f.api.Put(obj)
	f.manager.Start(Spec{ID: "w", APIVersion: "example.com/v1", Kind: "Widget", Filter: dataFilter, Each: true})
	f.await("w synced served=true")
	f.api.Unserve(widget)
	f.await("w synced served=false")
	f.snapshot("w", "[]")
	f.nothing()
}

func TestFilterErrorsKeepTheLastResult(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	f.api.Put(configMap("a", "y", "1"))
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")
	f.api.Put(configMap("a", "y", "bad"))
	f.await("w failed the filter fails on ConfigMap a/y: bad data")
	f.api.Put(configMap("a", "x", "panic"))
	f.await("w failed the filter fails on ConfigMap a/x (and on 1 more): the filter crashed: worse data")
	f.snapshot("w", `["1" "1"]`)
	f.api.Put(configMap("a", "z", "3"))
	f.await(`w added a/z "3"`)
	f.api.Put(configMap("a", "x", "2"))
	f.await(`w modified a/x "2"`, "w failed the filter fails on ConfigMap a/y: bad data")
	f.api.Remove("v1", "ConfigMap", "a", "y")
	f.await(`w deleted a/y "1"`, "w failed <nil>")
	f.nothing()
}

// An object that the filter has not taken once is no object that is not there: the watch
// does not sync before it has a result or is gone, and says later that one lacks.
func TestAnObjectWithoutAResultHoldsTheSync(t *testing.T) {
	const waits = "w lacks: the filter fails on ConfigMap a/y, and the hook does not run before that has a result or is gone: bad data"
	for name, end := range map[string]func(*fixture) (told []string){
		"mended": func(f *fixture) []string {
			f.api.Put(configMap("a", "y", "2"))
			return []string{"w failed <nil>", "w synced served=true"}
		},
		"gone": func(f *fixture) []string {
			f.api.Remove("v1", "ConfigMap", "a", "y")
			return []string{"w failed <nil>", "w synced served=true"}
		},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, streamed=%v", name, streaming), func(t *testing.T) {
				f := newFixture(t)
				if !streaming {
					f.api.NoStreaming()
				}
				f.api.Put(configMap("a", "x", "1"))
				f.api.Put(configMap("a", "y", "bad"))
				f.manager.Start(configMaps("w"))
				f.await(waits)
				late := configMaps("late") // finds the results there
				f.manager.Start(late)
				f.await(strings.Replace(waits, "w", "late", 1))
				f.manager.Stop("late")
				f.api.Put(configMap("a", "x", "3"))
				f.await(end(f)...)
				f.api.Put(configMap("a", "x", "4"))
				f.await(`w modified a/x "4"`)
				f.nothing()
			})
		}
	}
	t.Run("later", func(t *testing.T) {
		f := newFixture(t)
		f.manager.Start(configMaps("w"))
		f.await("w synced served=true")
		f.api.Put(configMap("a", "y", "bad"))
		f.await(waits)
		f.api.Put(configMap("a", "x", "panic"))
		f.await("w lacks: the filter fails on ConfigMap a/x (and on 1 more), and the hook does not run before that has a result or is gone: the filter crashed: worse data")
		f.api.Remove("v1", "ConfigMap", "a", "x")
		f.await(waits)
		f.api.Put(configMap("a", "y", "1"))
		f.await(`w added a/y "1"`, "w failed <nil>")
		f.nothing()
	})
}

func TestObserveTakesTheNewerVersion(t *testing.T) {
	f := newFixture(t)
	old := f.api.Put(configMap("a", "x", "1"))
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}

	f.unseen(func() {
		second := f.api.Put(configMap("a", "x", "2"))
		f.manager.Observe(ref, second, nil, time.Now())
		f.await(`w modified a/x "2"`)
		f.manager.Observe(ref, old, nil, time.Now())
		f.snapshot("w", `["2"]`)
		f.manager.Observe(ref, f.api.Put(configMap("a", "x", "skip")), nil, time.Now())
		f.await(`w deleted a/x "2"`)
	})
	// A late event of the stream is older than the known object.
	f.api.Put(configMap("a", "end", "end"))
	f.await(`w added a/end "end"`)
	f.snapshot("w", `["end"]`)

	f.api.Remove("v1", "ConfigMap", "a", "end")
	f.manager.Observe(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "end"}, nil, nil, time.Now())
	f.await(`w deleted a/end "end"`)
	f.api.Put(configMap("a", "last", "last"))
	f.await(`w added a/last "last"`)
	f.nothing()
}

// The answer to a write may come after the stream has told that the object is gone, or has left the selection.
func TestAnAnswerIsNotNewerThanTheEndOfItsObject(t *testing.T) {
	for _, apart := range []bool{false, true} {
		f := newFixture(t)
		spec := configMaps("w")
		spec.Apart = apart
		f.manager.Start(spec)
		f.await("w synced served=true")
		answer := f.api.Put(configMap("a", "x", "1"))
		f.await(`w added a/x "1"`)
		f.api.Remove("v1", "ConfigMap", "a", "x")
		f.await(`w deleted a/x "1"`)
		f.manager.Observe(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}, answer, nil, time.Now())
		f.nothing()
		f.snapshot("w", "[]")
		f.api.Put(configMap("a", "x", "2"))
		f.await(`w added a/x "2"`)
		f.nothing()
	}
}

func TestUnreachableServer(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	f.api.Deny("list configmaps", 500)
	f.api.NoStreaming()
	f.manager.Start(configMaps("w"))
	f.mustFail("w", "cannot list ConfigMap")
	f.manager.Stop("w")
	f.nothing()
}

// TestJoinsDuringChanges lets watches join a busy stream: in the end all of them
// show the same, and have told no more than what leads there.
func TestJoinsDuringChanges(t *testing.T) {
	f := newFixture(t)
	f.manager.Start(configMaps("w0"))
	f.await("w0 synced served=true")
	const names, rounds = 5, 40
	for round := range rounds {
		for i := range names {
			if (round+i)%7 == 0 {
				f.api.Remove("v1", "ConfigMap", "a", fmt.Sprint(i))
			} else {
				f.api.Put(configMap("a", fmt.Sprint(i), fmt.Sprint(round)))
			}
		}
		if round%10 == 5 {
			f.api.Expire()
		}
		spec := configMaps(fmt.Sprint("w", round+1))
		spec.FilterID = spec.ID
		f.manager.Start(spec)
	}
	f.api.Put(configMap("z", "end", "end"))

	// The events of each watch, on top of its first snapshot, lead to its snapshot.
	want := fmt.Sprint(f.api.Snapshot("v1", "ConfigMap", func(obj map[string]any) any {
		return starlark.String(obj["data"].(map[string]any)["d"].(string))
	}))
	deadline := time.After(2 * time.Minute)
	for i := range rounds + 1 {
		for fmt.Sprint(f.manager.Snapshot(fmt.Sprint("w", i))) != want {
			f.mu.Lock()
			more := f.more
			f.mu.Unlock()
			select {
			case <-more:
			case <-time.After(time.Millisecond):
			case <-deadline:
				t.Fatalf("snapshot of w%d is %v, want %s", i, f.manager.Snapshot(fmt.Sprint("w", i)), want)
			}
		}
	}
}

func TestShutdownWhileTheServerIsGone(t *testing.T) {
	f := newFixture(t)
	f.manager.Start(configMaps("w"))
	f.await("w synced served=true")
	f.api.Stop()
	f.mustFail("w", "cannot reach the API server")
	f.manager.Shutdown()
	f.mu.Lock()
	f.lines = nil // other reasons, as the connection ended first and then nobody listened
	f.mu.Unlock()
	f.manager.Start(configMaps("late"))
	f.nothing()
}

// The answer to our own delete may come after the object that somebody has made in its
// place: that one stays.
func TestALateAnswerToADeleteLeavesWhatIsMadeAnew(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for name, put := range map[string]struct{ data, want, snapshot string }{
			"kept":  {"2", `w added a/x "2"`, `["2"]`},
			"fails": {"bad", "w lacks: the filter fails on ConfigMap a/x, and the hook does not run before that has a result or is gone: bad data", "[]"},
		} {
			t.Run(fmt.Sprintf("%s, apart=%v", name, apart), func(t *testing.T) {
				f := newFixture(t)
				f.api.Put(configMap("a", "x", "1"))
				spec := configMaps("w")
				spec.Apart = apart
				f.manager.Start(spec)
				f.await("w synced served=true")
				asked := time.Now()
				f.api.Remove("v1", "ConfigMap", "a", "x")
				f.await(`w deleted a/x "1"`)
				f.api.Put(configMap("a", "x", put.data))
				f.await(put.want)
				f.manager.Observe(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}, nil, nil, asked)
				f.nothing()
				f.snapshot("w", put.snapshot)
			})
		}
	}
}
