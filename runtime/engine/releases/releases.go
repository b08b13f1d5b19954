// Package releases takes the release of one module on its way. One pass over it is:
// before_helm hooks, Helm, after_helm hooks; a later change of values makes one more. A
// module that leaves goes by before_delete hooks, the uninstall, after_delete hooks and the
// end of its sets of objects.
//
// It is a state machine without I/O: [Pass.Next] says what is due, and what became of that
// comes back by the other methods. It knows hooks by their ids alone.
package releases

import (
	"cmp"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// MaxRounds is how often in a row hooks may have the same work done once more.
const MaxRounds = 3

// MaxRow is how many runs of such hooks, of several modules that read what the others export, may lead
// to each other.
const MaxRow = 40

// Ref names one release of one module.
type Ref struct{ Module, Name, Namespace string }

type phase int

const (
	idle phase = iota
	beforeHelm
	inHelm
	overtaken // Helm works, and does not wait any more
	helmDone  // the hooks after it are due
	helmSame  // it changed nothing: those are due that always are
	afterHelm
	beforeDelete
	uninstalling
	givingBack
	afterDelete
)

// Pass is the state of a module's release.
type Pass struct {
	refs     []Ref // that are installed, as far as is known
	revision int
	phase    phase
	waiting  map[string]bool // hooks that this phase waits for
	left     builtins.Stage  // of a module that leaves: the last stage whose hooks have all succeeded

	wanted bool           // a pass is
	cause  *effect.Cause  // of the change of values that has led to it; nil: not what hooks have done
	again  int            // how often before_helm hooks had to run once more
	seen   map[string]any // the values that Helm got, as far as the module reads them
	after  bool           // after_helm hooks were tried since the module came up

	ready bool       // the last work of Helm succeeded
	hold  string     // why no pass can begin
	retry lane.Retry // of Helm's last work
}

// New returns a release. Nothing is known but what is installed.
func New(installed ...Ref) *Pass { return &Pass{refs: installed} }

// Refs are the releases that are installed, as far as is known: that of today, and such of
// earlier names.
func (p *Pass) Refs() []Ref { return p.refs }

// Installed says whether there is one.
func (p *Pass) Installed() bool { return len(p.refs) > 0 }

// Ready says whether Helm's last work on the release has succeeded, at Revision.
func (p *Pass) Ready() bool { return p.ready }

// Revision is that of the release; 0 when it is not known.
func (p *Pass) Revision() int { return p.revision }

// Failed says how Helm's last work has failed, and when it is tried again; zero when it has not.
func (p *Pass) Failed() lane.Retry { return p.retry }

// Held says why no pass begins until the values change, or "".
func (p *Pass) Held() string { return p.hold }

// Wanted says that a pass begins as soon as it may.
func (p *Pass) Wanted() bool { return p.wanted }

// Idle says that no pass is under way.
func (p *Pass) Idle() bool { return p.phase == idle }

// Working says that Helm works, that sets of objects are being removed, or a release given back.
func (p *Pass) Working() bool {
	return p.phase == inHelm || p.phase == overtaken || p.phase == uninstalling || p.phase == givingBack
}

// Uninstalling says that a release, or sets of objects, are being removed.
func (p *Pass) Uninstalling() bool { return p.phase == uninstalling }

// MustLeave says that an uninstall has begun that has to be brought to its end, with the
// hooks of the module that leaves.
func (p *Pass) MustLeave() bool {
	return p.phase == uninstalling || p.phase == afterDelete || p.left == builtins.StageBeforeDelete && !p.Installed()
}

// Want asks for a pass, for changes of values with these causes, by its own hooks or by others. The shortest row of
// runs counts, but no row of after_helm hooks alone. Changes by its own before_helm hooks are part of the pass that
// waits for them; after changes by others, hooks that run, or ran, may rest on the old values.
func (p *Pass) Want(own bool, causes ...*effect.Cause) {
	for _, cause := range causes {
		before := cause.InARow(string(builtins.StageBeforeHelm)) > 0
		if p.phase == beforeHelm && before && own {
			continue
		}
		if !p.wanted && (p.phase != beforeHelm || before) || compare(p.cause, cause) > 0 {
			p.cause = cause
		}
		p.wanted = true
	}
}

func compare(a, b *effect.Cause) int { return cmp.Or(cmp.Compare(passes(a), passes(b)), a.Compare(b)) }

// passes is how many passes in a row after_helm hooks have caused, by nothing else.
func passes(cause *effect.Cause) int { return cause.InARow(string(builtins.StageAfterHelm)) }

// Cause is that of the pass.
func (p *Pass) Cause() *effect.Cause { return p.cause }

// Begin has a module begin that comes up: what has failed before counts no more.
func (p *Pass) Begin() {
	p.retry = lane.Retry{}
	p.Want(true, nil)
}

// Renew has the release looked at that rests on other files now.
func (p *Pass) Renew() {
	p.hold = ""
	p.Begin()
}

// RetrySoon has work that has failed wait no longer than until that time.
func (p *Pass) RetrySoon(at time.Time) { p.retry.Soon(at) }

// Stop ends a pass whose hooks will not run any more. Work of Helm that is under way is
// waited for.
func (p *Pass) Stop() {
	if !p.Working() {
		p.phase = idle
	}
	p.left, p.waiting, p.hold = "", nil, ""
	p.ready, p.after = false, false
	p.retry = lane.Retry{}
}

func (p *Pass) failed(err error, now time.Time, jitter float64) {
	p.wanted = true
	p.retry.Failed(now, err, lane.Long, jitter)
}

// Helm is what became of the work of Helm.
type Helm struct {
	// Err says why it has failed. With a Revision, one that awaits a change says why the release is rolled back.
	Err error
	// Changed says that there is another revision, or a part of one.
	Changed  bool
	Revision int
	// Stopped says that the module has gone down meanwhile.
	Stopped bool
}

// Released takes in the end of an install or upgrade.
func (p *Pass) Released(h Helm, now time.Time, jitter float64) {
	p.phase = idle
	awaits := lane.AwaitedBy(h.Err) == lane.AwaitsChange
	switch {
	case h.Stopped:
	case h.Err != nil && (!awaits || h.Revision == 0):
		p.ready, p.revision = false, cmp.Or(h.Revision, p.revision)
		p.after = p.after && !h.Changed // it changed something: its hooks run once all of it is done
		p.failed(h.Err, now, jitter)
		if awaits { // the change has come
			p.retry = lane.Retry{}
		}
	default:
		p.retry = lane.Retry{}
		if h.Err != nil && !p.wanted { // until something changes
			p.retry.Failed(now, h.Err, lane.Long, jitter)
			p.retry.At = time.Time{}
		}
		p.ready, p.revision = true, h.Revision
		// Once in each life also without a change: a crash may have come between
		// the change and its hooks.
		if p.phase = helmSame; h.Changed || !p.after {
			p.phase = helmDone
		}
	}
}

// Uninstalled takes in the end of an uninstall.
func (p *Pass) Uninstalled(ref Ref, err error, now time.Time, jitter float64) {
	if p.Removed(err, now, jitter); err != nil {
		return
	}
	p.ready, p.revision, p.wanted = false, 0, true
	p.refs = slices.DeleteFunc(p.refs, func(r Ref) bool { return r == ref })
}

// Removed takes in the end of the removal of sets of objects.
func (p *Pass) Removed(err error, now time.Time, jitter float64) {
	p.phase = idle
	if err != nil {
		p.failed(err, now, jitter)
		return
	}
	p.retry = lane.Retry{}
}
