package lane

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestRetryWaitsLongerEachTime(t *testing.T) {
	now, backoff := time.Unix(0, 0), Backoff{Min: time.Second, Max: 3 * time.Second, Factor: 2}
	var r Retry
	if r.Waits(now) {
		t.Error("it waits before anything has failed")
	}
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} {
		r.Failed(now, errors.New("no"), backoff, 0)
		if r.Attempt != i+1 || r.Err != "no" || !r.At.Equal(now.Add(want)) || !r.Waits(now) || r.Waits(now.Add(want)) {
			t.Errorf("after %d failures the next try is at %s", r.Attempt, r.At)
		}
	}
}

// A change shortens the wait whenever it comes, once.
func TestRetrySoon(t *testing.T) {
	now, backoff := time.Unix(1000, 0), Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}
	soon := now.Add(time.Second)
	for name, change := range map[string]func(*Retry){
		"after a failure": func(r *Retry) { r.Failed(now, errors.New("no"), backoff, 0); r.Soon(soon) },
		"during a try":    func(r *Retry) { r.Soon(soon); r.Failed(now, errors.New("no"), backoff, 0) },
	} {
		r := Retry{Attempt: 6, At: now}
		if change(&r); !r.At.Equal(soon) {
			t.Errorf("%s: the next try is at %s, want %s", name, r.At, soon)
		}
		if r.Failed(soon, errors.New("no"), backoff, 0); !r.At.Equal(soon.Add(128 * time.Second)) {
			t.Errorf("%s: nothing has come since, and the next try is %s later", name, r.At.Sub(soon))
		}
	}
}

// Work that fails because a server is in trouble does not wait long, however often it has failed before.
func TestRetryOfAPassingError(t *testing.T) {
	now, backoff := time.Unix(0, 0), Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}
	r := Retry{Attempt: 20}
	r.Failed(now, fmt.Errorf("crds: %w", &Passing{Err: errors.New("too many requests")}), backoff, 0)
	if r.Err != "crds: too many requests" || !r.At.Equal(now.Add(passingMax)) {
		t.Errorf("the next try is at %s: %s", r.At, r.Err)
	}
	r.Failed(now, errors.New("no"), backoff, 0)
	if !r.At.Equal(now.Add(backoff.Max)) {
		t.Errorf("the next try is at %s", r.At)
	}
}

// A run that has lost a race is repeated within a second, whatever its hook says of waits.
func TestRetryOfALostRace(t *testing.T) {
	backoff := Backoff{Min: time.Minute, Max: time.Hour, Factor: 5}
	for tries := 1; tries <= mostLost; tries++ {
		if d := backoff.After(&Passing{Err: errors.New("conflict"), Race: true}, tries, 0.9); d > time.Second {
			t.Errorf("after %d tries it waits %s", tries, d)
		}
	}
}

// Work that waits for the end of a deletion looks every few seconds, however long that takes.
func TestRetryOfWhatAwaitsAnEnd(t *testing.T) {
	now, backoff := time.Unix(0, 0), Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}
	r := Retry{}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, Ending.Max, Ending.Max} {
		r.Failed(now, fmt.Errorf("crds: %w", &Awaits{Err: errors.New("it is being deleted"), For: AwaitsEnd}), backoff, 0)
		if !r.At.Equal(now.Add(want)) {
			t.Errorf("after %d tries the next one is %s later, want %s", r.Attempt, r.At.Sub(now), want)
		}
	}
}

func TestTask(t *testing.T) {
	now := time.Unix(0, 0)
	jitter := func() float64 { return 0 }
	var task Task
	if !task.Due(now) {
		t.Error("it is not due at first")
	}
	if task.Running = true; task.Due(now) {
		t.Error("two tries at a time")
	}
	task.Ended(now, errors.New("no"), jitter)
	if task.Err != "no" || task.Done || task.Due(now) || !task.Due(task.At) {
		t.Errorf("after a failure: %+v", task)
	}
	task.Soon(now)
	if !task.Due(now) {
		t.Error("it still waits")
	}
	task.Running = true
	task.Ended(now, nil, jitter)
	if task != (Task{Done: true}) {
		t.Errorf("at its end: %+v", task)
	}
	task.Running = true
	if task.Again(); task != (Task{Running: true}) {
		t.Errorf("once more: %+v", task)
	}
}
