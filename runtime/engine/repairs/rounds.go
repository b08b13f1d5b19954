package repairs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/lane"
)

const (
	// MaxRounds is how often one field is put right within Window before its object waits.
	MaxRounds = 3
	// Window is how long a repair counts.
	Window = 10 * time.Minute
)

// Rounds are how often each field of some objects was put right, by its path; "" stands for the object
// as a whole, that was gone, or of which nobody knows the field.
type Rounds[K comparable] map[K]map[string]*round

type round struct {
	count       int
	first, last time.Time
	by          string // who had changed it the last time, as far as that is known
}

// Contest is what somebody changes again and again of one object.
type Contest struct {
	// By is who has done so the last time; "" when that is not known.
	By string
	// Fields are the paths of the fields, that of By first; nil: the object as a whole.
	Fields []string
}

// Add counts that a field of an object was put right, which somebody had changed. It says whether that is
// contested from now on.
func (r Rounds[K]) Add(k K, field, by string, now time.Time) (contested bool) {
	if r[k] == nil {
		r[k] = map[string]*round{}
	}
	at := r[k][field]
	if at == nil || at.over(now) {
		at = &round{first: now}
		r[k][field] = at
	}
	at.count++
	at.last, at.by = now, by
	return at.count == MaxRounds
}

// Forget forgets the repairs that do not count any more.
func (r Rounds[K]) Forget(now time.Time) {
	r.drop(func(_ K, _ string, at *round) bool { return at.over(now) })
}

func (r Rounds[K]) drop(over func(k K, field string, at *round) bool) {
	maps.DeleteFunc(r, func(k K, fields map[string]*round) bool {
		maps.DeleteFunc(fields, func(field string, at *round) bool { return over(k, field, at) })
		return len(fields) == 0
	})
}

// Until is when an object may be put right again; zero: at once. All of it waits for the field that waits longest:
// which fields differ is known once it is read.
func (r Rounds[K]) Until(k K) (until time.Time) {
	for _, at := range r[k] {
		if at.count < MaxRounds {
			continue
		}
		if next := at.last.Add(lane.Long.Delay(at.count-MaxRounds+1, 0)); next.After(until) {
			until = next
		}
	}
	return until
}

// Contested says who changes what of an object again and again; is is false where nobody does.
func (r Rounds[K]) Contested(k K, now time.Time) (c Contest, is bool) {
	fields := r[k]
	var all []string
	for field, at := range fields {
		if at.count >= MaxRounds && !at.over(now) {
			all = append(all, field)
		}
	}
	if len(all) == 0 {
		return Contest{}, false
	}
	slices.SortFunc(all, func(a, b string) int {
		switch newest := fields[b].last.Compare(fields[a].last); {
		case newest != 0:
			return newest
		case a == "" || b == "": // a field says more than the object as a whole
			return cmp.Compare(b, a)
		}
		return cmp.Compare(a, b)
	})
	c.By = fields[all[0]].by
	for _, field := range all {
		if field != "" {
			c.Fields = append(c.Fields, field)
		}
	}
	return c, true
}

// Contests adds to a count, nil for none, the objects that somebody changes again and again, by who does.
func (r Rounds[K]) Contests(by map[string]int, now time.Time) map[string]int {
	for k := range r {
		if c, is := r.Contested(k, now); is {
			if by == nil {
				by = map[string]int{}
			}
			by[c.By]++
		}
	}
	return by
}

// over says that the repairs do not count any more.
func (r *round) over(now time.Time) bool {
	since := r.first
	if r.count >= MaxRounds {
		since = r.last
	}
	return !since.Add(Window).After(now)
}
