package hook

import (
	"slices"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Family is what a run of a controller knows of the children of its parent.
type Family struct {
	// Controller is the value of [reconcile.ControllerLabel].
	Controller string
	// Children are objects with that label that name the uid of the parent, as they are; others are
	// passed over.
	Children func(yield func(map[string]any) bool)
	// Writer says of a child who has written it: whether that was the controller, and who else does.
	Writer func(live map[string]any) Written
	// Same says whether a write of want would leave live as it is.
	Same func(want, live map[string]any) bool
	// Owns says whether the controller owns all fields of want in live, whatever their values.
	Owns func(want, live map[string]any) bool
	// Applied is what the controller has applied of live, and nobody has taken since.
	Applied func(live map[string]any) map[string]any
	// Form stands for want, and for what live has of the fields that the controller owns.
	Form func(want, live map[string]any) string
	// StatusSame is Same for the status of the parent. StatusOf returns those fields of it that the
	// controller has written, nil for none, and when they have changed last; zero: not known.
	StatusSame func(want, live map[string]any) bool
	StatusOf   func(live map[string]any) (fields map[string]any, at time.Time)
	// Find returns an object of a kind of which the controller sets fields, nil when it is not there.
	Find func(ref effect.Ref) (live map[string]any)
	// Fields is what is known of the fields of a holder.
	Fields func(reconcile.Holder) Fields
}

// Written is who has written a child.
type Written struct {
	Ours bool
	// Unsigned: its marks lack the signature of this instance. It is ours if an earlier version may have made it.
	Unsigned bool
	By       string // "" for nobody else
}

// hears says whether the parent hears of it when somebody deletes an object with its uid. A write meets one that
// it does not hear of, and is tried again.
func (d *decision) hears(live map[string]any) bool {
	named, _ := reconcile.ParentOf(live)
	return named == d.r.Key || reconcile.ChildOf(live).Foreign == "" && d.r.Family.Writer(live).Ours
}

// children are those that there are.
func (d *decision) children() []reconcile.Child {
	var out []reconcile.Child
	for id, live := range d.live {
		if id.Fields {
			out = append(out, reconcile.FieldsChild(live, id.Subresource, d.held[id]))
			continue
		}
		c := reconcile.ChildOf(live)
		w := d.r.Family.Writer(live)
		if c.Unsigned = w.Unsigned; !w.Ours {
			c.Foreign = "somebody else, who has copied it"
			if w.Unsigned {
				c.Foreign = "somebody else, for its marks are not signed by this Starling"
			}
			c.Adopt = d.r.Hook.Controller.Adopt && reconcile.Keeper(live, d.parent) == ""
		} else if w.Unsigned {
			d.unsigned = append(d.unsigned, c)
		}
		out = append(out, c)
	}
	return out
}

// sign asks for the signature of children that an earlier version has made, and that nothing else is written of.
func (d *decision) sign(children *effect.Write, about *[]reconcile.Write) {
	slices.SortFunc(d.unsigned, func(a, b reconcile.Child) int { return a.Compare(b.Ref) })
	for _, c := range d.unsigned {
		if slices.ContainsFunc(*about, func(o reconcile.Write) bool { return o.ID.Same(c.ID) }) {
			continue
		}
		children.Children = append(children.Children, effect.Write{
			Kind: effect.WritePatch, Ref: c.Ref, Patch: &effect.Patch{Type: effect.PatchMerge, Body: reconcile.SignedBy(d.parent)}, Unchanged: &effect.Unchanged{UID: c.UID},
		})
		*about = append(*about, reconcile.Write{ID: c.ID})
	}
}
