package watch

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
)

// gate is a filter that lets an object through when it is told to: that of the user's
// module that takes its time. Once it is open, it lets all through.
type gate struct {
	called, pass chan string
	opened       chan struct{}
	open         func()
}

// newGate returns a gate that opens when the test ends: the manager waits for its filters.
func newGate(f *fixture) *gate {
	g := &gate{called: make(chan string), pass: make(chan string), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	f.t.Cleanup(g.open)
	return g
}

func (g *gate) filter(obj map[string]any) (starlark.Value, bool, error) {
	key, _, _ := identity(obj)
	select {
	case g.called <- key.name:
		select {
		case <-g.pass:
		case <-g.opened:
		}
	case <-g.opened:
	}
	return dataFilter(obj)
}

// let waits until the filter is called for the object and lets it through.
func (g *gate) let(f *fixture, names ...string) {
	f.t.Helper()
	for _, name := range names {
		select {
		case got := <-g.called:
			if got != name {
				f.t.Fatalf("the filter is called for %s, want %s", got, name)
			}
			g.pass <- name
		case <-time.After(2 * time.Minute):
			f.t.Fatalf("the filter is not called for %s", name)
		}
	}
}

func (g *gate) spec(id string) Spec {
	return Spec{ID: id, APIVersion: "v1", Kind: "ConfigMap", Filter: g.filter, FilterID: id, Apart: true, Module: id}
}

// A filter that does not end holds up nobody but its own watch: not the first list of
// others, not their changes.
func TestASlowFilterHoldsUpNobodyElse(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streamed=%v", streaming), func(t *testing.T) {
			f := newFixture(t)
			if !streaming {
				f.api.NoStreaming()
			}
			f.api.Put(configMap("a", "x", "1"))
			f.api.Put(configMap("a", "y", "1"))
			g := newGate(f)
			f.manager.Start(g.spec("slow"))
			fast := configMaps("fast")
			fast.Apart, fast.Module = true, "fast"
			f.manager.Start(fast)
			f.await("fast synced served=true")
			f.snapshot("fast", `["1" "1"]`)
			f.api.Put(configMap("a", "x", "2"))
			f.await(`fast modified a/x "2"`)
			f.api.Put(configMap("a", "x", "3"))
			f.await(`fast modified a/x "3"`)
			g.let(f, "x", "y")
			f.await("slow synced served=true")
			f.nothing()
			g.let(f, "x") // its newest state alone
			f.await(`slow modified a/x "3"`)
			f.api.Put(configMap("a", "y", "4"))
			f.await(`fast modified a/y "4"`)
			g.let(f, "y")
			f.await(`slow modified a/y "4"`)
			f.snapshot("slow", `["3" "4"]`)
			f.nothing()
		})
	}
}

// The newest state of each object waits for a slow filter; one that is deleted
// meanwhile goes at once, and one that is made again is added again.
func TestWhatWaitsForASlowFilter(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	f.api.Put(configMap("a", "y", "1"))
	g := newGate(f)
	f.manager.Start(g.spec("w"))
	g.let(f, "x", "y")
	f.await("w synced served=true")
	witness := configMaps("witness")
	f.manager.Start(witness)
	f.await("witness synced served=true")
	for i := 2; i <= 40; i++ {
		f.api.Put(configMap("a", "x", fmt.Sprint(i)))
		f.await(fmt.Sprintf(`witness modified a/x "%d"`, i))
		if i == 2 {
			<-g.called // before there is a newer state
		}
	}
	g.pass <- ""
	f.await(`w modified a/x "2"`)
	g.let(f, "x")
	f.await(`w modified a/x "40"`)

	f.api.Put(configMap("a", "x", "41"))
	f.await(`witness modified a/x "41"`)
	<-g.called
	f.api.Remove("v1", "ConfigMap", "a", "x")
	f.told(`w deleted a/x "40"`)
	g.pass <- "" // too late
	f.api.Put(configMap("a", "x", "42"))
	g.let(f, "x")
	f.told(`w added a/x "42"`)
	f.snapshot("w", `["42" "1"]`)
}

// The write of a hook is in its next snapshot, which waits for the filter, while nobody
// else does.
func TestASnapshotWaitsForTheFilterOfWhatWasWritten(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	f.api.Put(configMap("a", "y", "1"))
	g := newGate(f)
	f.manager.Start(g.spec("w"))
	g.let(f, "x", "y")
	f.await("w synced served=true")
	f.api.Put(configMap("a", "y", "2")) // somebody else's, which is in the way
	<-g.called
	written := f.api.Put(configMap("a", "x", "2"))
	f.manager.Observe(effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}, written, nil, time.Now())
	got := make(chan string)
	go func() { got <- fmt.Sprint(f.manager.Snapshot("w")) }()
	g.pass <- ""
	g.let(f, "x")
	if text := <-got; text != `["2" "2"]` {
		t.Errorf("the snapshot is %s", text)
	}
}

// Objects that do not fit into memory while the filter is busy are read again.
func TestWhatDoesNotFitIsReadAgain(t *testing.T) {
	f := newFixture(t)
	large := strings.Repeat("x", 3<<20)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	put := func(mark string) {
		for _, name := range names {
			f.api.Put(configMap("a", name, mark+large))
		}
	}
	put("1")
	g := newGate(f)
	spec := g.spec("w")
	filter := spec.Filter
	spec.Filter = func(obj map[string]any) (starlark.Value, bool, error) {
		v, keep, err := filter(obj)
		text, _ := v.(starlark.String)
		return text[:1], keep, err
	}
	f.manager.Start(spec)
	g.let(f, names...)
	f.await("w synced served=true")
	f.snapshot("w", `["1" "1" "1" "1" "1" "1" "1" "1" "1" "1"]`)
	f.api.Put(configMap("a", "a", "2"+large))
	<-g.called
	put("3")
	g.pass <- ""
	f.await(`w modified a/a "2"`)
	for range names {
		<-g.called
		g.pass <- ""
	}
	for _, name := range names {
		f.told(fmt.Sprintf(`w modified a/%s "3"`, name))
	}
	f.snapshot("w", `["3" "3" "3" "3" "3" "3" "3" "3" "3" "3"]`)
}

// While an object cannot be read again, the watch says why.
func TestAnObjectThatCannotBeReadAgainIsTold(t *testing.T) {
	f := newFixture(t)
	large := strings.Repeat("x", 9<<20)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		f.api.Put(configMap("a", name, "1"))
	}
	g := newGate(f)
	spec := g.spec("w")
	filter := spec.Filter
	spec.Filter = func(obj map[string]any) (starlark.Value, bool, error) {
		v, keep, err := filter(obj)
		text, _ := v.(starlark.String)
		return text[:1], keep, err
	}
	f.manager.Start(spec)
	witness := configMaps("witness")
	witness.Filter = func(obj map[string]any) (starlark.Value, bool, error) {
		v, keep, err := dataFilter(obj)
		text, _ := v.(starlark.String)
		return text[:1], keep, err
	}
	g.let(f, names...)
	f.await("w synced served=true")
	f.manager.Start(witness)
	f.await("witness synced served=true")
	f.api.Put(configMap("a", "a", "2"))
	<-g.called
	f.await(`witness modified a/a "2"`)
	for _, name := range names { // of these, one at most fits into memory
		f.api.Put(configMap("a", name, "3"+large))
		f.await(fmt.Sprintf(`witness modified a/%s "3"`, name))
	}
	f.api.Deny("list configmaps", 500)
	g.pass <- ""
	f.await(`w modified a/a "2"`)
	g.let(f, "a")
	f.await(`w modified a/a "3"`)
	f.mustFail("w", "cannot list ConfigMap")
	f.api.Deny("list configmaps", 0)
	f.await("w failed <nil>")
	g.open()
	f.told(`w modified a/b "3"`)
	f.told(`w modified a/c "3"`)
}

// A watch that ends takes what waits for its filter along.
func TestAWatchStopsWhileItsFilterIsBusy(t *testing.T) {
	f := newFixture(t)
	f.api.Put(configMap("a", "x", "1"))
	g := newGate(f)
	f.manager.Start(g.spec("w"))
	<-g.called
	f.manager.Stop("w")
	g.pass <- ""
	f.manager.Start(configMaps("other"))
	f.await("other synced served=true")
	f.nothing()
}

// A run after a write waits for the filter also when somebody else has changed the object
// since, and the stream was faster than the answer to the write.
func TestASnapshotWaitsForWhatCameAfterAWrite(t *testing.T) {
	var q queue
	key := objectKey{"a", "0"}
	q.add(key, 5, nil, time.Now(), false, nil)
	q.add(key, 4, nil, time.Now(), true, nil)
	if q.owned != 1 {
		t.Fatal("nobody waits")
	}
	next := q.next()
	if next == nil || next.version != 5 || !next.own {
		t.Fatalf("got %+v", next)
	}
	q.ended(next)
	<-q.settled
}
