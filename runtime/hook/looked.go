package hook

import (
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Looked is what looks at a parent have come to.
type Looked struct {
	// Waits says why not all is done, "" when it is.
	Waits   string
	Actions []reconcile.Action
	// Tried are the writes that have failed, Kept the children that the API server keeps in another form.
	Tried []Tried
	Kept  []Kept
	// Observed is what an observe function has returned last; nil: nothing yet.
	Observed *builtins.Observed
}

// Tried is a write that has failed, and is tried again.
type Tried struct {
	reconcile.Failure
	// Last and Next are when it was tried last, and when it will be.
	Last, Next time.Time
}

// Kept is what the API server has made of the last write of a child: the child is unchanged while it is so.
type Kept struct {
	reconcile.ID
	// Form stands for what was asked for and what came of it.
	Form string
}

// Wrote takes in what has become of a write. Delay says how long a next try waits after so many. Learned says that the
// API server keeps the child in another form than was known.
func (o *Looked) Wrote(w reconcile.Write, fate effect.Fate, now time.Time, delay func(tries int) time.Duration) (learned bool) {
	if !fate.Written && fate.Err == nil {
		return false
	}
	is := func(id reconcile.ID) bool { return id.Same(w.ID) }
	tries := 1
	for i := range o.Tried {
		if f := &o.Tried[i]; is(f.ID) && f.Digest == w.Digest {
			tries = f.Tries + 1
		}
	}
	o.Tried = slices.DeleteFunc(o.Tried, func(f Tried) bool { return is(f.ID) })
	if fate.Written {
		learned = fate.Form != "" && !slices.Contains(o.Kept, Kept{w.ID, fate.Form})
		o.Kept = slices.DeleteFunc(o.Kept, func(k Kept) bool { return is(k.ID) })
		if fate.Form != "" {
			o.Kept = append(o.Kept, Kept{w.ID, fate.Form})
		}
		return learned
	}
	o.Tried = append(o.Tried, Tried{reconcile.Failure{ID: w.ID, Digest: w.Digest, Reason: fate.Err.Error(), Tries: tries}, now, now.Add(delay(tries))})
	o.Actions = slices.Clone(o.Actions)
	for i := range o.Actions { // what it says of the child was wrong
		if a := &o.Actions[i]; is(a.ID) {
			if a.Op, a.Why = reconcile.OpHold, fate.Err.Error(); a.Part == "" {
				a.Op = reconcile.OpWait // it goes
			}
		}
	}
	return false
}

// Decided takes in what another look has come to. It forgets what has failed and is not asked for any more.
func (o *Looked) Decided(waits string, actions []reconcile.Action, failed bool) {
	o.Waits, o.Actions = waits, actions
	o.Tried = slices.DeleteFunc(o.Tried, func(f Tried) bool {
		return !failed && !slices.ContainsFunc(actions, func(a reconcile.Action) bool { return a.ID.Same(f.ID) })
	})
}

// RetrySoon has what has failed tried again once a pause has passed since the last try: all of it, or what is of one
// name.
func (o *Looked) RetrySoon(pause time.Duration, namespace, name string) {
	for i := range o.Tried {
		if f := &o.Tried[i]; (name == "" || f.ID.Name == name && f.ID.Namespace == namespace) && f.Last.Add(pause).Before(f.Next) {
			f.Next = f.Last.Add(pause)
		}
	}
}

// Next is when the first of what has failed is tried again, zero for none. If a look was told of these failures,
// and something was due and not tried, that waits for what held it up there, and for no time.
func (o *Looked) Next(told []reconcile.Failure) (at time.Time) {
	for i := range o.Tried {
		t := &o.Tried[i]
		waits := slices.ContainsFunc(told, func(f reconcile.Failure) bool {
			return f.Due && f.ID.Same(t.ID) && f.Digest == t.Digest && f.Tries == t.Tries
		})
		if !waits && (at.IsZero() || t.Next.Before(at)) {
			at = t.Next
		}
	}
	return at
}

// Failure names the first write that has failed, and how many more there are; "" for none.
func (o *Looked) Failure() string {
	switch n := len(o.Tried); n {
	case 0:
		return ""
	case 1:
		return o.Tried[0].Reason
	default:
		return fmt.Sprintf("%s (and %d more children cannot be written)", o.Tried[0].Reason, n-1)
	}
}
