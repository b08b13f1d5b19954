package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/apitest"
)

// A process that has never held the Lease writes nothing, and reads.
func TestNothingIsWrittenBeforeTheLease(t *testing.T) {
	api := apitest.New(t)
	c := newClient(t, api)
	w := effect.Write{Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"}, Object: configMap("a", "x")}
	c.Hold()
	if _, err := c.Write(t.Context(), "", w); !errors.Is(err, ErrStandby) || !strings.HasPrefix(err.Error(), "cannot apply ConfigMap a/x: starling stands by") {
		t.Errorf("before the Lease: %v", err)
	}
	if _, err := c.List(t.Context(), "v1", "ConfigMap", nil, "", ""); err != nil {
		t.Errorf("a read: %v", err)
	}
	c.WritesUntil(time.Now().Add(time.Hour), "")
	if _, err := c.Write(t.Context(), "", w); err != nil {
		t.Errorf("under the Lease: %v", err)
	}
	if n := api.Count("patch configmaps"); n != 1 {
		t.Errorf("%d writes reached the server, want 1", n)
	}
	c.Shut()
	if _, err := c.Write(t.Context(), "", w); !errors.Is(err, ErrFenced) {
		t.Errorf("after the Lease: %v", err)
	}
}

// slowBody is a transport that sends the body only once it is told to, as one whose process is
// stopped, or that waits for a connection.
type slowBody struct {
	arrived, goOn chan struct{}
	sent          []byte
}

func (r *slowBody) RoundTrip(req *http.Request) (*http.Response, error) {
	close(r.arrived)
	<-r.goOn
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.sent = body
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// A request that has passed the fence, and whose process is stopped before it is sent, is not
// sent once the time is over; nor is it when the transport begins with it anew.
func TestABodyIsNotSentPastTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		until time.Duration // of the Lease, as the process goes on
		want  error
	}{
		"in time":  {time.Hour, nil},
		"too late": {-time.Millisecond, ErrFenced},
	} {
		f := newFence()
		f.until = time.Now().Add(time.Hour)
		next := &slowBody{arrived: make(chan struct{}), goOn: make(chan struct{})}
		transport := &fencedTransport{fence: f, next: next}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPatch, "http://sim/", bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		given := req.Body
		done := make(chan error)
		go func() {
			_, err := transport.RoundTrip(req)
			done <- err
		}()
		<-next.arrived
		f.mu.Lock()
		f.until = time.Now().Add(c.until)
		f.mu.Unlock()
		close(next.goOn)
		switch err := <-done; {
		case c.want == nil && (err != nil || string(next.sent) != "{}"):
			t.Errorf("%s: %q is sent, %v", name, next.sent, err)
		case c.want != nil && !errors.Is(err, c.want):
			t.Errorf("%s: %v", name, err)
		}
		if req.Body != given {
			t.Errorf("%s: the request of the caller is changed", name)
		}
		again, err := transport.guarded(req).GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(again); !errors.Is(err, c.want) {
			t.Errorf("%s, once more: %v", name, err)
		}
	}
}

// A machine that was suspended has a clock that did not go on, and one that did: the time is over when one says so.
func TestAFenceGoesByBothClocks(t *testing.T) {
	now := time.Now()
	f := newFence()
	f.until = now.Add(5 * time.Second)
	for name, c := range map[string]struct {
		at   time.Time
		over bool
	}{
		"in time":                   {now.Add(4 * time.Second), false},
		"over":                      {now.Add(6 * time.Second), true},
		"suspended for ten minutes": {now.Round(0).Add(10 * time.Minute), true},
	} {
		if got := f.over(c.at); got != c.over {
			t.Errorf("%s: over is %t", name, got)
		}
	}
}

// A write of another module tree than the Lease speaks of waits until the Lease speaks of that one, and no longer than
// its context, or until the process stops writing. A read waits for nothing.
func TestAWriteWaitsForTheLeaseToNameItsTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		f := newFence()
		transport := &fencedTransport{fence: f, next: roundTripper(func(*http.Request) (*http.Response, error) {
			sent.Add(1)
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})}
		c := &Client{fence: f}
		send := func(ctx context.Context, method string) error {
			req, err := http.NewRequestWithContext(ctx, method, "http://sim/", nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = transport.RoundTrip(req)
			return err
		}
		until := time.Now().Add(time.Hour)
		c.WritesOf("a")
		c.WritesUntil(until, "a")
		if err := send(t.Context(), http.MethodPost); err != nil {
			t.Fatal(err)
		}
		c.WritesOf("b")
		if err := send(t.Context(), http.MethodGet); err != nil || sent.Swap(0) != 2 {
			t.Errorf("a read: %v", err)
		}
		brief, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := send(brief, http.MethodPost); !errors.Is(err, errUntold) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write whose time ends: %v", err)
		}
		done := make(chan error)
		wait := func(what string, want error, moves ...func()) {
			t.Helper()
			go func() { done <- send(t.Context(), http.MethodPost) }()
			for i, move := range moves {
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("%s: it is over after %d moves: %v", what, i, err)
				default:
				}
				move()
			}
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		wait("it is named", nil, func() { c.WritesUntil(until, "a") }, func() { c.WritesUntil(until, "b") })
		c.WritesOf("c")
		wait("back to the tree of before", nil, func() { c.WritesOf("d") }, func() { c.WritesOf("b") })
		if sent.Load() != 2 {
			t.Errorf("%d are sent", sent.Load())
		}
		c.WritesOf("c")
		wait("it stops", ErrFenced, c.Shut)
	})
}
