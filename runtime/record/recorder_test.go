package record

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
)

// counts are what a recorder has counted.
type counts struct {
	mu  sync.Mutex
	all map[string]int
}

func (c *counts) add(outcome string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]int{}
	}
	c.all[outcome] += n
}

func (c *counts) get(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[outcome]
}

func TestRecorderKeepsRuns(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m, dir := newModule(t, "pass"), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var counted counts
		tries := 0
		var log bytes.Buffer
		r := New(Options{Store: StoreOptions{Dir: dir, Process: "test"}, Count: counted.add, Log: zerolog.New(&log), Key: func(context.Context) (*Key, error) {
			if tries++; tries < 3 {
				return nil, errors.New("the API server is tired")
			}
			return key, nil
		}})
		if _, err := r.Key(); err == nil {
			t.Error("there is a key already")
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		r.Take(m.run(t, nil))
		time.Sleep(2*keyRetry + time.Second) // the clock of the bubble
		synctest.Wait()
		if got, err := r.Key(); err != nil || got != key || counted.get("kept") != 1 {
			t.Errorf("%v, %v", err, counted.all)
		}
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "no runs are recorded: the API server is tired") {
			t.Errorf("log %s", text)
		}
		r.Take(m.run(t, nil, at(1)))
		cancel() // what waits is written all the same
		<-done
		if counted.get("kept") != 2 {
			t.Errorf("%v", counted.all)
		}
		r.Take(m.run(t, nil, at(2)))
		if r.queue.take() != nil {
			t.Error("taken after the end")
		}
	})
	if headers, _, err := List(dir, nil); err != nil || len(headers) != 2 {
		t.Error(headers, err)
	}
}

func TestRecorderIsOffWhereItMayKeepNoKey(t *testing.T) {
	var log bytes.Buffer
	r := New(Options{Log: zerolog.New(&log), Key: func(context.Context) (*Key, error) {
		return nil, errors.Join(errors.New("may not"), ErrOff)
	}})
	r.Run(t.Context()) // ends at once
	r.Take(newModule(t, "pass").run(t, nil))
	if r.queue.take() != nil || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "may not") {
		t.Errorf("log %s", log.String())
	}
}

// A disk that is full costs one warning, and the recorder goes on once it is not.
func TestRecorderGoesOnAfterAFullDisk(t *testing.T) {
	m, s := newModule(t, "pass"), newStore(t, StoreOptions{Dir: filepath.Join(t.TempDir(), "records")})
	var log bytes.Buffer
	var counted counts
	w := &writer{o: Options{Log: zerolog.New(&log), Count: counted.add}, store: s}
	if err := os.RemoveAll(s.o.Dir); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.put(m.run(t, nil, at(i)))
	}
	if err := os.Mkdir(s.o.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.put(m.run(t, nil, at(3)))
	if strings.Count(log.String(), "\n") != 2 || counted.all["failed"] != 3 || counted.all["kept"] != 1 {
		t.Errorf("%v, log %s", counted.all, log.String())
	}
	// Nor does a panic end more than one record.
	bad := m.run(t, []starlark.Value{starlark.Tuple{}, starlark.Tuple{}}, at(4))
	w.put(bad)
	w.put(m.run(t, nil, at(5)))
	if counted.all["failed"] != 4 || counted.all["kept"] != 2 {
		t.Errorf("%v, log %s", counted.all, log.String())
	}
}

// Writing for long takes a small part of the time only.
func TestWriterRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{left: burst, since: time.Now()}
		began := time.Now()
		writing := 3 * time.Second
		for spent := time.Duration(0); spent < writing; spent += 10 * time.Millisecond {
			time.Sleep(10 * time.Millisecond) // the clock of the bubble
			w.left -= 10 * time.Millisecond
			if !w.rest(t.Context()) {
				t.Fatal("the context has not ended")
			}
		}
		if took, want := time.Since(began), (writing-burst)*share; took < want*9/10 || took > want*11/10 {
			t.Errorf("%s of writing took %s, want about %s", writing, took, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if w.left = -time.Hour; w.rest(ctx) {
			t.Error("rests on after the end")
		}
	})
}

func TestAFullQueueLetsGoOfWhatTellsLeast(t *testing.T) {
	chatty, quiet := &generation.Hook{ID: "chatty"}, &generation.Hook{ID: "quiet"}
	trace := func(run uint64, h *generation.Hook, err error) *Trace {
		return &Trace{Run: run, request: hook.Request{Hook: h}, result: hook.Result{Err: err}}
	}
	q := newQueue()
	q.add(trace(1, quiet, nil))
	q.add(trace(2, chatty, errors.New("no")))
	dropped := 0
	for i := range 500 {
		dropped += q.add(trace(uint64(i+3), chatty, nil))
	}
	var left []uint64
	for t := q.take(); t != nil; t = q.take() {
		left = append(left, t.Run)
	}
	if dropped != 502-maxQueued || len(left) != maxQueued || left[0] != 1 || left[1] != 2 || left[len(left)-1] != 502 {
		t.Errorf("%d dropped, left are %v", dropped, left)
	}
	// Failures push out what has succeeded, and then the older failures.
	q.add(trace(1, quiet, nil))
	for i := range 500 {
		q.add(trace(uint64(i+2), chatty, errors.New("no")))
	}
	left = left[:0]
	for t := q.take(); t != nil; t = q.take() {
		left = append(left, t.Run)
	}
	if !slices.Equal(left[:2], []uint64{1, 502 - maxQueued + 1}) {
		t.Errorf("left are %v", left)
	}
	// And what holds on to much.
	big := trace(1, quiet, nil)
	big.weight = maxOne
	if n := q.add(big); n != 1 || q.weight != 0 {
		t.Errorf("%d dropped", n)
	}
	for i := range uint64(3) {
		half := trace(i, chatty, nil)
		half.weight = maxWeight / 2
		q.add(half)
	}
	if len(q.runs) != 1 || q.weight > maxWeight {
		t.Errorf("%d runs weigh %d", len(q.runs), q.weight)
	}
}

// Each generation holds on to a module tree: runs of old ones go, however few they are.
func TestAQueueHoldsFewGenerations(t *testing.T) {
	h, q, dropped := &generation.Hook{ID: "h"}, newQueue(), 0
	for i := range 100 {
		dropped += q.add(&Trace{Run: uint64(i), Generation: i / 2, request: hook.Request{Hook: h}})
	}
	first := q.take()
	if want := 100 - 2*maxGenerations; dropped != want || first.Run != uint64(want) || len(q.of) != maxGenerations {
		t.Errorf("%d dropped, the first of %d generations is run %d", dropped, len(q.of), first.Run)
	}
}

// All that a run holds on to counts, whichever way it came: at most so much waits together,
// as one hook may bring about hundreds of runs a second, each with ten thousand objects.
func TestAQueueHoldsFewBytes(t *testing.T) {
	many := make([]starlark.Value, 10_000)
	for i := range many {
		many[i] = starlark.MakeInt(i)
	}
	large := starlark.String(strings.Repeat("x", 160<<10))
	for name, r := range map[string]hook.Request{
		"snapshot": {Snapshots: map[string][]starlark.Value{"all": many}},
		"event":    {Events: []builtins.Event{{Result: large}}},
		"object":   {Events: []builtins.Event{{Object: large}}},
		"review":   {Request: &builtins.Request{Review: &builtins.Review{Object: map[string]any{"a": string(large)}}}},
		"body":     {Request: &builtins.Request{Received: &builtins.Received{Body: string(large)}}},
		"effects":  {},
	} {
		q := newQueue()
		take := func(tr *Trace) { q.add(tr) }
		for i := range uint64(maxQueued) {
			result := hook.Result{}
			if name == "effects" {
				result.Size = len(large)
			}
			one := r
			Start(take, i, 1, &one).End(take, result, 0)
		}
		if n := len(q.runs); n < 10 || n > 60 {
			t.Errorf("%s: %d runs wait, each of which holds 160 KiB", name, n)
		}
	}
}
