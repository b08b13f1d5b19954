package live

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/tracing"
)

// traced returns the spans that work makes, each with the names of those above it.
func traced(t *testing.T, work func(*traces)) (lines []string) {
	t.Helper()
	var mu sync.Mutex
	known := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ SpanID, ParentSpanID, Name string }
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
			return
		}
		for _, s := range body.ResourceSpans[0].ScopeSpans[0].Spans {
			line := s.Name
			if s.ParentSpanID != "" {
				line = known[s.ParentSpanID] + " > " + line
			}
			known[s.SpanID] = line
			lines = append(lines, line)
		}
	}))
	defer server.Close()
	tracer, err := tracing.New(tracing.Options{Endpoint: server.URL, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	work(newTraces(tracer, "k3f9"))
	ended, end := context.WithCancel(t.Context())
	end()
	tracer.Run(ended) // sends what waits
	mu.Lock()
	defer mu.Unlock()
	return lines
}

// Spans hang together by the numbers of runs, and by causes.
func TestTracesOfARow(t *testing.T) {
	of := func(run uint64, id string, attempt int, events ...builtins.Event) engine.RunHook {
		return engine.RunHook{Run: run, Hook: &generation.Hook{ID: id, Module: "web"}, Module: &generation.Module{Name: "web"}, Attempt: attempt, Events: events}
	}
	at := time.Now()
	no := errors.New("no")
	var first *effect.Cause
	first = first.Then("web/a", true, "")
	got := traced(t, func(tr *traces) {
		tr.ran(of(1, "web/a", 1, builtins.Event{Type: "added", Binding: "nodes"}), at, at, engine.RunDone{}, hook.Result{})
		if err := tr.commit(engine.Commit{Run: 1, Module: "web", Hook: &generation.Hook{ID: "web/a"}}, func() error { return no }); !errors.Is(err, no) {
			t.Errorf("the error became %v", err)
		}
		if err := tr.save(engine.Save{Module: "web", Runs: []uint64{1, 9}}, func() error { return nil }); err != nil {
			t.Error(err)
		}
		tr.helm("release", engine.ReleaseRef{Name: "hello"}, first, at, nil)
		// An object of the run brings about another one, beside a change by somebody else.
		tr.ran(of(2, "web/b", 1, builtins.Event{Type: "modified"}, builtins.Event{Type: "modified", Cause: first}), at, at, engine.RunDone{Err: no}, hook.Result{Err: no})
		tr.ran(of(3, "web/b", 2), time.Time{}, at, engine.RunDone{}, hook.Result{})
		// Nothing is known of what led to these.
		tr.ran(of(4, "web/c", 1, builtins.Event{Type: "schedule"}), time.Time{}, at, engine.RunDone{}, hook.Result{})
		tr.helm("uninstall", engine.ReleaseRef{Name: "hello"}, nil, at, nil)
	})
	if want := []string{
		"event added",
		"event added > run web/a",
		"event added > run web/a > commit web/a",
		"event added > run web/a > save web",
		"event added > run web/a > release hello",
		"event added > run web/a > run web/b",
		"event added > run web/a > run web/b > run web/b",
		"run web/c",
		"uninstall hello",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without a collector there is nothing, and work is done all the same.
func TestNoTraces(t *testing.T) {
	none := newTraces(nil, "k3f9")
	none.ran(engine.RunHook{}, time.Time{}, time.Now(), engine.RunDone{}, hook.Result{})
	none.helm("release", engine.ReleaseRef{}, nil, time.Now(), nil)
	done := 0
	work := func() error { done++; return nil }
	if err := errors.Join(none.commit(engine.Commit{}, work), none.save(engine.Save{}, work)); err != nil || done != 2 {
		t.Errorf("%d were done, %v", done, err)
	}
}
