package live

import (
	"fmt"
	"time"
)

// LeaseTimes say how long the Lease lasts, and how it is renewed. All processes of an instance should
// have the same.
type LeaseTimes struct {
	// Duration is how long after its last renewal a process that has crashed is followed, in whole
	// seconds.
	Duration time.Duration
	// Renew is how long a process tries to renew the Lease before it counts as lost.
	Renew time.Duration
	// Retry is the time between two renewals, and between two tries of a process that waits.
	Retry time.Duration
}

// DefaultLeaseTimes have a process that has crashed be followed within ten seconds. A connection that has died is
// noticed within Renew, see package cluster.
func DefaultLeaseTimes() LeaseTimes {
	return LeaseTimes{Duration: 9 * time.Second, Renew: 6 * time.Second, Retry: time.Second}
}

// leastGrace is the least time to stop in, after the Lease is lost.
const leastGrace = time.Second

// Check says why these times are not safe: a process that cannot renew the Lease has to know it,
// and to have stopped, before another one may have it.
func (t LeaseTimes) Check() error {
	switch {
	case t.Retry < 100*time.Millisecond:
		return fmt.Errorf("the Lease cannot be renewed every %s: take 100ms at least", t.Retry)
	case t.Renew < 3*t.Retry:
		return fmt.Errorf("a Lease that is renewed every %s would be lost after fewer than three tries in %s: take %s at least", t.Retry, t.Renew, 3*t.Retry)
	case t.Duration%time.Second != 0:
		return fmt.Errorf("a Lease lasts whole seconds, and not %s", t.Duration)
	case t.grace() < leastGrace:
		return fmt.Errorf("a Lease of %s that is lost after %s leaves no time to stop: it must last %s at least", t.Duration, t.Renew,
			(t.Duration - t.grace() + leastGrace + time.Second - 1).Truncate(time.Second))
	}
	return nil
}

// grace is how long work under way may take to end when the Lease is lost: after it another
// process may write.
func (t LeaseTimes) grace() time.Duration { return t.Duration - t.Renew - t.Retry - time.Second }

// request bounds one request, so that one that hangs leaves time for another before the Lease is
// lost, and nobody waits for a Lease for ever.
func (t LeaseTimes) request() time.Duration { return t.Renew / 2 }
