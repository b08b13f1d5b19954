package reconcile

import (
	"slices"
)

// Actions returns what is done about the children of one parent: first about its parts, by layer and
// then as they are listed, then about children that no part wants. The error is that of [Layers]; there
// is no other.
func Actions(wanted Wanted, inventory Inventory) ([]Action, error) {
	layers, err := Layers(wanted.Parts)
	if err != nil {
		return nil, err
	}
	d := newDecision(wanted, inventory, layers)
	for _, a := range d.parts {
		a.need = d.needOf(a)
	}
	ordered := slices.Clone(d.parts)
	slices.SortStableFunc(ordered, func(a, b *part) int { return a.layer - b.layer })
	for _, a := range ordered {
		d.waitForOthers(a)
	}
	d.takeTurns()
	var out []Action
	for _, a := range ordered {
		if a.op != "" {
			out = append(out, a.action())
		}
	}
	return append(out, d.prune()...), nil
}

// decision is one call of [Actions].
type decision struct {
	parts    []*part
	byName   map[string]*part
	unwanted map[ID]*Child
	// failed says why a try has failed, until the next one is due.
	failed    map[attempt]string
	rollouts  []Rollout
	inventory Inventory
}

// attempt is a try to bring a child to a state; see [Failure].
type attempt struct {
	ID
	digest string
}

// part is a wanted child, the one that is there, and what it needs.
type part struct {
	*Part
	layer int
	child *Child // nil: it is not there
	need
}

// need is what has to be done about a part, seen by itself; the zero need is nothing.
type need struct {
	op    Op
	why   string
	adopt bool
	// news says that it comes to a new state: that waits for other parts and for its turn. To put back
	// what somebody has changed waits for nobody.
	news bool
	// written says that nothing but a turn, or the end of a contest, is waited for, or that a write will most likely
	// change nothing.
	written bool
	// guilty says which of all parts holds it up, and why.
	guilty string
}

func newDecision(wanted Wanted, inventory Inventory, layers []int) *decision {
	d := &decision{
		byName: map[string]*part{}, unwanted: make(map[ID]*Child, len(inventory.Children)), failed: map[attempt]string{},
		rollouts: wanted.Rollouts, inventory: inventory,
	}
	for i := range inventory.Children {
		c := &inventory.Children[i]
		d.unwanted[c.ID.key()] = c
	}
	for _, f := range inventory.Failures {
		if !f.Due {
			d.failed[attempt{f.ID.key(), f.Digest}] = f.Reason
		}
	}
	for i := range wanted.Parts {
		w := &wanted.Parts[i]
		a := &part{Part: w, layer: layers[i], child: d.unwanted[w.ID.key()]}
		delete(d.unwanted, w.ID.key())
		d.parts, d.byName[w.Name] = append(d.parts, a), a
	}
	return d
}

func (a *part) action() Action {
	out := Action{Op: a.op, ID: a.ID, Part: a.Name, Adopt: a.adopt, Why: a.why}
	if a.child != nil {
		out.UID = a.child.UID
	}
	return out
}

// needOf is what a part needs, seen by itself.
func (d *decision) needOf(a *part) need {
	c := a.child
	switch {
	case slices.ContainsFunc(d.inventory.Unsynced, func(k Kind) bool { return a.ID.IsA(k.APIVersion, k.Kind) }):
		return need{op: OpWait, why: unsyncedWhy(Kind{a.ID.APIVersion, a.ID.Kind})}
	case c == nil && a.ID.Fields:
		return need{op: OpWait, why: "the object is not there"}
	case c == nil:
		return d.tried(a, need{op: OpCreate, why: "it is not there", news: true})
	case c.Foreign != "" && !c.Adopt:
		return need{op: OpHold, why: "it belongs to " + c.Foreign + ", and is left alone"}
	case c.Deleting:
		return need{op: OpWait, why: c.going()}
	case c.Foreign != "":
		return d.tried(a, need{op: OpApply, why: "it is taken over from " + c.Foreign, adopt: true, news: true})
	case a.Update == UpdateNever:
		return need{}
	case c.Digest != a.Digest:
		why := "it is wanted in another state"
		if a.Update == UpdateRecreate {
			why += "; it is made anew where the API server refuses that"
		}
		return d.tried(a, need{op: OpApply, why: why, news: true})
	case c.Changed != "" && c.Held != "":
		return need{op: OpHold, why: c.Held, written: true}
	case c.Changed != "":
		return d.tried(a, need{op: OpApply, why: c.how(), written: c.Unsure})
	case !a.ID.Fields && (c.Layer != a.layer || c.Retain != a.Retain):
		return d.tried(a, need{op: OpApply, why: "what it notes of its order has changed"})
	}
	return need{}
}

// tried looks at how earlier tries have gone.
func (d *decision) tried(a *part, n need) need {
	if why, failed := d.failed[attempt{a.ID.key(), a.Digest}]; failed {
		return need{op: OpHold, why: why}
	}
	return n
}

// available says that the object of a part is there and works, in whatever state.
func (a *part) available() bool {
	c := a.child
	return c != nil && !c.Deleting && c.Ready && (c.Foreign == "" || c.Adopt)
}

// settled says that nothing will be written of the part, as far as it can be told now.
func (a *part) settled() bool { return a.op == "" || a.written && !a.news }

// waitForOthers lets a part wait while one that it comes after is not written, or does not work. It looks at parts in
// their order.
func (d *decision) waitForOthers(a *part) {
	if !a.news || !a.op.Acts() {
		return
	}
	for _, name := range a.After {
		if other := d.byName[name]; !other.settled() || !other.available() {
			why := other.guilt()
			a.need = need{op: OpWait, why: "it waits: " + why, news: true, guilty: why}
			return
		}
	}
}

// guilt names the part for which those wait that come after this one, and says why: this one, or
// the one for which it waits itself.
func (a *part) guilt() string {
	switch {
	case a.guilty != "":
		return a.guilty
	case a.settled() && a.child.Reason != "":
		return a.Name + " is not ready: " + a.child.Reason
	case a.settled():
		return a.Name + " is not ready"
	case a.op.Acts():
		return a.Name + " is not written yet"
	}
	return a.Name + " is not written: " + a.why
}

// Unsure says which kind is the first of which nobody knows which children there are, "" without one.
func Unsure(kinds []Kind) string {
	if len(kinds) == 0 {
		return ""
	}
	return unsyncedWhy(kinds[0])
}

func unsyncedWhy(k Kind) string {
	return "nobody knows which objects of " + k.APIVersion + " " + k.Kind + " there are: they are not listed yet, or not served any more"
}
