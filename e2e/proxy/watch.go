package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"mime"
	"net/http"
	"sync"
	"time"
)

// Life has each watch end after a while, by a cut or in good order, and behave until then in one of the
// manners; without one it tells all as it is. Watches whose events are no JSON, as those of client-go's
// own types, just end.
func Life(least, most time.Duration, manners ...Manner) Striker {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler, dice *rand.Rand) {
		ctx, cancel := context.WithTimeout(r.Context(), between(dice, least, most))
		defer cancel()
		t := &tap{ResponseWriter: w, dice: dice, cut: cancel, clean: dice.IntN(2) == 0, began: !Streams(r)}
		if len(manners) > 0 {
			t.manner = manners[dice.IntN(len(manners))]
			of(r).note(t.manner.Name)
		}
		r = r.Clone(ctx)
		r.Header.Set("Accept-Encoding", "identity")
		aborted := t.serve(next, r)
		if t.close(); aborted && !t.clean {
			panic(http.ErrAbortHandler)
		}
	}
}

// serve has the server answer to the tap, and says whether that was cut off.
func (t *tap) serve(next http.Handler, r *http.Request) (aborted bool) {
	defer func() {
		if e := recover(); e == http.ErrAbortHandler {
			aborted = true
		} else if e != nil {
			panic(e)
		}
	}()
	next.ServeHTTP(t, r)
	return false
}

// tap sits on the events of one watch.
type tap struct {
	http.ResponseWriter
	dice   *rand.Rand
	manner Manner
	cut    context.CancelFunc // ends the watch

	mu     sync.Mutex
	clean  bool     // it ends in good order, when it is ended
	closed bool     // nothing may be sent any more
	rest   []byte   // the begin of an event
	began  bool     // the objects that there were have been told
	held   []byte   // an event that waits for the next one
	past   [][]byte // the last ones
	deaf   bool     // it tells nothing any more
	lacks  bool     // events are missing: at the end it says that the history is gone
}

// Write implements [http.ResponseWriter].
func (t *tap) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kind, _, _ := mime.ParseMediaType(t.Header().Get("Content-Type")); t.manner.event == nil || kind != "application/json" {
		return t.ResponseWriter.Write(data)
	}
	for t.rest = append(t.rest, data...); ; {
		line, rest, whole := bytes.Cut(t.rest, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		t.rest = rest
		if t.deaf {
			continue
		}
		if err := t.manner.event(t, append(bytes.Clone(line), '\n')); err != nil {
			t.clean = err == errEnded
			return 0, err
		}
		t.began = t.began || bytes.Contains(line, []byte("k8s.io/initial-events-end"))
	}
}

// Flush implements [http.Flusher].
func (t *tap) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush()
}

func (t *tap) flush() {
	if !t.closed {
		t.ResponseWriter.(http.Flusher).Flush()
	}
}

// send tells an event. Called with t.mu held.
func (t *tap) send(line []byte) error {
	if t.closed {
		return errEnded
	}
	_, err := t.ResponseWriter.Write(line)
	t.flush()
	return err
}

// release tells the event that waits. Called with t.mu held.
func (t *tap) release() error {
	line := t.held
	if t.held = nil; line == nil {
		return nil
	}
	return t.send(line)
}

func (t *tap) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.release()
	if t.lacks {
		_ = t.send(expired)
		t.clean = true
	}
	t.closed = true
}

// one says yes once in n times.
func (t *tap) one(n int) bool { return t.dice.IntN(n) == 0 }

var (
	errCut   = errors.New("the watch is cut")
	errEnded = errors.New("the watch is over")
)

// expired is how a server says that it does not know a version any more.
var expired = []byte(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}` + "\n")

// Manner is how a watch behaves.
type Manner struct {
	// Name is what [Proxy.Told] calls it.
	Name string
	// event is called with each event, a line of JSON, and with the mutex of the tap held. A watch that
	// shall end returns errCut or errEnded.
	event func(t *tap, line []byte) error
}

// Manners of watches. None of them leaves the client without a way to learn all in the end: events that a
// watch has not told come again with the next one, or with a list that the client is told to make.
var (
	// Plain tells all as it is.
	Plain = Manner{"plain watches", (*tap).send}
	// Delayed tells each event up to 300 ms late.
	Delayed = Manner{"delayed watches", func(t *tap, line []byte) error {
		time.Sleep(between(t.dice, 0, 300*time.Millisecond))
		return t.send(line)
	}}
	// Doubled tells each event twice.
	Doubled = Manner{"doubled watches", func(t *tap, line []byte) error {
		return errors.Join(t.send(line), t.send(line))
	}}
	// Repeated tells the last events once more, in their order, as a watch that begins too early.
	Repeated = Manner{"repeated watches", func(t *tap, line []byte) error {
		t.past = append(t.past, line)
		t.past = t.past[max(0, len(t.past)-8):]
		err := t.send(line)
		for i := 0; t.began && err == nil && i < len(t.past) && (i > 0 || t.one(4)); i++ {
			err = t.send(t.past[i])
		}
		return err
	}}
	// Swapped tells events of different objects in another order.
	Swapped = Manner{"swapped watches", func(t *tap, line []byte) error {
		switch held := t.held; {
		case held == nil && isMark(line):
			return t.send(line)
		case held == nil:
			t.held = line
			time.AfterFunc(200*time.Millisecond, func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				if len(t.held) > 0 && &t.held[0] == &line[0] {
					_ = t.release()
				}
			})
			return nil
		case isMark(line) || object(line) == object(held):
			t.held = nil
			return errors.Join(t.send(held), t.send(line))
		default:
			t.held = nil
			return errors.Join(t.send(line), t.send(held))
		}
	}}
	// Halved is cut in the midst of an event.
	Halved = Manner{"halved watches", func(t *tap, line []byte) error {
		if !t.one(5) {
			return t.send(line)
		}
		_ = t.send(line[:len(line)/2])
		return errCut
	}}
	// Garbled has bytes that are no JSON, and ends.
	Garbled = Manner{"garbled watches", func(t *tap, line []byte) error {
		if !t.one(5) {
			return t.send(line)
		}
		_ = t.send(append([]byte("{]\x00"), line...))
		return errEnded
	}}
	// Deaf tells nothing any more from some event on, for up to half a second, and ends.
	Deaf = Manner{"deaf watches", func(t *tap, line []byte) error {
		if !t.one(4) {
			return t.send(line)
		}
		t.deaf = true
		time.AfterFunc(between(t.dice, 0, 500*time.Millisecond), t.cut)
		return nil
	}}
	// Silent tells nothing any more from some event on, until its life is over.
	Silent = Manner{"silent watches", func(t *tap, line []byte) error {
		if !t.one(4) {
			return t.send(line)
		}
		t.deaf = true
		return nil
	}}
	// Lossy leaves events out, and says at its end that its history is gone.
	Lossy = Manner{"lossy watches", func(t *tap, line []byte) error {
		if t.began && !isMark(line) && t.one(3) {
			t.lacks = true
			return nil
		}
		return t.send(line)
	}}
	// Forgetful says in the place of some event that its history is gone.
	Forgetful = Manner{"forgetful watches", func(t *tap, line []byte) error {
		if !t.one(5) {
			return t.send(line)
		}
		_ = t.send(expired)
		return errEnded
	}}
)

// identity is which object an event is about.
type identity struct{ namespace, name string }

type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	} `json:"object"`
}

func read(line []byte) (e event) {
	_ = json.Unmarshal(line, &e)
	return e
}

// isMark says that an event is about no object.
func isMark(line []byte) bool {
	t := read(line).Type
	return t != "ADDED" && t != "MODIFIED" && t != "DELETED"
}

func object(line []byte) identity {
	m := read(line).Object.Metadata
	return identity{m.Namespace, m.Name}
}
