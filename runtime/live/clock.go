package live

import (
	"fmt"
	"sync"
	"time"
)

// clock is the one clock of the engine and of all that compares times with the engine's. It is the clock of the
// machine, as long as nobody sets that back: the engine's time never does. Then it goes at half its speed until the
// two are one again, so each time comes once, in its order, and what waits for a time waits twice as long at most.
// Where the machine's clock is set forward, or goes on after the machine was suspended, it goes along at once.
type clock struct {
	read func() (wall time.Time, steady time.Duration)

	mu     sync.Mutex
	wall   time.Time     // as it was read last; zero: never
	steady time.Duration // the same of a clock that nobody can set
	ahead  time.Duration // of the machine's
}

// mostAhead is how far the machine's clock may be set back: past it the engine ends, and the next one goes by the
// new time.
const mostAhead = 3 * time.Hour

func newClock() *clock {
	base := time.Now()
	return &clock{read: func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(base)
	}}
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, steady := c.read()
	if c.wall.IsZero() {
		c.wall, c.steady = wall, steady
	}
	passed := steady - c.steady
	c.ahead = max(c.ahead-(wall.Sub(c.wall)-passed), 0) // less when it was set forward, more when back
	c.ahead = max(c.ahead-passed/2, 0)
	c.wall, c.steady = wall, steady
	return wall.Add(c.ahead)
}

// begin has the time be that of the machine: no engine is there that knows another one.
func (c *clock) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = 0
}

// wrong says why the engine cannot go by the machine's clock any more; nil: it can.
func (c *clock) wrong() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ahead <= mostAhead {
		return nil
	}
	return fmt.Errorf("the clock of the machine was set back by %s: the work begins anew, by the new time", c.ahead.Round(time.Second))
}
