package lane

import (
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

// Delay returns the wait after that many failures in a row (1 or more). Jitter, in
// [0,1), spreads it by up to 20 % upwards, so that what failed together does not
// come back together; the result never exceeds Max.
func (b Backoff) Delay(failures int, jitter float64) time.Duration {
	d := float64(b.Min) * math.Pow(b.Factor, float64(failures-1))
	d *= 1 + 0.2*jitter
	if d > float64(b.Max) || math.IsInf(d, 0) || math.IsNaN(d) {
		return b.Max
	}
	return time.Duration(d)
}
