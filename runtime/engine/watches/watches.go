// Package watches knows how far the watches of one hook have come: whether its snapshots show
// all there is, and for which of them it has to run. It does no I/O.
package watches

import (
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// Watch is one k8s.watch of a hook.
type Watch struct {
	// ID names it in one life of its module; "" before its start.
	ID string
	// Binding is its name within the hook.
	Binding string
	// Decl is what the hook has declared.
	Decl *builtins.WatchBinding

	state   state
	noticed bool // the hook was told of a complete snapshot
	trouble Trouble
	logged  time.Time // when the log was told of trouble last
}

// Trouble is what a watch has difficulties with.
type Trouble struct {
	// Reason says what is wrong, or "".
	Reason string
	// Lacks: the snapshot lacks objects that are there, for the filter fails on them.
	Lacks bool
	// Refused: the kind may not be listed.
	Refused bool
}

// state is how far a watch has come.
type state int

const (
	listing state = iota
	absent        // its kind is not served, and was not before
	present       // all there is was listed
	gone          // its kind is not served any more
)

// logEvery is the least time between two lines of the log about one watch. Its error names
// one object and says how many there are, which may change with each event; the status has
// it as it is.
const logEvery = time.Minute

// New returns a watch that has not begun.
func New(binding string, decl *builtins.WatchBinding) *Watch {
	return &Watch{Binding: binding, Decl: decl}
}

// Reset begins another life: nothing is known any more.
func (w *Watch) Reset() { w.state, w.noticed, w.trouble = listing, false, Trouble{} }

// Served says that the kind is served, and all its objects were listed.
func (w *Watch) Served() bool { return w.state == present }

// Missing says that the kind is known not to be served.
func (w *Watch) Missing() bool { return w.state == absent || w.state == gone }

// Seen says that the kind was served at some time in this life.
func (w *Watch) Seen() bool { return w.state == present || w.state == gone }

// Synced says that the snapshot shows all there is; never for a kind that is required and not
// served. Nobody waits for that of a kind that a controller does not own any more.
func (w *Watch) Synced() bool { return w.Served() || w.Missing() && !w.Decl.Require || w.Decl.Former }

// Unsure says that nobody knows which objects there are, though a run may begin. A kind that was served comes
// back with its objects, unless somebody has deleted its definition. Of a kind of before that may not be listed
// none are known: the rights on it may have gone with the kind. Other trouble with it passes.
func (w *Watch) Unsure() bool {
	if w.Decl.Former {
		return w.state == listing && !w.trouble.Refused
	}
	return w.state == gone
}

// Kind is the kind of its objects.
func (w *Watch) Kind() string { return w.Decl.APIVersion + "/" + w.Decl.Kind }

// Reason is what fails, or "".
func (w *Watch) Reason() string { return w.trouble.Reason }

// Fail takes note of trouble; without a reason it is over. changed says that it is another one
// than before, news that the log should have it.
func (w *Watch) Fail(now time.Time, trouble Trouble) (changed, news bool) {
	before := w.trouble
	w.trouble = trouble
	news = trouble.Reason != "" && trouble.Reason != before.Reason && (w.logged.IsZero() || now.Sub(w.logged) >= logEvery)
	if news {
		w.logged = now
	}
	return trouble != before, news
}

// Set holds the watches of one hook, in the order of its bindings.
type Set []*Watch

// At returns the watch of an id, or nil.
func (s Set) At(id string) *Watch { return s.find(func(w *Watch) bool { return w.ID == id }) }

// Of returns the watch of a binding, or nil.
func (s Set) Of(binding string) *Watch {
	return s.find(func(w *Watch) bool { return w.Binding == binding })
}

func (s Set) find(is func(*Watch) bool) *Watch {
	if i := slices.IndexFunc(s, is); i >= 0 {
		return s[i]
	}
	return nil
}

// Synced says that all watches have listed what there is.
func (s Set) Synced() bool { return s.find(func(w *Watch) bool { return !w.Synced() }) == nil }

// Complete says that all snapshots are: a run may see them.
func (s Set) Complete() bool {
	return s.Synced() && s.find(func(w *Watch) bool { return w.trouble.Lacks }) == nil
}

// Waits says which required kind is not served, or "".
func (s Set) Waits() string {
	w := s.find(func(w *Watch) bool { return w.Decl.Require && w.Missing() })
	if w == nil {
		return ""
	}
	return fmt.Sprintf("waits for %s, which is not served", w.Kind())
}

// Trouble names the first watch that has some, or "".
func (s Set) Trouble() string {
	w := s.find(func(w *Watch) bool { return w.trouble.Reason != "" })
	if w == nil {
		return ""
	}
	return fmt.Sprintf("watch %s: %s", w.Binding, w.trouble.Reason)
}

// Sync takes note that a watch has listed all there is, or that its kind is not served. It
// returns the bindings of which the hook gets a sync event: each one once all watches are
// complete. Later ones, for a kind that comes or goes, or a watch that is complete again, are
// changes: what came with that has no event.
func (s Set) Sync(w *Watch, served bool) (due []string) {
	before, again := w.Seen(), w.Served() && served
	switch {
	case served:
		w.state = present
	case before:
		w.state = gone
	default:
		w.state = absent
	}
	if !s.Synced() {
		return nil
	}
	for _, other := range s {
		var wanted bool
		switch {
		case !other.noticed:
			wanted = !other.Decl.Quiet
		case other != w:
		case again: // nobody has told what happened while the watch was not complete
			wanted = other.Decl.Triggers("added") || other.Decl.Triggers("modified") || other.Decl.Triggers("deleted")
		case served:
			wanted = other.Decl.Triggers("added") || !before && !other.Decl.Quiet
		default:
			wanted = other.Decl.Triggers("deleted")
		}
		other.noticed = true
		if wanted {
			due = append(due, other.Binding)
		}
	}
	return due
}

// Again has the hook told once more of all snapshots, for its code is another one. It returns
// the bindings of which it gets a sync event now: none as long as a watch is not complete.
func (s Set) Again() (due []string) {
	synced := s.Synced()
	for _, w := range s {
		if w.noticed = synced; synced && !w.Decl.Quiet {
			due = append(due, w.Binding)
		}
	}
	return due
}
