package admin

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// lines yields what it was asked for, then its lines; with follow it waits for the end.
func lines(ended chan<- struct{}) func(context.Context, string, int, bool) iter.Seq[[]byte] {
	return func(ctx context.Context, module string, tail int, follow bool) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) {
			for _, text := range []string{`{"of":"` + module + `"}`, `{"n":2}`} {
				if !yield([]byte(text + "\n")) {
					return
				}
			}
			if follow {
				<-ctx.Done()
				close(ended)
			}
		}
	}
}

func TestLogs(t *testing.T) {
	o := options(t)
	o.Logs = lines(nil)
	start(t, o)
	c := NewClient(ClientOptions{Socket: o.Socket})
	var got []string
	take := func(line []byte) error { got = append(got, string(line)); return nil }
	if err := c.Logs(t.Context(), LogsOptions{Module: "web", Tail: -1}, take); err != nil || !slices.Equal(got, []string{`{"of":"web"}`, `{"n":2}`}) {
		t.Errorf("got %q, %v", got, err)
	}
	no := errors.New("no")
	if err := c.Logs(t.Context(), LogsOptions{}, func([]byte) error { return no }); !errors.Is(err, no) {
		t.Errorf("the reader's error became %v", err)
	}
	if err := c.ask(t.Context(), logsPath+"?tail=x", &got); err == nil || !strings.Contains(err.Error(), `tail "x" is no number`) {
		t.Errorf("got %v", err)
	}
	if err := NewClient(ClientOptions{Socket: o.Socket + "2"}).Logs(t.Context(), LogsOptions{}, take); !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v", err)
	}
}

// patient has a stop wait for much longer than it takes on a slow machine.
func patient(s *Server) { s.patience = 10 * time.Minute }

// Following ends with the server, which does not wait for its patience to end, and with the client.
func TestFollowingLogsEnds(t *testing.T) {
	for _, who := range []string{"the server", "the client"} {
		t.Run(who, func(t *testing.T) {
			o, ended := options(t), make(chan struct{})
			o.Logs = lines(ended)
			_, stop := start(t, o, patient)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			came, done := make(chan struct{}, 2), make(chan error, 1)
			go func() {
				done <- NewClient(ClientOptions{Socket: o.Socket}).Logs(ctx, LogsOptions{Follow: true, Tail: -1}, func([]byte) error { came <- struct{}{}; return nil })
			}()
			<-came
			<-came
			began := time.Now()
			if who == "the server" {
				if err := stop(); err != nil {
					t.Error(err)
				}
			} else {
				cancel()
			}
			<-ended
			if err := <-done; err != nil {
				t.Errorf("it ends with %v", err)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it ends after %v", took)
			}
		})
	}
}

// A reader that stands still, as a pager does, holds up no stop.
func TestAReaderThatStandsStill(t *testing.T) {
	o := options(t)
	var wrote atomic.Int64
	line := append(bytes.Repeat([]byte("x"), 64<<10), '\n')
	o.Logs = func(ctx context.Context, _ string, _ int, _ bool) iter.Seq[[]byte] {
		return func(yield func([]byte) bool) {
			for ctx.Err() == nil && yield(line) {
				wrote.Store(time.Now().UnixNano())
			}
		}
	}
	_, stop := start(t, o, patient)
	goOn, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = NewClient(ClientOptions{Socket: o.Socket}).Logs(t.Context(), LogsOptions{Follow: true}, func([]byte) error {
			<-goOn
			return nil
		})
	}()
	for last := int64(-1); last != wrote.Load(); { // until the socket takes no more
		last = wrote.Load()
		time.Sleep(50 * time.Millisecond)
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("the stop takes %v", took)
	}
	close(goOn)
	<-done
}
