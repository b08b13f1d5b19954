package watch

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/sim/apitest"
	"go.starlark.net/starlark"
)

// recorder is a sink that writes down its calls, one line each.
type recorder struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{}
	t     testing.TB
}

func (r *recorder) add(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
	close(r.more)
	r.more = make(chan struct{})
}

func (r *recorder) Synced(id string, served bool) { r.add("%s synced served=%v", id, served) }

func (r *recorder) Changed(id string, events []Event) {
	for _, e := range events {
		name := e.Name
		if e.Namespace != "" {
			name = e.Namespace + "/" + name
		}
		of := ""
		if o, ok := e.Object.(*object.Object); ok {
			of = fmt.Sprint(" of ", o.Map()["data"].(map[string]any)["noise"])
		}
		r.add("%s %s %s %s%s", id, e.Type, name, e.Result, of)
	}
}

func (r *recorder) Failed(id string, err error, lacks bool) {
	if lacks {
		r.add("%s lacks: %v", id, err)
		return
	}
	r.add("%s failed %v", id, err)
}

// await waits until the next lines are these, and forgets them.
func (r *recorder) await(want ...string) {
	r.t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		r.mu.Lock()
		more := r.more
		enough := len(r.lines) >= len(want)
		var got []string
		if enough {
			got, r.lines = r.lines[:len(want)], r.lines[len(want):]
		}
		rest := fmt.Sprint(r.lines)
		r.mu.Unlock()
		if enough {
			for i := range want {
				if got[i] != want[i] {
					r.t.Fatalf("the sink was told %q, want %q", got, want)
				}
			}
			return
		}
		select {
		case <-more:
		case <-deadline:
			r.t.Fatalf("waiting for %q, the sink was told %s", want, rest)
		}
	}
}

// nothing fails when there are lines that nobody awaited.
func (r *recorder) nothing() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) > 0 {
		r.t.Fatalf("the sink was also told %q", r.lines)
	}
}

type fixture struct {
	*recorder
	api     *apitest.Server
	client  *cluster.Client
	manager *Manager
}

func newFixture(t *testing.T) *fixture {
	api := apitest.New(t)
	client, err := cluster.New(cluster.Options{Config: api.Config(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{recorder: &recorder{t: t, more: make(chan struct{})}, api: api, client: client}
	f.manager = New(Options{
		Client: client, Sink: f.recorder,
		Backoff: lane.Backoff{Min: time.Millisecond, Max: 50 * time.Millisecond, Factor: 1.5},
		Recheck: lane.Backoff{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond, Factor: 2},
	})
	t.Cleanup(func() {
		f.manager.Shutdown()
		client.Close()
	})
	return f
}

// unseen ends all watches, and opens none before change has returned.
func (f *fixture) unseen(change func()) {
	over := make(chan struct{})
	f.api.OnRequest(func(r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	})
	f.api.Cut()
	change()
	f.api.OnRequest(nil)
	close(over)
}

func configMap(namespace, name, data string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"data":     map[string]any{"d": data, "noise": "none"},
	}
}

// dataFilter keeps data.d; "skip" leaves the object out, "bad" is an error and
// "panic" crashes.
func dataFilter(obj map[string]any) (starlark.Value, bool, error) {
	data, _ := obj["data"].(map[string]any)
	switch d, _ := data["d"].(string); d {
	case "skip":
		return nil, false, nil
	case "bad":
		return nil, false, errors.New("bad data")
	case "panic":
		panic("worse data")
	default:
		return starlark.String(d), true, nil
	}
}

// nameFilter keeps the name.
func nameFilter(obj map[string]any) (starlark.Value, bool, error) {
	key, _, _ := identity(obj)
	return starlark.String(key.name), true, nil
}

func configMaps(id string) Spec {
	return Spec{ID: id, APIVersion: "v1", Kind: "ConfigMap", Filter: dataFilter, FilterID: "data"}
}

func (f *fixture) snapshot(id, want string) {
	f.t.Helper()
	if got := fmt.Sprint(f.manager.Snapshot(id)); got != want {
		f.t.Fatalf("snapshot of %s is %s, want %s", id, got, want)
	}
}
