// Package repairs knows which objects of one module's release are not as Starling has left them,
// and says when they are put right. An object that somebody changes again and again waits longer
// each time, and people are told who does. It does no I/O.
package repairs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

const (
	// MaxRounds is how often one object is put right within Window before that waits.
	MaxRounds = 3
	// Window is how long a repair counts.
	Window = 10 * time.Minute
)

// waiting spaces out the tries of a repair that waits for something to end.
var waiting = lane.Backoff{Min: time.Second, Max: 10 * time.Second, Factor: 2}

// Object is one that is not as it was left.
type Object struct {
	effect.Ref
	// Missing says that it is not there.
	Missing bool
	// By are others that manage fields of it, those that wrote last first.
	By []string
}

// Repairs are those of one module.
type Repairs struct {
	backoff lane.Backoff
	found   []Object
	verify  bool // nobody knows which objects differ
	task    lane.Task
	rounds  map[effect.Ref]*round // objects that were put right
	waits   string                // for what the last try waits, or ""
}

// round is how often an object was put right.
type round struct {
	count       int
	first, last time.Time
	by          string // who had changed it the last time, as far as that is known
}

// New returns the repairs of a release that is as it was left. Those that fail are tried again as
// backoff says.
func New(backoff lane.Backoff) *Repairs {
	return &Repairs{backoff: backoff, rounds: map[effect.Ref]*round{}}
}

// Found takes in all objects that differ now. With verify there may be others, and nobody knows
// which.
func (r *Repairs) Found(objects []Object, verify bool) {
	r.found, r.verify = objects, verify
	if len(objects) == 0 && !verify && !r.Running() {
		r.task, r.waits = lane.Task{}, ""
	}
}

// Objects are those that differ.
func (r *Repairs) Objects() []Object { return r.found }

// Running says that a repair is under way.
func (r *Repairs) Running() bool { return r.task.Running }

// Err says why the last repair has failed, or for what it waits; "" when it has succeeded.
func (r *Repairs) Err() string { return cmp.Or(r.task.Err, r.waits) }

// Next is when a repair is due that waits for a time; zero without one.
func (r *Repairs) Next() (at time.Time) {
	if len(r.found) == 0 && !r.verify {
		return time.Time{}
	}
	if at = r.task.At; r.verify {
		return at
	}
	var soonest time.Time
	for i, o := range r.found {
		if until := r.until(o.Ref); i == 0 || until.Before(soonest) {
			soonest = until
		}
	}
	if soonest.After(at) {
		return soonest
	}
	return at
}

// until is when an object may be put right.
func (r *Repairs) until(k effect.Ref) time.Time {
	if round := r.rounds[k]; round != nil && round.count >= MaxRounds {
		return round.last.Add(r.backoff.Delay(round.count-MaxRounds+1, 0))
	}
	return time.Time{}
}

// Begin begins a repair of all objects that are due; nil objects mean that it has to look at all.
// Due is false without any. With look that alone is due. [Repairs.Ended] ends it.
func (r *Repairs) Begin(now time.Time, look bool) (objects []Object, due bool) {
	if !r.task.Due(now) || look && !r.verify {
		return nil, false
	}
	if !r.verify {
		for _, o := range r.found {
			if r.until(o.Ref).After(now) {
				continue
			}
			objects = append(objects, o)
			if len(o.By) > 0 {
				r.round(o.Ref).by = o.By[0]
			}
		}
		if len(objects) == 0 {
			return nil, false
		}
	}
	r.task.Running = true
	return objects, true
}

// Outcome is what became of a repair.
type Outcome struct {
	Err error
	// Objects were put right, or looked at.
	Objects []effect.Ref
	// Waits says what has to end before the rest can be put right, or "".
	Waits string
}

// Ended takes in the end of a repair. It returns the objects that are contested from now on.
func (r *Repairs) Ended(o Outcome, now time.Time, jitter func() float64) (contested []effect.Ref) {
	r.task.Running = false
	switch r.waits = o.Waits; {
	case o.Err != nil:
		r.task.Failed(now, o.Err, r.backoff, jitter())
		return nil
	case o.Waits != "":
		r.task.Attempt++
		r.task.Err, r.task.At = "", now.Add(waiting.Delay(r.task.Attempt, jitter()))
		return nil
	}
	r.task, r.verify = lane.Task{}, false
	for _, k := range o.Objects {
		round := r.round(k)
		if round.over(now) {
			round.count, round.first = 0, now
		}
		round.count++
		if round.last = now; round.count == MaxRounds {
			contested = append(contested, k)
		}
	}
	maps.DeleteFunc(r.rounds, func(_ effect.Ref, round *round) bool { return round.over(now) })
	return contested
}

func (r *Repairs) round(k effect.Ref) *round {
	if r.rounds[k] == nil {
		r.rounds[k] = &round{}
	}
	return r.rounds[k]
}

// over says that the repairs do not count any more.
func (r *round) over(now time.Time) bool {
	since := r.first
	if r.count >= MaxRounds {
		since = r.last
	}
	return !since.Add(Window).After(now)
}

// Contested says who changes an object again and again; is is false where nobody does. By is ""
// when that is not known.
func (r *Repairs) Contested(k effect.Ref, now time.Time) (by string, is bool) {
	round := r.rounds[k]
	if round == nil || round.count < MaxRounds || round.over(now) {
		return "", false
	}
	return round.by, true
}

// Contests counts the objects that somebody changes again and again, by who does; nil: nobody.
func (r *Repairs) Contests(now time.Time) (by map[string]int) {
	for k := range r.rounds {
		if who, is := r.Contested(k, now); is {
			if by == nil {
				by = map[string]int{}
			}
			by[who]++
		}
	}
	return by
}

// AllContested are the objects that somebody changes again and again, sorted.
func (r *Repairs) AllContested(now time.Time) []effect.Ref {
	var out []effect.Ref
	for k := range r.rounds {
		if _, is := r.Contested(k, now); is {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, effect.Ref.Compare)
	return out
}
