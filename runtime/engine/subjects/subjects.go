// Package subjects knows what the runs of one hook are about: all there is or, with for_each,
// one object each. It knows which objects there are, how far their first runs have come,
// which of them fail, what each remembers, and what of that is kept. It does no I/O.
package subjects

import (
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	hooks "github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
)

// Subject is what runs of a hook are about: all there is, or one object. Each has its own
// work in the lane, layer, state and timer.
type Subject struct {
	// Hook is the id of its hook.
	Hook string
	// Key is "namespace/name", or the name of a cluster-scoped object; "" for all there is.
	Key string

	memory effect.Memory
	first  FirstRun
	why    string // its last run has failed, or ""
	// Of a controller: what its last look has come to.
	outcome hooks.Looked

	// Of an object alone:
	phase     phase
	finalizer holding
	leaves    Left
	last      starlark.Value  // what was last seen of one that is not there any more
	next      *builtins.Event // what has come in its place since, or nil
}

// phase is what runs about an object are.
type phase int

const (
	lives   phase = iota
	lacking       // the filter has given no result for it: there is none
	leaving       // the next one is the cleanup
)

// holding is whether an object has the finalizer of the hook.
type holding int

const (
	free    holding = iota
	mayHold         // a commit was to put it there, and may have done so unseen
	held
)

// Left is what runs about an object have left beside its layer and its state.
type Left int

const (
	// Metrics: it may have metrics.
	Metrics Left = 1 << iota
	// Sets: it may have sets of objects that it owns.
	Sets
)

// ID names the subject among those of all hooks.
func (s *Subject) ID() string {
	if s.Key == "" {
		return s.Hook
	}
	return s.Hook + " of " + s.Key
}

// Name is the namespace and the name of its object.
func (s *Subject) Name() (namespace, name string) {
	if namespace, name, ok := strings.Cut(s.Key, "/"); ok {
		return namespace, name
	}
	return "", s.Key
}

// Said puts the object before what is said about it.
func (s *Subject) Said(what string) string {
	if s.Key == "" {
		return what
	}
	return s.Key + ": " + what
}

// Lacks says that there is no run about the object: the filter has given no result for it.
func (s *Subject) Lacks() bool { return s.phase == lacking }

// Leaving says that its next run is the cleanup.
func (s *Subject) Leaving() bool { return s.phase == leaving }

// Last is what was last seen of an object that is not there any more, else nil.
func (s *Subject) Last() starlark.Value { return s.last }

// Next tells of the object that has come in the place of one that is not there any more; nil: there is none.
func (s *Subject) Next() *builtins.Event { return s.next }

// Outcome is what runs of a controller about the object have come to.
func (s *Subject) Outcome() *hooks.Looked { return &s.outcome }

// Memory is what it remembers. Only read.
func (s *Subject) Memory() effect.Memory { return s.memory }

// Remember takes the place of what it has remembered.
func (s *Subject) Remember(memory effect.Memory) { s.memory = memory }

// Hold notes that a commit puts the finalizer on the object; it need not when that is there.
func (s *Subject) Hold() (needed bool) {
	if s.finalizer == held {
		return false
	}
	s.finalizer = mayHold
	return true
}

// Leave notes what a run about an object leaves.
func (s *Subject) Leave(left Left) {
	if s.Key != "" {
		s.leaves |= left
	}
}

// Clear forgets all that runs about the subject have set, left and remembered. It returns what
// they have left.
func (s *Subject) Clear() Left {
	left := s.leaves
	s.memory, s.finalizer, s.leaves = effect.Memory{}, free, 0
	return left
}

// Set is the subjects of one hook.
type Set struct {
	own     *Subject // all there is; with for_each it stands for the hook, and has no runs
	objects list     // all that its runs are about: without for_each own alone
	failing list     // those whose last run failed
	// awaited are objects of the first snapshot that wait for their first run; nil: that was
	// not taken note of yet.
	awaited map[*Subject]bool
}

// New returns the subjects of a hook: with each, objects that are still to come.
func New(hook string, each bool) *Set {
	t := &Set{own: &Subject{Hook: hook}}
	if !each {
		t.objects.put(t.own)
	}
	return t
}

// each says whether runs are about objects.
func (t *Set) each() bool { return t.objects.at("") == nil }

// At returns the subject of a key, or nil.
func (t *Set) At(key string) *Subject { return t.objects.at(key) }

// All are all that events of the hook are for, by key: what is the same goes the same way each
// time.
func (t *Set) All() []*Subject { return slices.Clone(t.objects) }

// Len is how many that are.
func (t *Set) Len() int { return len(t.objects) }

// Kept returns the subject of which something was kept under a key, or nil when that is none
// any more. Which objects there are is not known yet: those that are gone go as the watch
// syncs.
func (t *Set) Kept(key string) *Subject {
	switch {
	case t.each() != (key != ""):
		return nil
	case key == "":
		return t.own
	}
	return t.object(key)
}

// object returns the subject of an object, a new one if need be.
func (t *Set) object(key string) *Subject {
	s := t.objects.at(key)
	if s == nil {
		s = &Subject{Hook: t.own.Hook, Key: key}
		t.objects.put(s)
	}
	return s
}

// Object is one object that a hook is for, as it is.
type Object struct {
	Namespace, Name string
	// UID is "" where the filter does not keep it.
	UID string
	// Deleting: it is being deleted. Held: it has the finalizer.
	Deleting, Held bool
	// Lacks: the filter has never given a result for it.
	Lacks bool
}

// News is what has become of an object.
type News int

const (
	// Here: it is there, as it was or anew.
	Here News = iota
	// Gone: no run may be about it any more, and [Set.Drop] drops it.
	Gone
	// Waits: there is no run about it before the filter has given a result for it.
	Waits
	// Leaves: its cleanup is due, and it has to hear that it is deleted.
	Leaves
	// Behind: it waits for the cleanup of the one that it has replaced.
	Behind
)

// Observe takes in one object as it is; cleans says that the hook has a cleanup. Gone is one
// that is being deleted, and that nothing of ours holds; it may be no subject.
func (t *Set) Observe(o Object, cleans bool) (*Subject, News) {
	if s := t.objects.at(effect.Key(o.Namespace, o.Name)); cleans && s != nil && s.replacedBy(o) {
		s.next = nil
		if !o.Deleting || o.Held { // else it goes by itself
			s.next = &builtins.Event{Type: "added", Namespace: o.Namespace, Name: o.Name, Deleting: o.Deleting, Held: o.Held, Lacks: o.Lacks}
		}
		return s, Behind
	}
	if cleans && o.Deleting && !o.Held {
		return t.objects.at(effect.Key(o.Namespace, o.Name)), Gone
	}
	s := t.object(effect.Key(o.Namespace, o.Name))
	before := s.phase
	s.phase, s.last, s.next = lives, nil, nil
	switch {
	case o.Held:
		s.finalizer = held
	case s.finalizer == held: // somebody has taken it off
		s.finalizer = mayHold
	}
	switch {
	case o.Lacks: // it keeps what it has
		s.phase = lacking
		t.tried(s)
		return s, Waits
	case cleans && o.Deleting:
		s.phase = leaving
	}
	if s.phase == leaving && before != leaving {
		return s, Leaves
	}
	return s, Here
}

// replacedBy says that an object is not the one whose cleanup is due, but was made anew under its name.
func (s *Subject) replacedBy(o Object) bool {
	before := object.UID(s.last)
	return s.phase == leaving && before != "" && o.UID != "" && o.UID != before
}

// Delete takes in that an object is not there any more, of which this was last seen: somebody
// has taken the finalizer off by hand, or the watch does not select it any more. cleans says
// that there is a cleanup, and something to clean up by.
func (t *Set) Delete(namespace, name string, last starlark.Value, cleans bool) (*Subject, News) {
	s := t.objects.at(effect.Key(namespace, name))
	if s == nil || !cleans || s.finalizer == free {
		return s, Gone
	}
	if s.replacedBy(Object{UID: object.UID(last)}) { // the cleanup of the former one goes on
		s.next = nil
		return s, Leaves
	}
	s.phase, s.last = leaving, last
	return s, Leaves
}

// Unwatched takes in an object that has the finalizer, though the watch does not select it: its cleanup is
// due. It returns nil for one that is a subject.
func (t *Set) Unwatched(namespace, name string, last starlark.Value) *Subject {
	k := effect.Key(namespace, name)
	if t.objects.at(k) != nil {
		return nil
	}
	s := t.object(k)
	s.phase, s.finalizer, s.last = leaving, held, last
	return s
}

// Missing are the objects that are not among those that there are, and wait for no cleanup by what was last seen.
func (t *Set) Missing(there []Object) []*Subject {
	keys := make(map[string]bool, len(there))
	for _, o := range there {
		keys[effect.Key(o.Namespace, o.Name)] = true
	}
	return slices.DeleteFunc(t.All(), func(s *Subject) bool { return keys[s.Key] || s.Leaving() && s.last != nil })
}

func (t *Set) Drop(s *Subject) {
	t.objects.drop(s.Key)
	t.failing.drop(s.Key)
	t.tried(s)
}

// Reset forgets what belongs to one life of the module.
func (t *Set) Reset() {
	t.awaited, t.failing = nil, nil
	for _, s := range append(t.All(), t.own) {
		s.first, s.why, s.outcome.Observed = Untried, "", nil
		s.phase, s.finalizer, s.last, s.next = lives, free, nil, nil
	}
}

// Inherit takes over what is remembered of another hook of this id, and its objects.
func (t *Set) Inherit(old *Set) {
	if !t.each() {
		t.own.memory = old.own.memory
		return
	}
	t.objects = old.All()
	for _, s := range t.objects {
		s.first, s.why, s.outcome.Observed = Untried, "", nil
	}
}
