package repairs

import (
	"maps"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

const (
	// MaxRounds is how often one object is put right within Window before that waits.
	MaxRounds = 3
	// Window is how long a repair counts.
	Window = 10 * time.Minute
)

// Rounds are how often each of some objects was put right.
type Rounds[K comparable] map[K]*round

type round struct {
	count       int
	first, last time.Time
	by          string // who had changed it the last time, as far as that is known
}

// Changed notes who has changed an object that is put right now.
func (r Rounds[K]) Changed(k K, by string) { r.at(k).by = by }

// Add counts that an object was put right. It says whether it is contested from now on.
func (r Rounds[K]) Add(k K, now time.Time) (contested bool) {
	round := r.at(k)
	if round.over(now) {
		round.count, round.first = 0, now
	}
	round.count++
	round.last = now
	return round.count == MaxRounds
}

// Forget forgets the repairs that do not count any more.
func (r Rounds[K]) Forget(now time.Time) {
	maps.DeleteFunc(r, func(_ K, round *round) bool { return round.over(now) })
}

// Until is when an object may be put right again; zero: at once.
func (r Rounds[K]) Until(k K, backoff lane.Backoff) time.Time {
	if round := r[k]; round != nil && round.count >= MaxRounds {
		return round.last.Add(backoff.Delay(round.count-MaxRounds+1, 0))
	}
	return time.Time{}
}

// Contested says who changes an object again and again; is is false where nobody does. By is ""
// when that is not known.
func (r Rounds[K]) Contested(k K, now time.Time) (by string, is bool) {
	round := r[k]
	if round == nil || round.count < MaxRounds || round.over(now) {
		return "", false
	}
	return round.by, true
}

// Contests adds to a count, nil for none, the objects that somebody changes again and again, by who does.
func (r Rounds[K]) Contests(by map[string]int, now time.Time) map[string]int {
	for k := range r {
		if who, is := r.Contested(k, now); is {
			if by == nil {
				by = map[string]int{}
			}
			by[who]++
		}
	}
	return by
}

func (r Rounds[K]) at(k K) *round {
	if r[k] == nil {
		r[k] = &round{}
	}
	return r[k]
}

// over says that the repairs do not count any more.
func (r *round) over(now time.Time) bool {
	since := r.first
	if r.count >= MaxRounds {
		since = r.last
	}
	return !since.Add(Window).After(now)
}
