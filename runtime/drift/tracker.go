// Package drift knows what the releases of modules hold as Starling has left it, and what watches
// show of it, and says which objects are not so any more. It compares no values: a digest of the
// fields that Starling owns tells, see package owned. It does no I/O.
package drift

import (
	"slices"
	"strconv"
	"sync"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/watch"
)

// Options says whose releases these are. All fields are required.
type Options struct {
	// Instance is the value of the label [effect.ReleasedByLabel].
	Instance string
	// Manager is the field manager of Helm's writes.
	Manager string
	// Start and Stop begin and end a watch. They must not block, nor call the tracker.
	Start func(watch.Spec)
	Stop  func(id string)
	// Changed says that [Tracker.Drift] has news of a module. It must not block, nor call the tracker.
	Changed func(module string)
}

// Tracker is safe for concurrent use.
type Tracker struct {
	o Options

	mu       sync.Mutex
	kinds    map[kindKey]*kind
	byID     map[string]*kind // by the id of a watch
	releases map[name]*tracked
	started  int // watches
	filters  int // changes of ignored

	ignored sync.Map // name of a release → []owned.Ignore; filters read it
}

// New makes a tracker that knows of no release.
func New(o Options) *Tracker {
	t := &Tracker{o: o}
	t.Reset()
	return t
}

// tracked is one release.
type tracked struct {
	at     name
	module string // "" before somebody has told of it
	of     string // that of [release.Objects]
	digest string // of what it holds, before that is known one by one
	scopes []release.Scope
	// objects are those that it should hold, and those that say they belong to it.
	objects map[*object]bool

	busy   bool // Helm works on it, or has failed: nobody knows what it should hold
	exact  bool // all that it should hold is known
	verify bool // nobody knows, and watches cannot tell
	off    int  // how many objects differ, or are being deleted
	due    bool // somebody was told of news, and has not asked for them
	told   bool // the last answer was that something differs
}

// kindsOf are the kinds of scopes, each once, in order.
func (t *Tracker) kindsOf(scopes []release.Scope) (out []*kind) {
	for _, at := range slices.SortedFunc(slices.Values(scopes), release.Scope.Compare) {
		out = append(out, t.kind(at.APIVersion, at.Kind))
	}
	return slices.Compact(out)
}

// place names an object of a kind.
type place struct{ namespace, name string }

// object is one that a release should hold, or that a watch shows.
type object struct {
	kind *kind
	place
	of      *tracked
	have    *state       // as the watch shows it; nil: it shows none
	want    owned.Digest // when it is expected
	version uint64       // of the write that has left it so
	// goneAt is the version at which it was not there, when it is gone; 0: that is not known. The
	// small fields are last, where they take little memory.
	goneAt   uint64
	gone     bool // it was there, or the watch would show it, since it was written
	expected bool
	differ   bool // that is, from what it should be
	going    bool // it is there until its finalizers are gone, and is made anew then
}

// differs says whether the object is not as Starling has left it.
func (o *object) differs() bool {
	switch {
	case !o.expected:
		return false
	case o.have == nil:
		return o.gone // else the watch has yet to show it
	case o.have.deleting: // and made anew once it is gone
		return false
	case o.have.version != 0 && o.have.version < o.version: // the watch has yet to show our write
		return false
	case o.want == owned.Digest{}: // the API server does not say who has written what: a repair compares values
		return o.have.version > o.version
	}
	return !o.have.known || !o.want.Same(o.have.owned)
}

func (t *Tracker) tracked(at name) *tracked {
	r := t.releases[at]
	if r == nil {
		r = &tracked{at: at, objects: map[*object]bool{}}
		t.releases[at] = r
	}
	return r
}

func nameOf(ref release.Ref) name { return name{ref.Namespace, ref.Name} }

// of notes whose a release is.
func (t *Tracker) of(ref release.Ref) *tracked {
	r := t.tracked(nameOf(ref))
	r.module = ref.Module
	return r
}

// Begin says that a revision of a release is made: what changes until [Tracker.Expect] is no drift. Ignore is left to
// others from then on. Standing returns the objects that watches show as the revision before has left them.
func (t *Tracker) Begin(ref release.Ref, ignore []owned.Ignore) (standing func() release.Objects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(ref)
	t.ignore(r, ignore)
	known := r.exact && !r.busy
	r.busy = true
	return func() (out release.Objects) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if !known || t.releases[r.at] != r {
			return out
		}
		out.Of = r.of
		for o := range r.objects {
			stands := o.expected && !o.differ && !o.going && o.want != (owned.Digest{}) && o.kind.shows(o.namespace)
			if have := o.have; stands && have != nil && have.version >= o.version {
				seen := release.Object{Key: o.ref(), Owned: o.want, Version: strconv.FormatUint(have.version, 10)}
				out.Seen = append(out.Seen, seen)
			}
		}
		return out
	}
}

// Expect says what a release should hold from now on.
func (t *Tracker) Expect(ref release.Ref, objects release.Objects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(ref)
	r.busy = false
	if objects.Seen == nil && r.exact && r.of == objects.Of { // nothing was written since
		t.tell(r)
		return
	}
	r.of, r.digest = objects.Of, objects.Digest
	r.exact, r.verify = objects.Seen != nil, objects.Seen == nil && objects.Digest == ""
	t.use(r, objects.Kinds)
	t.expect(r, objects.Seen, true)
	if !r.exact && !r.verify {
		t.learn(r)
	}
	t.tell(r)
}

// Repair is what a repair of a release has left.
type Repair struct {
	// Asked are the objects that it was to look at; nil: all.
	Asked []effect.Ref
	// Objects has Seen for the objects that are there.
	Objects release.Objects
	// Ended: it has looked at all, and nothing is left to be done.
	Ended bool
}

// Repaired takes in what a repair has left. It returns what is known of all objects of the release
// then; the digest is "" when that is not known.
func (t *Tracker) Repaired(ref release.Ref, p Repair) release.Objects {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(ref)
	all := p.Asked == nil && p.Ended
	if p.Objects.Kinds != nil {
		t.use(r, p.Objects.Kinds)
	}
	seen := t.expect(r, p.Objects.Seen, all)
	if all {
		r.of, r.exact, r.verify = p.Objects.Of, true, false
	}
	if p.Ended { // those that it was to look at, and that nobody makes anew, are expected no more
		for _, k := range p.Asked {
			if of := t.kinds[kindKey{k.APIVersion, k.Kind}]; of != nil {
				if o := of.objects[place{k.Namespace, k.Name}]; o != nil && o.gone && !seen[o] {
					t.drop(o)
				}
			}
		}
	}
	t.tell(r)
	out := release.Objects{Of: r.of}
	if !r.exact {
		return out
	}
	out.Kinds = r.scopes
	for o := range r.objects {
		if o.expected {
			out.Seen = append(out.Seen, release.Object{Key: o.ref(), Owned: o.want})
		}
	}
	out.Digest = release.DigestOf(out.Seen, t.ignoredOf(r.at))
	return out
}

// Forget drops a release: it is uninstalled.
func (t *Tracker) Forget(ref release.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.of(ref)
	for o := range r.objects {
		t.drop(o)
	}
	t.use(r, nil)
	t.ignored.Delete(r.at)
	t.tell(r)
	delete(t.releases, nameOf(ref))
}

// Reset drops all releases, and ends all watches: another process may work on them from now on.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range t.byID {
		t.o.Stop(id)
	}
	t.kinds, t.byID, t.releases = map[kindKey]*kind{}, map[string]*kind{}, map[name]*tracked{}
	t.ignored.Clear()
}

// expect notes objects as they were left, and returns them; with all, the release should hold no others.
func (t *Tracker) expect(r *tracked, seen []release.Object, all bool) (named map[*object]bool) {
	named = map[*object]bool{}
	for _, s := range seen {
		o := t.object(t.kind(s.APIVersion, s.Kind), place{s.Namespace, s.Name}, r)
		named[o] = true
		o.expected, o.want, o.version = true, s.Owned, watch.Version(s.Version)
		switch {
		case s.Missing:
			o.gone, o.goneAt = o.have == nil, 0
		case o.gone && (o.goneAt == 0 || o.goneAt <= o.version):
			o.gone = false // it was made anew since
		}
		t.compare(o)
	}
	if !all {
		return named
	}
	for o := range r.objects {
		if !named[o] {
			o.expected = false
			t.compare(o)
			if o.have == nil {
				t.drop(o)
			}
		}
	}
	return named
}

// object returns that of a name; it is the release's from now on.
func (t *Tracker) object(k *kind, at place, r *tracked) *object {
	o := k.objects[at]
	if o == nil {
		o = &object{kind: k, place: at}
		k.objects[at] = o
	}
	if o.of != r {
		t.leave(o)
		o.of = r
		r.objects[o] = true
	}
	return o
}

// leave takes an object off its release.
func (t *Tracker) leave(o *object) {
	if o.of == nil {
		return
	}
	o.expected = false
	t.compare(o)
	delete(o.of.objects, o)
	if o.of.module == "" && len(o.of.objects) == 0 {
		delete(t.releases, o.of.at)
	}
	o.of = nil
}

func (t *Tracker) drop(o *object) {
	t.leave(o)
	delete(o.kind.objects, o.place)
}

// show notes what a watch shows of an object.
func (t *Tracker) show(k *kind, at place, v starlark.Value) {
	now, is := v.(*state)
	if !is {
		return
	}
	o := k.objects[at]
	switch {
	case o == nil || !o.expected: // else it may deny where it belongs
		o = t.object(k, at, t.tracked(now.release.Value()))
	case o.gone && o.goneAt > now.version, o.have != nil && o.have.version > now.version:
		return // two watches may show the same
	}
	o.have, o.gone = now, false
	t.compare(o)
}

// lose notes that an object was not there any more at a version; 0: nobody knows which.
func (t *Tracker) lose(o *object, at uint64) {
	before := o.have
	switch {
	case before != nil && at != 0 && before.version > at:
		return
	case o.expected && o.version > at && at != 0: // our write is newer
		return
	case before != nil && before.finished, !o.expected && (o.of.module == "" || !o.of.busy && o.of.exact):
		t.drop(o) // who deletes a Job that has ended wants it gone
		return
	}
	// One that is not expected may be so in a moment: Helm, or a repair of all, has seen it there.
	o.have, o.gone, o.goneAt = nil, true, at
	t.compare(o)
}

// compare looks whether an object differs.
func (t *Tracker) compare(o *object) {
	differed, went := o.differ, o.going
	o.differ, o.going = o.differs(), o.expected && o.have != nil && o.have.deleting
	if o.of == nil || differed == o.differ && went == o.going {
		return
	}
	o.of.off += one(o.differ || o.going) - one(differed || went)
	t.tell(o.of)
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}

// tell says that there is news of a release, once until they are asked for.
func (t *Tracker) tell(r *tracked) {
	if r.module != "" && !r.busy && !r.due && (r.told || r.off > 0 || r.verify || t.blind(r) != "") {
		r.due = true
		t.o.Changed(r.module)
	}
}
