// Package causes knows which runs have led to an event, and finds rows of runs that go round: a
// hook that writes something else at each run to an object that it watches wakes itself
// without end; two hooks may do the same to each other, and a hook to itself by way of values
// and the hooks of a release. The event of a write carries its cause, see [effect.Cause],
// and the runs that it leads to hand that on. A subject that has led to itself many times is
// slowed down: where a row of runs goes round, one place is enough. News of anything else let
// it run at once. The package does no I/O.
package causes

import (
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// MaxEchoes is how many such runs are taken for hooks that come to rest by and by.
const MaxEchoes = 20

// echoRests is how long after its last run a subject is said to wake itself.
const echoRests = time.Minute

// mostNews is how long a subject waits at most while others change the object as well: it may be that they answer
// to its writes, and that they have nothing to do with it.
const mostNews = 10 * time.Second

// echoes spaces out the runs after them.
var echoes = lane.Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

// OfWatch says whether an event tells of objects of a watch.
func OfWatch(ev builtins.Event) bool {
	switch ev.Type {
	case "sync", "added", "modified", "deleted":
		return true
	}
	return false
}

// Of is the event whose cause is that of a run for these events: of one object the
// longest row counts, for whoever answers to a change may be of that row; of several objects
// the shortest, for a run that something else has brought about as well begins anew. A row
// that is known to go round goes on all the same.
func Of(events []builtins.Event) (cause builtins.Event, slowed bool) {
	type object struct{ typ, binding, namespace, name string }
	caused := func(ev builtins.Event) bool { return ev.Cause != nil }
	if !slices.ContainsFunc(events, caused) {
		return builtins.Event{}, false
	}
	longest := map[object]builtins.Event{}
	for _, ev := range events {
		of := object{"", ev.Binding, ev.Namespace, ev.Name}
		if !OfWatch(ev) {
			of.typ = ev.Type
		}
		if before, there := longest[of]; !there || before.Cause.Compare(ev.Cause) < 0 {
			longest[of] = ev
		}
	}
	var least, most *builtins.Event
	for _, ev := range longest {
		if least == nil || compareCauses(ev, *least) < 0 {
			least = &ev
		}
		if most == nil || compareCauses(ev, *most) > 0 {
			most = &ev
		}
	}
	if goesRound(most.Cause) {
		return *most, goesRound(least.Cause)
	}
	return *least, false
}

func goesRound(c *effect.Cause) bool { return c != nil && c.Rounds >= MaxEchoes }

func compareCauses(a, b builtins.Event) int {
	if c := a.Cause.Compare(b.Cause); c != 0 {
		return c
	}
	key := func(ev builtins.Event) string { return ev.Binding + " " + ev.Namespace + "/" + ev.Name }
	return strings.Compare(key(a), key(b))
}

// Echoes are those of the subjects of one hook that wake themselves, or have, by id.
type Echoes map[string]*Echo

// Of is that of a subject; one that does not wake itself has nothing to take note of.
func (x Echoes) Of(subject string) *Echo {
	if echo := x[subject]; echo != nil {
		return echo
	}
	return &Echo{}
}

// Rest drops those that do not wake themselves any more.
func (x Echoes) Rest(now time.Time) {
	for subject, echo := range x {
		if echo.rest(now) && echo.until.IsZero() {
			delete(x, subject)
		}
	}
}

// Next is when it is time for [Echoes.Rest]; zero: not yet.
func (x Echoes) Next() (at time.Time) {
	for _, echo := range x {
		if ends := echo.ends; !ends.IsZero() && (at.IsZero() || ends.Before(at)) {
			at = ends
		}
	}
	return at
}

// Forget drops what was said of all of them.
func (x Echoes) Forget() {
	for _, echo := range x {
		echo.why = ""
	}
}

// Trouble is what was said of the first subject that wakes itself, or "".
func (x Echoes) Trouble() (why string) {
	for _, echo := range x {
		if echo.why != "" && (why == "" || echo.why < why) {
			why = echo.why
		}
	}
	return why
}

// Echo is what is known of one subject that wakes itself.
type Echo struct {
	until time.Time // what waits for it waits until then; zero: it is not slowed down
	why   string    // what is said of it, as long as the row seems to go on
	ends  time.Time // when that is over, unless the row comes back; zero: not yet
}

// Until is the time until which what waits for the subject waits; zero: it need not.
func (x *Echo) Until() time.Time { return x.until }

func mine(subject string) func(builtins.Event) bool {
	return func(ev builtins.Event) bool { return OfWatch(ev) && ev.Cause.Round(subject) >= MaxEchoes }
}

// Concerns says whether events for the subject of this id may change how long it waits.
func (x *Echo) Concerns(subject string, events []builtins.Event) bool {
	return !x.until.IsZero() || slices.ContainsFunc(events, mine(subject))
}

// Queue works out how long all that waits for a subject has to wait. It says whether the
// subject is slowed down now, and which event is why. Jitter returns numbers in [0,1).
func (x *Echo) Queue(subject string, waiting []builtins.Event, now time.Time, jitter func() float64) (why builtins.Event, slowed bool) {
	ev, round := Of(waiting)
	if !round || !mine(subject)(ev) {
		x.until = time.Time{}
		return builtins.Event{}, false
	}
	if !x.until.After(now) {
		x.until = now.Add(echoes.Delay(ev.Cause.Rounds-MaxEchoes+1, jitter()))
		why, slowed = ev, true
	}
	if most := now.Add(mostNews); x.until.After(most) && slices.ContainsFunc(waiting, func(ev builtins.Event) bool { return ev.Cause == nil }) {
		x.until = most
	}
	return why, slowed
}

// Say notes what is said of the subject. first says that nothing was before.
func (x *Echo) Say(why string) (first bool) {
	first = x.why == ""
	x.why, x.ends = why, time.Time{}
	return first
}

// Begin notes that a run begins which events have brought about.
func (x *Echo) Begin(cause *effect.Cause) {
	x.until = time.Time{}
	if !goesRound(cause) {
		x.why = ""
	}
}

// End notes that a run has succeeded: the objects that it has written may wake it again.
func (x *Echo) End(wrote bool, now time.Time) {
	switch {
	case !x.until.IsZero(): // it has done so already
	case !wrote:
		x.why = ""
	case x.why != "":
		x.ends = now.Add(echoRests)
	}
}

// rest says whether the subject does not wake itself any more.
func (x *Echo) rest(now time.Time) bool {
	if x.why == "" || !x.ends.IsZero() && !x.ends.After(now) {
		x.why = ""
		return true
	}
	return false
}

// Writes are the causes of what commits under way write, by object: an event that comes
// before the end of a commit may tell of it without saying so.
type Writes map[effect.Ref]writing

// writing is the cause of a commit, and that of the events of one of its writes.
type writing struct{ commit, event *effect.Cause }

// Begin notes that a commit begins.
func (w Writes) Begin(writes []effect.Write, cause *effect.Cause) {
	for i := range writes {
		for _, ref := range writes[i].Objects() {
			w[ref.AnyVersion()] = writing{cause, cause.Of(writes[i].Pos)}
		}
	}
}

// End ends that.
func (w Writes) End(writes []effect.Write, cause *effect.Cause) {
	for i := range writes {
		for _, ref := range writes[i].Objects() {
			if ref = ref.AnyVersion(); w[ref].commit == cause {
				delete(w, ref)
			}
		}
	}
}

// Caused returns events of objects of one kind with the causes of what is being written.
func (w Writes) Caused(apiVersion, kind string, events []builtins.Event) []builtins.Event {
	if len(w) == 0 {
		return events
	}
	out := slices.Clone(events)
	for i := range out {
		if ev := &out[i]; ev.Cause == nil {
			ev.Cause = w[effect.Ref{APIVersion: apiVersion, Kind: kind, Namespace: ev.Namespace, Name: ev.Name}.AnyVersion()].event
		}
	}
	return out
}
