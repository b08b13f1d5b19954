package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/watches"
	"github.com/starling-operator/starling/runtime/lane"
)

// A hook that writes something else at each run to an object that it watches wakes itself
// without end; two hooks may do the same to each other, and a hook to itself by way of values
// and the hooks of a release. The event of a write carries its cause, see [effect.Cause],
// and the runs that it leads to hand that on. A subject that has led to itself many times is
// slowed down: where a row of runs goes round, one place is enough.
//
// News of anything else let it run at once.

// echo is what is known of that for one subject.
type echo struct {
	until time.Time // what waits for it waits until then; zero: it is not slowed down
	why   string    // what is said of it, as long as the row seems to go on
	ends  time.Time // when that is over, unless the row comes back; zero: not yet
}

const (
	// maxEchoes is how many such runs are taken for hooks that come to rest by and by.
	maxEchoes = 20
	// echoRests is how long after its last run a subject is said to wake itself.
	echoRests = time.Minute
)

// echoes spaces out the runs after them.
var echoes = lane.Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

// causeOf is the event whose cause is that of a run for these events: of one object the
// longest row counts, for whoever answers to a change may be of that row; of several objects
// the shortest, for a run that something else has brought about as well begins anew. A row
// that is known to go round goes on all the same.
func causeOf(events []builtins.Event) (cause builtins.Event, slowed bool) {
	type object struct{ typ, binding, namespace, name string }
	caused := func(ev builtins.Event) bool { return ev.Cause != nil }
	if !slices.ContainsFunc(events, caused) {
		return builtins.Event{}, false
	}
	longest := map[object]builtins.Event{}
	for _, ev := range events {
		of := object{"", ev.Binding, ev.Namespace, ev.Name}
		if !ofWatch(ev) {
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

func goesRound(c *effect.Cause) bool { return c != nil && c.Rounds >= maxEchoes }

func compareCauses(a, b builtins.Event) int {
	if c := a.Cause.Compare(b.Cause); c != 0 {
		return c
	}
	return strings.Compare(a.Binding+" "+objectKey(a.Namespace, a.Name), b.Binding+" "+objectKey(b.Namespace, b.Name))
}

// leads is the cause of what the run leads to. Only what comes by a watch can be made to wait:
// a release waits for the hooks of its stages.
func (r *run) leads() *effect.Cause {
	return r.cause.Then(r.subject.id(), slices.ContainsFunc(r.work.Events, ofWatch))
}

// add queues events for the subject's next run. One without a result has its run when it gets
// one.
func (e *Engine) add(s *subject, order int, events ...builtins.Event) {
	l := s.hook.lane
	if s.lacks {
		return
	}
	l.Add(s.work(), order, events...)
	mine := func(ev builtins.Event) bool { return ofWatch(ev) && ev.Cause.Round(s.id()) >= maxEchoes }
	if s.echo.until.IsZero() && !slices.ContainsFunc(events, mine) {
		return
	}
	ev, slowed := causeOf(l.Pending(s.work()))
	switch {
	case !slowed || !mine(ev):
		s.echo.until = time.Time{}
	case !s.echo.until.After(e.now):
		s.echo.until = e.now.Add(echoes.Delay(ev.Cause.Rounds-maxEchoes+1, e.opts.Jitter()))
		e.slowed(s, ev)
	}
	l.Delay(s.work(), s.echo.until)
}

// slowed says that a subject wakes itself.
func (e *Engine) slowed(s *subject, ev builtins.Event) {
	what, first := s.hook.writes(ev), s.echo.why == ""
	if by := ev.Cause.Run; by == s.id() {
		s.echo.why = fmt.Sprintf("wakes itself: it watches what it writes%s, and writes something else each time; it is slowed down. Have it write the same for the same snapshots", what)
	} else {
		s.echo.why = fmt.Sprintf("wakes itself by way of %s: it watches what that writes%s, and each writes something else each time; it is slowed down. Have each write the same for the same snapshots", by, what)
	}
	s.echo.ends = time.Time{}
	s.hook.echoing[s] = true
	if first {
		e.do(Note{Level: builtins.LevelWarn, Module: s.hook.module.name, Hook: s.hook.gen.ID, Event: "HookWakesItself", Message: s.said(s.echo.why)})
	}
}

// writes names the object of an event of one of the hook's watches.
func (h *hook) writes(ev builtins.Event) string {
	w := h.watches.Of(ev.Binding)
	if w == nil || ev.Name == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", effect.Ref{Kind: w.Decl.Kind, Namespace: ev.Namespace, Name: ev.Name})
}

// begin notes that a run begins which events have brought about.
func (x *echo) begin(cause *effect.Cause) {
	x.until = time.Time{}
	if !goesRound(cause) {
		x.why = ""
	}
}

// ended notes that a run has succeeded: what it has written may wake it again.
func (x *echo) ended(wrote bool, now time.Time) {
	switch {
	case !x.until.IsZero(): // it has done so already
	case !wrote:
		x.why = ""
	case x.why != "":
		x.ends = now.Add(echoRests)
	}
}

// rest has those forgotten that do not wake themselves any more.
func (h *hook) rest(now time.Time) {
	if len(h.echoing) == 0 { // next to always
		return
	}
	for s := range h.echoing {
		if s.gone || s.echo.why == "" || !s.echo.ends.IsZero() && !s.echo.ends.After(now) {
			s.echo.why = ""
			delete(h.echoing, s)
		}
	}
}

// restsAt returns when it is time for that.
func (h *hook) restsAt() (at time.Time) {
	if len(h.echoing) == 0 {
		return at
	}
	for s := range h.echoing {
		if ends := s.echo.ends; !ends.IsZero() && (at.IsZero() || ends.Before(at)) {
			at = ends
		}
	}
	return at
}

// echoTrouble names the first subject of the hook that wakes itself, or "".
func (h *hook) echoTrouble() string {
	out := ""
	for s := range h.echoing {
		if text := s.said(s.echo.why); s.echo.why != "" && (out == "" || text < out) {
			out = text
		}
	}
	return out
}

// writing notes which objects a commit is about to write: an event that comes before its
// answer may tell of them without saying so.
func (e *Engine) writing(c Commit) {
	for i := range c.Writes {
		for _, ref := range c.Writes[i].Objects() {
			e.wrote[anyVersion(ref)] = c.Cause
		}
	}
}

// hasWritten ends that.
func (e *Engine) hasWritten(writes []effect.Write, cause *effect.Cause) {
	for i := range writes {
		for _, ref := range writes[i].Objects() {
			if ref = anyVersion(ref); e.wrote[ref] == cause {
				delete(e.wrote, ref)
			}
		}
	}
}

// caused returns events of a watch with the causes of what is being written.
func (e *Engine) caused(w *watches.Watch, events []builtins.Event) []builtins.Event {
	if len(e.wrote) == 0 {
		return events
	}
	out := slices.Clone(events)
	for i := range out {
		if ev := &out[i]; ev.Cause == nil {
			ev.Cause = e.wrote[anyVersion(effect.Ref{APIVersion: w.Decl.APIVersion, Kind: w.Decl.Kind, Namespace: ev.Namespace, Name: ev.Name})]
		}
	}
	return out
}

// anyVersion is ref with the group in place of the API version.
func anyVersion(ref effect.Ref) effect.Ref {
	group, _, grouped := strings.Cut(ref.APIVersion, "/")
	if !grouped {
		group = ""
	}
	ref.APIVersion = group
	return ref
}
