package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// A hook that writes something else at each run to an object that it watches wakes itself
// without end. Its own writes are known: when nothing else has woken it many times in a
// row, it is slowed down. News of anything else let it run at once.
//
// Others change these objects, too: a user whom a hook corrects, a controller that writes a
// status. So a run that writes the same as the one before it ends the row: to write the
// same again changes nothing, and wakes nobody.

// echo is what is known of that for one subject.
type echo struct {
	wrote map[effect.Ref]bool // by its last run, with the group in place of the version
	news  bool                // something else has happened since the last run began
	runs  int                 // in a row that its own writes alone have brought about
	sum   [sha256.Size]byte   // of what the last of them wrote
	until time.Time           // what its own writes have brought about waits
}

// maxEchoes is how many such runs are taken for a hook that comes to rest by and by.
const maxEchoes = 20

// echoes spaces out the runs after them.
var echoes = lane.Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}

// writes notes what a run is about to write.
func (x *echo) writes(all []effect.Write, attempt int) {
	x.wrote = nil
	for i := range all {
		for _, ref := range all[i].Objects() {
			if x.wrote == nil {
				x.wrote = map[effect.Ref]bool{}
			}
			x.wrote[anyVersion(ref)] = true
		}
	}
	if x.wrote == nil || x.runs > 0 && attempt == 1 && x.same(all) {
		x.runs, x.until = 0, time.Time{}
	}
}

// same says that writes are those of the run before, and change nothing when they are
// carried out once more.
func (x *echo) same(all []effect.Write) bool {
	written := map[effect.Ref]bool{}
	sum := sha256.New()
	enc := json.NewEncoder(sum)
	for _, w := range all {
		switch {
		case w.Kind == effect.WriteEvent, w.Kind == effect.WriteHold:
			continue
		case w.Kind == effect.WriteEvict, w.Kind == effect.WritePatch && !w.Patch.Repeatable():
			return false
		}
		for _, ref := range w.Objects() {
			if ref = anyVersion(ref); written[ref] {
				return false // each of the two may undo the other
			}
			written[ref] = true
		}
		w.Unchanged = nil
		if enc.Encode(w) != nil {
			return false
		}
	}
	before := x.sum
	sum.Sum(x.sum[:0])
	return before == x.sum
}

// hears says whether an event of a watch tells of what the subject has written itself.
func (x *echo) hears(w *watch, ev builtins.Event) bool {
	return x.wrote[anyVersion(effect.Ref{APIVersion: w.decl.APIVersion, Kind: w.decl.Kind, Namespace: ev.Namespace, Name: ev.Name})]
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

// begin counts a run that begins.
func (x *echo) begin(attempt int) {
	switch {
	case x.news:
		x.runs, x.until = 0, time.Time{}
	case attempt == 1:
		x.runs++
	}
	x.news = false
}

// addOwn queues events of what the subject has written itself.
func (e *Engine) addOwn(s *subject, events ...builtins.Event) {
	x := &s.echo
	s.hook.lane.Add(s.work(), lane.Unordered, events...)
	if x.runs < maxEchoes || x.news {
		return
	}
	if x.runs == maxEchoes && x.until.IsZero() {
		e.do(Note{Level: builtins.LevelWarn, Module: s.hook.module.name, Hook: s.hook.gen.ID, Event: "HookWakesItself", Message: s.said(x.trouble())})
	}
	s.hook.echoing[s] = true
	if !x.until.After(e.now) {
		x.until = e.now.Add(echoes.Delay(x.runs-maxEchoes+1, e.opts.Jitter()))
	}
	s.hook.lane.Delay(s.work(), x.until)
}

// trouble says that the subject wakes itself, or "".
func (x *echo) trouble() string {
	if x.runs < maxEchoes {
		return ""
	}
	what := ""
	for ref := range x.wrote {
		if text := ref.String(); what == "" || text < what {
			what = text
		}
	}
	return fmt.Sprintf("wakes itself: it watches what it writes (%s), and writes something else each time; it is slowed down. Have it write the same for the same snapshots", what)
}

// echoTrouble names the first subject of the hook that wakes itself, or "".
func (h *hook) echoTrouble() string {
	out := ""
	for s := range h.echoing {
		switch why := s.echo.trouble(); {
		case why == "" || s.gone:
			delete(h.echoing, s)
		case out == "" || s.said(why) < out:
			out = s.said(why)
		}
	}
	return out
}
