package engine

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/causes"
	"github.com/starling-operator/starling/runtime/lane"
)

// subject is what runs of a hook are about: all there is or, of a hook with for_each,
// one object. Each has its own work in the lane, layer, state and timer.
type subject struct {
	hook *hook
	// key is "namespace/name", or the name of a cluster-scoped object; "" without
	// for_each.
	key string

	state map[string]any // what it remembers; replaced, never changed
	// stateSecrets are the paths inside state at which secret texts stand.
	stateSecrets [][]string
	// keys are those of what is kept of both, as they are in the Secret.
	keys *subjectKeys

	echo      causes.Echo
	first     firstRun
	lastError string

	// Of an object alone:
	namespace, name string
	gone            bool // it is no subject any more
	held            bool // it has the finalizer
	mayHold         bool // a commit was to put it there, and may have done so unseen
	leaving         bool // its next run is the cleanup
	lacks           bool // the filter has given no result for it: there is no run about it
	measured        bool // it may have metrics
	sets            bool // it may have sets of objects that it owns
	// last is what was last seen of an object that is not there any more.
	last starlark.Value
}

// firstRun is how far a subject has come since its module came up.
type firstRun int

const (
	untried firstRun = iota
	hasFailed
	hasSucceeded
	renewed // it has succeeded, with other code
)

// tried says that there was a run with the code as it is.
func (f firstRun) tried() bool { return f == hasFailed || f == hasSucceeded }

// passed says that a run has succeeded, with whichever code.
func (f firstRun) passed() bool { return f == hasSucceeded || f == renewed }

// fail notes a run that has failed: what has once succeeded goes on to count.
func (f *firstRun) fail() {
	if f.passed() {
		*f = hasSucceeded
	} else {
		*f = hasFailed
	}
}

// renew notes that the code is another one.
func (f *firstRun) renew() {
	if f.passed() {
		*f = renewed
	} else {
		*f = untried
	}
}

// fails notes why the last run about the subject has failed; "" when it has not.
func (s *subject) fails(why string) {
	if s.lastError = why; why == "" {
		s.hook.failing.drop(s.key)
	} else {
		s.hook.failing.put(s)
	}
}

// reset forgets what belongs to one life of the module.
func (s *subject) reset() {
	s.first, s.lastError, s.echo = untried, "", causes.Echo{}
	s.held, s.mayHold, s.leaving, s.lacks, s.last = false, false, false, false, nil
}

// subjects are some of one hook, sorted by key.
type subjects []*subject

func (l subjects) find(key string) (int, bool) {
	return slices.BinarySearchFunc(l, key, func(s *subject, key string) int { return strings.Compare(s.key, key) })
}

// at returns the subject with a key, or nil.
func (l subjects) at(key string) *subject {
	if i, found := l.find(key); found {
		return l[i]
	}
	return nil
}

// put adds a subject, in the place of one with its key.
func (l *subjects) put(s *subject) {
	i, found := l.find(s.key)
	if !found {
		*l = slices.Insert(*l, i, s)
	}
	(*l)[i] = s
}

func (l *subjects) drop(key string) {
	if i, found := l.find(key); found {
		*l = slices.Delete(*l, i, i+1)
	}
}

// id names the subject among the layers of the values.
func (s *subject) id() string {
	if s.key == "" {
		return s.hook.gen.ID
	}
	return s.hook.gen.ID + " of " + s.key
}

// work names it in the lane.
func (s *subject) work() lane.ID { return lane.ID{Group: s.hook.gen.ID, Key: s.key} }

func (s *subject) ref() effect.Ref {
	w := s.hook.eachWatch().Decl
	return effect.Ref{APIVersion: w.APIVersion, Kind: w.Kind, Namespace: s.namespace, Name: s.name}
}

// keptOf is what of a layer stays beside what the next run sets.
func (h *hook) keptOf(layer []effect.ValueOp) []effect.ValueOp {
	if !h.gen.KeepValues {
		return nil
	}
	return layer
}
