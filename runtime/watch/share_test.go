package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.starlark.net/starlark"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// A watch that takes the place of another one with the same filter, under another id, has
// its objects without a list and without another stream.
func TestAWatchTakesTheStreamOfTheOneBefore(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"all":        func(*Spec) {},
		"namespaces": func(s *Spec) { s.Namespaces = []string{"a"} },
		"names":      func(s *Spec) { s.Names = []string{"x"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.api.NoStreaming()
			f.api.Put(configMap("a", "x", "1"))
			spec := configMaps("before")
			change(&spec)
			f.manager.Start(spec)
			f.await("before synced served=true")
			f.api.Put(configMap("a", "x", "1.5"))
			f.await(`before modified a/x "1.5"`) // all its watches are open
			lists, watches := f.api.Count("list configmaps"), f.api.Count("watch configmaps")
			spec.ID = "after"
			f.manager.Start(spec)
			f.manager.Stop("before")
			f.await("after synced served=true")
			f.snapshot("after", `["1.5"]`)
			f.api.Put(configMap("a", "x", "2"))
			f.await(`after modified a/x "2"`)
			if l, w := f.api.Count("list configmaps"), f.api.Count("watch configmaps"); l != lists || w != watches {
				t.Errorf("%d lists and %d watches more", l-lists, w-watches)
			}
			f.nothing()
		})
	}
}

// told waits until lines that begin so have come, in any order, and forgets them and those before them.
func (r *recorder) told(begins ...string) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		more := r.more
		at, all := 0, true
		for _, begins := range begins {
			i := slices.IndexFunc(r.lines, func(line string) bool { return strings.HasPrefix(line, begins) })
			at, all = max(at, i), all && i >= 0
		}
		if all {
			r.lines = slices.Delete(r.lines, 0, at+1)
		}
		rest := fmt.Sprint(r.lines)
		r.mu.Unlock()
		if all {
			return
		}
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("waiting for %q, the sink was told %s", begins, rest)
		}
	}
}

// listClient lists nothing, or fails, and has watches that are silent.
type listClient struct {
	mu     sync.Mutex
	lists  int
	denied error
}

func (c *listClient) Mapping(context.Context, string, string) (cluster.Mapping, error) {
	return cluster.Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}, nil
}

func (c *listClient) Served(context.Context, string) (map[string]cluster.Mapping, error) {
	m, err := c.Mapping(context.Background(), "", "")
	return map[string]cluster.Mapping{m.Kind: m}, err
}

func (c *listClient) Each(context.Context, cluster.Mapping, string, metav1.ListOptions, func(map[string]any) error) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	return "7", c.denied
}

func (c *listClient) Watch(ctx context.Context, _ cluster.Mapping, _ string, o metav1.ListOptions) (io.ReadCloser, error) {
	if o.SendInitialEvents != nil {
		return nil, errors.New("lists are not streamed")
	}
	read, write := io.Pipe()
	context.AfterFunc(ctx, func() { write.Close() })
	return read, nil
}

func (c *listClient) Explain(err error, _ string, _ cluster.Mapping, _ string) error { return err }

// deny has lists fail from now on, and returns how many there were.
func (c *listClient) deny(err error) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = err
	return c.lists
}

// A list that fails for one watch is given up with that watch: those that share its stream
// are well again.
func TestAListThatFailsGoesWithItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := &listClient{}, &recorder{t: t, more: make(chan struct{})}
		m := New(Options{Client: c, Sink: r, Idle: time.Hour})
		defer m.Shutdown()
		m.Start(configMaps("stays"))
		r.told("stays synced served=true")
		synctest.Wait()
		denied := errors.New("denied")
		c.deny(denied)
		late := configMaps("late")
		late.FilterID = "another"
		m.Start(late)
		r.told("stays failed denied")
		m.Stop("late")
		r.told("stays failed <nil>")
		before := c.deny(denied)
		time.Sleep(10 * time.Minute)
		if n := c.deny(denied) - before; n > 0 {
			t.Errorf("%d more lists for nobody", n)
		}
	})
}

// A thousand streams rest most of the time: each has one goroutine.
func TestAStreamHasOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{Client: &listClient{}, Sink: &recorder{t: t, more: make(chan struct{})}, Idle: time.Hour})
		defer m.Shutdown()
		const streams = 100
		before := runtime.NumGoroutine()
		for i := range streams {
			spec := configMaps(fmt.Sprint(i))
			spec.Labels = fmt.Sprintf("n=%d", i)
			m.Start(spec)
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > streams+streams/10 { // the runtime begins a few, too
			t.Errorf("%d streams have %d goroutines", streams, n)
		}
	})
}

// An object that comes from the stream and as the answer to our own write is filtered once.
func TestOwnWritesAreFilteredOnce(t *testing.T) {
	f := newFixture(t)
	var calls atomic.Int32
	spec := configMaps("w")
	spec.Filter = func(obj map[string]any) (starlark.Value, bool, error) {
		calls.Add(1)
		return dataFilter(obj)
	}
	f.manager.Start(spec)
	f.await("w synced served=true")
	answer := f.api.Put(configMap("a", "x", "1"))
	f.await(`w added a/x "1"`)
	ref := effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}
	f.manager.Observe(ref, answer, nil, time.Now())
	if n := calls.Load(); n != 1 {
		t.Errorf("the filter was called %d times", n)
	}
	f.nothing()
	f.manager.Observe(ref, f.api.Put(configMap("a", "x", "2")), nil, time.Now())
	f.await(`w modified a/x "2"`)
	f.nothing()
	f.snapshot("w", `["2"]`)
}

// A watch whose objects have their own runs hears last of an object: all others that see it have heard before.
func TestRunsForEachObjectAreToldLast(t *testing.T) {
	f := newFixture(t)
	each := configMaps("each")
	each.Each = true
	f.manager.Start(each)
	f.await("each synced served=true")
	for i := range 3 {
		other := configMaps(fmt.Sprint("other", i))
		other.FilterID = other.ID
		f.manager.Start(other)
		f.await(other.ID + " synced served=true")
	}
	for i := range 10 {
		name := fmt.Sprint("x", i)
		f.api.Put(configMap("a", name, "1"))
		deadline := time.Now().Add(time.Minute)
		for {
			f.mu.Lock()
			lines := slices.Clone(f.lines)
			f.mu.Unlock()
			if len(lines) < 4 && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
				continue
			}
			if last := lines[len(lines)-1]; len(lines) != 4 || !strings.HasPrefix(last, "each added a/"+name) {
				t.Fatalf("told %q", lines)
			}
			break
		}
		f.mu.Lock()
		f.lines = nil
		f.mu.Unlock()
	}
}
