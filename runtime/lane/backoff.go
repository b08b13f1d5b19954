package lane

import (
	"errors"
	"math"
	"time"
)

// Backoff says how long to wait after failures.
type Backoff struct {
	// Min is the wait after the first failure.
	Min time.Duration
	// Max bounds every wait.
	Max time.Duration
	// Factor makes each wait longer than the one before; at least 1.
	Factor float64
}

// Long spaces out what may fail for long: releases, CRDs, enabled(), repairs.
var Long = Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

// Delay returns the wait after that many failures in a row (1 or more). Jitter, in [0,1), spreads it by up to 20 %
// upwards, so that what failed together does not come back together; the result never exceeds Max.
func (b Backoff) Delay(failures int, jitter float64) time.Duration {
	d := float64(b.Min) * math.Pow(b.Factor, float64(failures-1))
	d *= 1 + 0.2*jitter
	if d > float64(b.Max) || math.IsInf(d, 0) || math.IsNaN(d) {
		return b.Max
	}
	return time.Duration(d)
}

// After is Delay after that many failures; err is that of the last one.
func (b Backoff) After(err error, failures int, jitter float64) time.Duration {
	if Lost(err, failures) {
		b.Min, b.Max = min(b.Min, lostRetry), min(b.Max, lostMax)
	} else if _, passing := errors.AsType[*Passing](err); passing {
		b.Max = min(b.Max, max(b.Min, passingMax))
	} else if AwaitedBy(err) == AwaitsEnd {
		b.Max = min(b.Max, max(b.Min, Ending.Max))
	}
	return b.Delay(failures, jitter)
}

// Ending is how often it is looked whether what is being deleted has gone.
var Ending = Backoff{Min: time.Second, Max: 5 * time.Second, Factor: 2}

// passingMax bounds the waits after a [Passing] error.
const passingMax = 15 * time.Second

// Passing is an error that may be over in a moment, whatever has failed before: of a server that is overloaded, fails,
// or is away, or of a right that is lacking. It is tried again soon for as long as it lasts.
type Passing struct {
	Err error
	// Race says that another writer came first: the next try sees what that has written.
	Race bool
}

// A race that is lost is no failure for as many tries, which come soon.
const (
	mostLost  = 4
	lostRetry = 100 * time.Millisecond
	lostMax   = time.Second
)

// Lost says that err, of a try after which so many in a row have ended with an error, is no more than a lost race.
func Lost(err error, failures int) bool {
	passing, is := errors.AsType[*Passing](err)
	return is && passing.Race && failures <= mostLost
}

// Error is the text of the error.
func (p *Passing) Error() string { return p.Err.Error() }

// Unwrap gives the error.
func (p *Passing) Unwrap() error { return p.Err }

// Awaits is the error of work that others have to make possible. That is no failure where it is a newer tree.
type Awaits struct {
	Err error
	For Awaited
}

// Awaited is what work awaits; "": nothing.
type Awaited string

// A newer module tree has made a release that this process leaves alone, the cluster does not serve a kind yet, only
// other inputs can help, what is being deleted has to go first, or the API server has to be out of trouble: of many who
// ask it none comes sooner for that, but once it is known to be back.
const (
	AwaitsServer Awaited = "server"
	AwaitsTree   Awaited = "tree"
	AwaitsKind   Awaited = "kind"
	AwaitsChange Awaited = "change"
	AwaitsEnd    Awaited = "end"
)

// AwaitedBy is what the work awaits that has ended with err.
func AwaitedBy(err error) Awaited {
	if awaits, is := errors.AsType[*Awaits](err); is {
		return awaits.For
	}
	return ""
}

// Error is the text of the error.
func (a *Awaits) Error() string { return a.Err.Error() }

// Unwrap gives the error.
func (a *Awaits) Unwrap() error { return a.Err }

// Retry says when something that has failed is tried again. The zero value: nothing has.
type Retry struct {
	// Attempt counts the failures in a row.
	Attempt int
	// At is the time of the next try.
	At time.Time
	// Err says why the last try has failed; "" when nothing has.
	Err string
	// Awaits is what it has awaited.
	Awaits Awaited
	// news: something has changed since the last try began, as far as is known.
	news bool
}

// Failed notes one more failure. Jitter is that of [Backoff.Delay].
func (r *Retry) Failed(now time.Time, err error, b Backoff, jitter float64) {
	r.Attempt++
	r.Err, r.Awaits = err.Error(), AwaitedBy(err)
	if r.news {
		b.Max, r.news = min(b.Max, b.Min), false
	}
	r.At = now.Add(b.After(err, r.Attempt, jitter))
}

// Waits says that it is not yet time for the next try.
func (r Retry) Waits(now time.Time) bool { return r.At.After(now) }

// Soon has the next try wait no longer than until that time, because something has changed. When a try
// is under way, and fails, the next one waits as after a first failure.
func (r *Retry) Soon(at time.Time) {
	if r.news = !r.At.After(at); !r.news {
		r.At = at
	}
}

// Task is work that is done once, in one try at a time. The zero value: nothing was tried.
type Task struct {
	Retry
	Running, Done bool
}

// Due says that a try may begin now.
func (t *Task) Due(now time.Time) bool { return !t.Running && !t.Waits(now) }

// Ended takes in the end of a try. Those that fail are spaced out by [Long].
func (t *Task) Ended(now time.Time, err error, jitter func() float64) {
	if err != nil {
		t.Running = false
		t.Failed(now, err, Long, jitter())
		return
	}
	*t = Task{Done: true}
}

// Again has the work done once more. A try that is under way is waited for first.
func (t *Task) Again() { *t = Task{Running: t.Running} }
