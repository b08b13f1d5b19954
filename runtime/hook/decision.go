package hook

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// decision is one run of a controller about one parent.
type decision struct {
	r      *Request
	parent reconcile.Parent
	object map[string]any // the parent
	// annotations are those of the parent.
	annotations map[string]any
	ref         effect.Ref
	live        map[reconcile.ID]map[string]any
	wanted      map[string]map[string]any // by the name of the part, as it is written
	recreate    map[string]bool
	adopt       map[string]bool
	pos         map[string]string       // where a part is, by its name
	unsigned    []reconcile.Child       // that an earlier version has made
	found       []map[string]any        // objects of which it wants fields, and has none
	digests     map[string]string       // of the parts, by name
	held        map[reconcile.ID]string // digests of fields that the parent has
	// changedBy says that somebody has changed fields that the parent had, or that others have them, too.
	changedBy map[reconcile.ID]bool
	takenBy   map[reconcile.ID]string // who has changed fields of a child, which are not the controller's any more
	contests  map[reconcile.ID]Contest
	again     time.Duration // 0, or when a child that is left may be put right
	// unanswered says that something outside of the functions could not answer them.
	unanswered atomic.Bool
}

// newDecision finds out what there is of a parent.
func newDecision(r *Request, s *Seen) (*decision, error) {
	whole, is := r.Object.(*object.Object)
	if !is {
		return nil, errors.New("the parent is not there as a whole")
	}
	d := &decision{
		r: r, object: whole.Map(), live: map[reconcile.ID]map[string]any{}, wanted: map[string]map[string]any{},
		recreate: map[string]bool{}, adopt: map[string]bool{}, pos: map[string]string{}, digests: map[string]string{},
		held: map[reconcile.ID]string{}, changedBy: map[reconcile.ID]bool{}, takenBy: map[reconcile.ID]string{},
		contests: map[reconcile.ID]Contest{},
	}
	d.ref = effect.RefOf(d.object)
	uid := effect.At[string](d.object, "metadata", "uid")
	d.annotations = effect.At[map[string]any](d.object, "metadata", "annotations")
	d.parent = reconcile.Parent{Key: r.Key, UID: uid, Controller: r.Family.Controller, Module: effect.ManagerModule(effect.Manager(r.Hook.ID))}
	if r.Observed != nil && r.Observed.UID != uid { // of one of that name that is gone
		r.Observed = nil
	}
	for _, c := range r.Past.Contests {
		d.contests[c.ID] = c
	}
	for live := range r.Family.Children {
		if _, of := reconcile.ParentOf(live); of == uid && reconcile.ControllerOf(live) == r.Family.Controller && d.hears(live) {
			d.live[reconcile.ChildOf(live).ID] = live
			if isSecret(effect.RefOf(live).APIVersion, effect.RefOf(live).Kind) {
				s.saw(func(m *object.Mask) { m.Object(live) })
			}
		}
		d.holds(live)
	}
	return d, nil
}

// paused says that the parent and its children are left as they are.
func (d *decision) paused() bool { return d.annotations[reconcile.PausedAnnotation] == "true" }
