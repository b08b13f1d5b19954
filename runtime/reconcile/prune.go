package reconcile

import (
	"cmp"
	"slices"
	"strings"
)

// prune says what is done about children that no part wants: the last layer goes first, and must be
// gone before the one below it goes. Nothing goes before all parts are written, but for fields of objects that
// are not there.
func (d *decision) prune() (out []Action) {
	var going []*Child
	for id, c := range d.children {
		switch {
		case d.byID[id] == nil && c.Foreign != "" && c.Unsigned:
			out = append(out, Action{Op: OpHold, ID: c.ID, Layer: c.Layer, UID: c.UID, Why: "no part wants it, and it stays: its marks are not signed by this Starling"})
		case d.byID[id] != nil || c.Foreign != "", c.Fields && (c.Digest == "" || c.Deleting):
		case c.Retain && !c.Deleting:
			out = append(out, Action{Op: OpHold, ID: c.ID, Layer: c.Layer, UID: c.UID, Why: "no part wants it, and it is retained"})
		default:
			going = append(going, c)
		}
	}
	slices.SortFunc(going, func(a, b *Child) int { return cmp.Or(cmp.Compare(b.Layer, a.Layer), compareIDs(a.ID, b.ID)) })
	why := d.unpruned()
	var before []string // children of higher layers, and of the one that is looked at
	var higher int      // how many of them are of higher layers
	for i, c := range going {
		if i > 0 && going[i-1].Layer > c.Layer {
			higher = len(before)
		}
		a := Action{Op: OpDelete, ID: c.ID, Layer: c.Layer, UID: c.UID, Why: "no part wants it"}
		if c.Fields {
			a.Op = OpRelease
		}
		failed := d.failed[attempt{c.ID.key(), ""}]
		switch {
		case c.Deleting:
			a.Op, a.Why = OpWait, c.going()
		case why != "":
			a.Op, a.Why = OpWait, "no part wants it, but "+why
		case higher > 0:
			a.Op, a.Why, a.For = OpWait, "no part wants it; it goes after "+before[0], before[:higher:higher]
		case failed != "":
			a.Op, a.Why = OpWait, failed // a hold would mean that it stays
		}
		before = append(before, c.ID.String())
		out = append(out, a)
	}
	slices.SortStableFunc(out, func(a, b Action) int { // those that are retained among the others
		return cmp.Or(cmp.Compare(b.Layer, a.Layer), compareIDs(a.ID, b.ID))
	})
	return out
}

// unpruned says why no child is deleted now, or "".
func (d *decision) unpruned() string {
	if why := cmp.Or(Unsure(d.unsure), d.unknown); why != "" {
		return why
	}
	for i := range d.parts {
		if a := &d.parts[i]; a.op != "" && !a.written && !a.lacksTarget() {
			return a.guilt()
		}
	}
	return ""
}

// lacksTarget says that the part is fields of an object that is not there: it may never come, and children
// would stay as long.
func (a *part) lacksTarget() bool { return a.ID.Fields && a.child == nil }

// going says of a child that is being deleted why it is still there, as far as that is known.
func (c *Child) going() string { return cmp.Or(c.Reason, "it is being deleted") }

func compareIDs(a, b ID) int {
	return cmp.Or(a.Compare(b.Ref), cmp.Compare(one(a.Fields), one(b.Fields)), strings.Compare(a.Subresource, b.Subresource))
}
