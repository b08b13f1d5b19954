// Package repairs knows which objects of one module's release are not as Starling has left them,
// and says when they are put right. An object of which somebody changes the same field again and again
// waits longer each time, and people are told who does. It does no I/O.
package repairs

import (
	"cmp"
	"slices"
	"time"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

// Object is one that is not as it was left.
type Object struct {
	effect.Ref
	// Missing says that it is not there.
	Missing bool
	// By are others that manage fields of it, those that wrote last first.
	By []string
}

// Repairs are those of one module.
type Repairs struct {
	found  []Object
	verify bool // nobody knows which objects differ
	// tries are those of objects that could not be put right: one holds up no other. The one of [all] is that of a look
	// at all objects, and says that a repair is under way.
	tries  map[effect.Ref]lane.Task
	rounds Rounds[effect.Ref] // fields of objects that were put right
	waits  string             // for what the last try waits, or ""
}

// all stands for all objects of a release.
var all = effect.Ref{}

// New returns the repairs of a release that is as it was left.
func New() *Repairs {
	return &Repairs{tries: map[effect.Ref]lane.Task{}, rounds: Rounds[effect.Ref]{}}
}

// Found takes in all objects that differ now. With verify there may be others, and nobody knows
// which.
func (r *Repairs) Found(objects []Object, verify bool) {
	r.found, r.verify = objects, verify
	for k := range r.tries {
		if k != all && !slices.ContainsFunc(objects, func(o Object) bool { return o.Ref == k }) {
			delete(r.tries, k)
		}
	}
	if len(objects) == 0 && !verify && !r.Running() {
		clear(r.tries)
		r.waits = ""
	}
}

// Objects are those that differ.
func (r *Repairs) Objects() []Object { return r.found }

// Running says that a repair is under way.
func (r *Repairs) Running() bool { return r.tries[all].Running }

// Err says why the last repair has failed, or for what it waits; "" when it has succeeded.
func (r *Repairs) Err() string {
	text := r.tries[all].Err
	for _, o := range r.found {
		text = cmp.Or(text, r.tries[o.Ref].Err)
	}
	return cmp.Or(text, r.waits)
}

// Unsure says why nobody knows which objects differ: a look at all of them has failed; "" when it is known.
func (r *Repairs) Unsure() string {
	if !r.verify {
		return ""
	}
	return r.tries[all].Err
}

// due is when an object is put right.
func (r *Repairs) due(k effect.Ref) time.Time {
	at, until := r.tries[k].At, r.rounds.Until(k)
	if until.After(at) {
		return until
	}
	return at
}

// Next is when a repair is due that waits for a time; zero without one.
func (r *Repairs) Next() (at time.Time) {
	first := true
	if r.verify {
		at, first = r.tries[all].At, false
	}
	for _, o := range r.found {
		if due := r.due(o.Ref); first || due.Before(at) {
			at, first = due, false
		}
	}
	return at
}

// Begin begins a repair of all objects that are due; nil objects mean that it has to look at all.
// Due is false without any. With look that alone is due. [Repairs.Ended] ends it.
func (r *Repairs) Begin(now time.Time, look bool) (objects []Object, due bool) {
	task := r.tries[all]
	if task.Running {
		return nil, false
	}
	if !r.verify || !task.Due(now) {
		for _, o := range r.found {
			if !look && !r.due(o.Ref).After(now) {
				objects = append(objects, o)
			}
		}
		if len(objects) == 0 {
			return nil, false
		}
	}
	task.Running = true
	r.tries[all] = task
	return objects, true
}

// Change is what others had changed of an object that was put right, or looked at.
type Change struct {
	effect.Ref
	// Edits are the fields; nil: the object as a whole, by somebody.
	Edits []owned.Edit
}

// Outcome is what became of a repair.
type Outcome struct {
	Err error
	// Tried are the objects of [Repairs.Begin]; nil: all.
	Tried []Object
	// Failed are the objects that Err is about; nil: all.
	Failed []effect.Ref
	// Changes are of the objects that were put right, or looked at.
	Changes []Change
	// Waits says what has to end before the rest can be put right, or "".
	Waits string
}

// Ended takes in the end of a repair. It returns the objects that are contested from now on.
func (r *Repairs) Ended(o Outcome, now time.Time, jitter func() float64) (contested []effect.Ref) {
	looked := o.Tried == nil
	task := r.tries[all]
	task.Running = false
	tried := o.Tried
	if looked {
		tried = r.found
	}
	r.waits = o.Waits
	failed := func(k effect.Ref) bool { return o.Err != nil && (o.Failed == nil || slices.Contains(o.Failed, k)) }
	again := func(t *lane.Task, failed bool) {
		switch {
		case failed:
			if t.Err == "" { // it has waited, and not failed
				t.Attempt = 0
			}
			t.Failed(now, o.Err, lane.Long, jitter())
		case o.Waits != "":
			t.Attempt++
			t.Err, t.At = "", now.Add(lane.Ending.Delay(t.Attempt, jitter()))
		default:
			*t = lane.Task{}
		}
	}
	for _, object := range tried {
		t := r.tries[object.Ref]
		if again(&t, failed(object.Ref)); t.Attempt == 0 {
			delete(r.tries, object.Ref)
			continue
		}
		r.tries[object.Ref] = t
	}
	if looked {
		again(&task, o.Err != nil)
		r.verify = r.verify && task.Attempt > 0
	}
	r.tries[all] = task
	if o.Err != nil && o.Failed == nil || o.Err == nil && o.Waits != "" {
		return nil
	}
	for _, c := range o.Changes {
		if failed(c.Ref) {
			continue
		}
		if len(c.Edits) == 0 {
			c.Edits = []owned.Edit{{}}
		}
		first := false
		for _, e := range c.Edits {
			first = r.rounds.Add(c.Ref, e.Path.String(), e.By, now) || first
		}
		if first {
			contested = append(contested, c.Ref)
		}
	}
	r.rounds.Forget(now)
	return contested
}

// Ignore ends the contests over what is left to others.
func (r *Repairs) Ignore(list []owned.Ignore) {
	if len(list) == 0 {
		return
	}
	r.rounds.drop(func(k effect.Ref, field string, _ *round) bool {
		path, _ := owned.ParsePath(field) // "" is the object as a whole
		return slices.ContainsFunc(list, func(i owned.Ignore) bool { return i.Names(k.APIVersion, k.Kind, k.Name, path) })
	})
}

// Contested says who changes what of an object again and again; is is false where nobody does.
func (r *Repairs) Contested(k effect.Ref, now time.Time) (c Contest, is bool) {
	return r.rounds.Contested(k, now)
}

// Contests counts the objects that somebody changes again and again, by who does; nil: nobody.
func (r *Repairs) Contests(now time.Time) map[string]int { return r.rounds.Contests(nil, now) }

// AllContested are the objects that somebody changes again and again, sorted.
func (r *Repairs) AllContested(now time.Time) []effect.Ref {
	var out []effect.Ref
	for k := range r.rounds {
		if _, is := r.Contested(k, now); is {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, effect.Ref.Compare)
	return out
}
