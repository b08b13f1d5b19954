package reconcile

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// prune says what is done about children that no part wants: the last layer goes first, and must be
// gone before the one below it goes. Nothing goes before all parts are written, but for fields of objects that
// are not there.
func (d *decision) prune() (out []Action) {
	why := d.unpruned()
	var first *Child // to go
	for _, c := range slices.SortedFunc(maps.Values(d.unwanted), func(a, b *Child) int {
		return cmp.Or(cmp.Compare(b.Layer, a.Layer), compareIDs(a.ID, b.ID))
	}) {
		a := Action{Op: OpDelete, ID: c.ID, UID: c.UID, Why: "no part wants it"}
		failed := d.failed[attempt{c.ID.key(), ""}]
		switch {
		case c.Foreign != "" && c.Unsigned:
			a.Op, a.Why = OpHold, "no part wants it, and it stays: its marks are not signed by this Starling"
		case c.Foreign != "", c.Fields && (c.Digest == "" || c.Deleting):
			continue
		case c.Retain && !c.Deleting:
			a.Op, a.Why = OpHold, "no part wants it, and it is retained"
		case c.Deleting:
			a.Op, a.Why = OpWait, c.going()
		case why != "":
			a.Op, a.Why = OpWait, "no part wants it, but "+why
		case first != nil && first.Layer > c.Layer:
			a.Op, a.Why = OpWait, "no part wants it; it goes after "+first.ID.String()
		case failed != "":
			a.Op, a.Why = OpWait, failed // a hold would mean that it stays
		case c.Fields:
			a.Op = OpRelease
		}
		if first == nil && a.Op != OpHold {
			first = c
		}
		out = append(out, a)
	}
	return out
}

// unpruned says why no child is deleted now, or "".
func (d *decision) unpruned() string {
	if why := cmp.Or(Unsure(d.inventory.Unsynced), d.inventory.Unknown); why != "" {
		return why
	}
	for _, a := range d.parts {
		if a.op != "" && !a.written && !a.lacksTarget() {
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
