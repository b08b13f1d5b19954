// Package timers knows when the schedules of one hook fall due, and which of their ticks have
// had a run. It does no I/O.
package timers

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/schedule"
)

// Timer is one schedule of a hook.
type Timer struct {
	// ID is "<hook>#<binding>".
	ID string
	// Binding is its name within the hook.
	Binding string

	decl builtins.ScheduleBinding
	cron schedule.Cron

	tick  time.Time // the next time that the cron text names
	fired time.Time // the last tick that a run about to begin is for
	later time.Time // the last tick that came during a run: it counts for the next
	// last is the last tick that a run succeeded for. It is kept across
	// restarts with catchUp, and only then used.
	last time.Time
}

// New returns the timer of a binding of a hook.
func New(hook, binding string, decl *builtins.ScheduleBinding) *Timer {
	t := &Timer{ID: hook + "#" + binding, Binding: binding, decl: *decl}
	// Text and zone were checked as the file was loaded; what fails here all the
	// same, as on a machine without that zone, never falls due.
	if cron, err := schedule.Parse(decl.Cron); err == nil {
		t.cron = cron
		if decl.Timezone != "" {
			t.cron, _ = cron.In(decl.Timezone)
		}
	}
	return t
}

// Is says whether the timer is one of this declaration.
func (t *Timer) Is(decl *builtins.ScheduleBinding) bool { return t.decl == *decl }

// Follow has the timer make up for ticks that another one of its binding has missed.
func (t *Timer) Follow(old *Timer) {
	if old != nil && t.decl.CatchUp {
		t.last = old.last
	}
}

// Stop ends one life of its module.
func (t *Timer) Stop() { t.tick, t.fired = time.Time{}, time.Time{} }

// Forget drops the last tick that a run succeeded for.
func (t *Timer) Forget() { t.last = time.Time{} }

// Start plans the first tick. It says whether one was missed that has to be made up for; ticks
// before the first start were not missed.
func (t *Timer) Start(now time.Time) (missed bool) {
	t.tick = t.cron.Next(now)
	t.later = time.Time{}
	switch {
	case !t.decl.CatchUp:
		return false
	case t.last.IsZero():
		t.last = now
		return false
	}
	tick := t.cron.Next(t.last)
	return !tick.IsZero() && !tick.After(now)
}

// Next is when the timer falls due, jitter included; zero: never.
func (t *Timer) Next() time.Time {
	if t.tick.IsZero() {
		return t.tick
	}
	return t.tick.Add(schedule.Jitter(t.ID, t.tick, t.decl.Jitter))
}

// Due says whether the timer has fallen due, for which tick, and plans the next one.
func (t *Timer) Due(now time.Time) (tick time.Time, due bool) {
	if t.tick.IsZero() || t.Next().After(now) {
		return time.Time{}, false
	}
	tick, t.tick = t.tick, t.cron.Next(now)
	return tick, true
}

// Fire notes that the hook is to run for a tick; busy says that a run is under way, which is
// not for it.
func (t *Timer) Fire(tick time.Time, busy bool) {
	if busy {
		t.later = tick
	} else {
		t.fired = tick
	}
}

// kept is what stands in a Secret for the last tick.
type kept struct {
	Timer string    `json:"timer"`
	Tick  time.Time `json:"tick"`
}

// Encode is what has to be kept of the timer; nil: nothing.
func (t *Timer) Encode() []byte {
	if !t.decl.CatchUp || t.last.IsZero() {
		return nil
	}
	data, _ := json.Marshal(kept{t.ID, t.last.UTC()}) // a text and a time
	return data
}

// Set holds the timers of one hook, in the order of its bindings.
type Set []*Timer

// Of returns the timer of a binding, or nil.
func (s Set) Of(binding string) *Timer {
	if i := slices.IndexFunc(s, func(t *Timer) bool { return t.Binding == binding }); i >= 0 {
		return s[i]
	}
	return nil
}

// Next is when the first of them falls due; zero: none does.
func (s Set) Next() (first time.Time) {
	for _, t := range s {
		if at := t.Next(); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Has says whether the set has the timer of an id.
func (s Set) Has(id string) bool {
	return slices.ContainsFunc(s, func(t *Timer) bool { return t.ID == id })
}

// Ran notes that a run has succeeded for the events that came before it. It returns the timers
// of which something else has to be kept.
func (s Set) Ran(events []builtins.Event) (changed []*Timer) {
	ran := map[string]bool{}
	for _, ev := range events {
		if ev.Type == "schedule" {
			ran[ev.Binding] = true
		}
	}
	for _, t := range s {
		if ran[t.Binding] && t.decl.CatchUp && t.fired.After(t.last) {
			t.last = t.fired
			changed = append(changed, t)
		}
		if !t.later.IsZero() {
			t.fired, t.later = t.later, time.Time{}
		}
	}
	return changed
}

// Read takes over what was kept of a timer, unless that is gone, or no longer asks for it.
func (s Set) Read(data []byte) (known bool, err error) {
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return false, err
	}
	for _, t := range s {
		if t.ID == k.Timer && t.decl.CatchUp {
			t.last = k.Tick
			return true, nil
		}
	}
	return false, nil
}
