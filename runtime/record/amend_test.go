package record

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
)

const writes = "k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"Bad Name\"}})"

// A commit fails before its run is written, or long after: the record is the same.
func TestARunWhoseCommitFailsIsRecordedAsFailed(t *testing.T) {
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	m, dir := newModule(t, writes), t.TempDir()
	refused := errors.New("m/hooks/a.star:3:5: ConfigMap ns/Bad Name: invalid")
	synctest.Test(t, func(t *testing.T) {
		var counted counts
		r := New(Options{Store: StoreOptions{Dir: dir, Process: "test"}, Count: counted.add, Key: func(context.Context) (*Key, error) { return key, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		r.Take(m.run(t, nil))
		r.Uncommitted(1, refused)
		r.Take(m.run(t, nil, at(1)))
		r.Take(m.run(t, nil, at(2)))
		time.Sleep(time.Minute) // the clock of the bubble
		synctest.Wait()
		if counted.get("kept") != 3 {
			t.Fatalf("%v", counted.all)
		}
		r.Uncommitted(2, refused)
		r.Uncommitted(77, refused) // of which nothing was kept
		time.Sleep(time.Minute)
		synctest.Wait()
		cancel()
		<-done
		r.Uncommitted(3, refused) // too late, and nobody waits
		if len(r.queue.late) > 0 {
			t.Error("noted after the end")
		}
	})
	headers, _, err := List(dir, key)
	if err != nil || len(headers) != 3 || headers[0].Failed() || headers[0].AtCommit {
		t.Fatal(headers, err)
	}
	for _, h := range headers[1:] {
		if !h.Failed() || !h.AtCommit || h.Error != refused.Error() {
			t.Errorf("%+v", h)
		}
		r, err := Load(dir, h.ID, key)
		if err != nil {
			t.Fatal(err)
		}
		again := replayed(t, r, ReplayOptions{})
		if !again.Same || r.Outcome.Error != "" || r.Error != refused.Error() || len(again.Outcome.Effects.Writes) != 1 {
			t.Errorf("%+v, %+v", r.Header, again)
		}
	}
	if sealed, _, err := List(dir, nil); err != nil || !sealed[1].AtCommit || sealed[1].Error != "" {
		t.Error(sealed, err)
	}
}

func TestAmendmentsAreBounded(t *testing.T) {
	q := newQueue()
	for i := range uint64(3 * maxQueued) {
		q.amend(newAmendment(i, errors.New(strings.Repeat("é", maxWhy))))
	}
	first, ok := q.amendment()
	if !ok || first.run != 2*maxQueued || len(first.why) > maxWhy+len("…") || len(q.late) != maxQueued-1 {
		t.Errorf("run %d, %d bytes, %d wait", first.run, len(first.why), len(q.late))
	}
}

// The store counts an amended run as a failure, and its bytes as they are now.
func TestAnAmendedRunIsKeptAsAFailure(t *testing.T) {
	m, s := newModule(t, writes), newStore(t, StoreOptions{MaxRuns: 2})
	put(t, s, m.run(t, nil))
	if err := s.Uncommitted(1, errors.New(strings.Repeat("no", 10))); err != nil {
		t.Fatal(err)
	}
	put(t, s, m.run(t, nil, at(1)), m.run(t, nil, at(2)), m.run(t, nil, at(3)))
	if got := strings.Join(ids(t, s), " "); got != "4 1" {
		t.Errorf("kept are %s", got)
	}
	bytes := s.bytes
	o := s.o
	again, err := OpenStore(o)
	if err != nil || again.bytes != bytes || !again.runs[0].failed {
		t.Errorf("%v: %d bytes, want %d", err, again.bytes, bytes)
	}
}

// A file that is broken is said once, and costs nothing else.
func TestAnAmendmentThatFailsIsSaid(t *testing.T) {
	m, s := newModule(t, writes), newStore(t, StoreOptions{})
	put(t, s, m.run(t, nil), m.run(t, nil, at(1)))
	if err := os.WriteFile(s.path("test-1"+runSuffix), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.path("test-2" + runSuffix)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	w := &writer{o: Options{Log: zerolog.New(&log)}, store: s}
	w.amend(newAmendment(1, errors.New("no")))
	w.amend(newAmendment(2, errors.New("no")))
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "run test-1 stays recorded as one that succeeded") {
		t.Errorf("log %s", text)
	}
}
