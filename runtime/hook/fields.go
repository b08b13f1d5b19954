package hook

import (
	"fmt"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// askFor is how often a parent looks for an object that is not there, or waits for fields that another
// parent has. It asks the watch, and makes no request.
const askFor = 10 * time.Second

// MaxHolders is how many parents of one controller may have fields of one object: each leaves a mark on it, and each
// change of it is looked at by all of them.
const MaxHolders = 100

// Fields is what is known of the fields that one holder has of objects of others.
type Fields struct {
	// Manager is its field manager.
	Manager string
	// Writer says whether it has written a mark of this name, and who else writes the object.
	Writer func(live map[string]any, mark string) Written
	// Same says whether a write of want would leave live as it is, Owns whether the holder owns all fields
	// of want, whatever their values.
	Same, Owns func(want, live map[string]any) bool
	// Rival finds another parent that has a field of want with another value.
	Rival func(want, live map[string]any, mark string) Rival
}

// Rival is another parent that has a field with another value; the zero Rival is none.
type Rival struct {
	// Parent is its key, Field the path of the field.
	Parent, Field string
	// Yields says that the holder may take the field: it has all such fields, too, and its mark sorts before
	// those of the others that have them. Two who share a field would else wait for each other.
	Yields bool
}

func (d *decision) holder(subresource string) reconcile.Holder {
	return reconcile.Holder{Key: d.parent.Key, Controller: d.parent.Controller, Subresource: subresource}
}

func (d *decision) fields(subresource string) Fields { return d.r.Family.Fields(d.holder(subresource)) }

// holds notes the fields that the parent has of an object.
func (d *decision) holds(live map[string]any) {
	for _, held := range reconcile.HeldIn(live) {
		if held.Holder != d.holder(held.Subresource) || !d.fields(held.Subresource).Writer(live, held.Name).Ours {
			continue
		}
		c := reconcile.FieldsChild(live, held.Subresource, held.Digest)
		d.live[c.ID], d.held[c.ID] = live, held.Digest
	}
}

// lookAgain has another look follow after a time, if none follows sooner.
func (d *decision) lookAgain(after time.Duration) {
	if d.again == 0 || d.again > after {
		d.again = after
	}
}

// wantFields makes the fields of a part as they are written. Of an object of which the parent has none so far
// it returns the child, nil when it is not there.
func (d *decision) wantFields(p *builtins.Part) *reconcile.Child {
	obj := p.Object
	if p.ID.Subresource == "" {
		obj = marked(obj, d.holder(""), p.Digest)
	}
	d.wanted[p.Name] = obj
	if _, there := d.held[p.ID]; there {
		return nil
	}
	live := d.r.Family.Find(p.ID.Ref)
	if live == nil {
		d.lookAgain(askFor)
		return nil
	}
	d.live[p.ID], d.found = live, append(d.found, live)
	c := reconcile.FieldsChild(live, p.ID.Subresource, "")
	return &c
}

// marked is an object with the mark of a holder.
func marked(obj map[string]any, h reconcile.Holder, digest string) map[string]any {
	name, value := h.Mark(digest)
	return object.With(obj, []string{"metadata", "annotations", name}, value)
}

// lookAtFields finds who has changed fields of the parent, and who has those that it wants.
func (d *decision) lookAtFields(c *reconcile.Child, p *builtins.Part) {
	want, live, f := d.wanted[p.Name], d.live[c.ID], d.fields(c.Subresource)
	mark, _ := d.holder(c.Subresource).Mark("")
	if rival := f.Rival(want, live, mark); rival.Yields {
		d.changedBy[c.ID] = true
	} else if rival.Parent != "" {
		c.Foreign = rival.Parent + ", which sets its " + rival.Field + " to another value"
		d.lookAgain(askFor)
		return
	}
	switch {
	case c.Digest == "" && Crowded(live, d.parent.Controller, d.r.Family.Fields, MaxHolders):
		c.Foreign = fmt.Sprintf("%d parents of this controller, as many as may set fields of one object", MaxHolders)
		d.lookAgain(askFor)
	case c.Digest != p.Digest:
	case f.Same(want, live):
		d.rests(c)
	default:
		d.changed(c, f.Owns(want, live), f.Writer(live, mark))
	}
}

// Crowded says whether so many parents of a controller have fields of an object, or more. A mark that somebody else has
// written counts for nothing.
func Crowded(live map[string]any, controller string, fields func(reconcile.Holder) Fields, most int) bool {
	n := 0
	for _, held := range reconcile.HeldIn(live) {
		if held.Controller == controller && fields(held.Holder).Writer(live, held.Name).Ours {
			n++
		}
	}
	return n >= most
}

// takeFields writes fields. Of a subresource the mark cannot come with them: it comes before them, and tells
// of them once they are written.
func (d *decision) takeFields(a reconcile.Action) effect.Write {
	w, h := d.steps(a), d.holder(a.ID.Subresource)
	if d.held[a.ID] == "" {
		w.OneMore = d.r.Hook.ID
	}
	if a.ID.Subresource == "" {
		w.Children = []effect.Write{d.step(a, effect.WriteApply, d.wanted[a.Part])}
		return w
	}
	if d.held[a.ID] == "" {
		w.Children = append(w.Children, d.step(a, effect.WriteApply, marked(a.ID.Object(), h, reconcile.Claimed)))
	}
	w.Children = append(w.Children, d.step(a, effect.WriteStatus, d.wanted[a.Part]),
		d.step(a, effect.WriteApply, marked(a.ID.Object(), h, d.digests[a.Part])))
	return w
}

// giveFields gives fields back: a manager that applies the name of an object alone has nothing. The mark goes last.
func (d *decision) giveFields(a reconcile.Action) effect.Write {
	w := d.steps(a)
	if a.ID.Subresource != "" {
		w.Children = append(w.Children, d.step(a, effect.WriteStatus, a.ID.Object()))
	}
	w.Children = append(w.Children, d.step(a, effect.WriteApply, a.ID.Object()))
	return w
}

func (d *decision) steps(a reconcile.Action) effect.Write {
	return effect.Write{Kind: effect.WriteFields, Ref: a.ID.Ref, Manager: d.fields(a.ID.Subresource).Manager}
}

// step is one write of fields. It takes nothing from others, but for fields that the parent had already, or has
// as well. The uid keeps it from making the object.
func (d *decision) step(a reconcile.Action, kind effect.WriteKind, obj map[string]any) effect.Write {
	return effect.Write{Kind: kind, Ref: a.ID.Ref, Object: obj, Force: d.changedBy[a.ID], Unchanged: &effect.Unchanged{UID: a.UID}}
}
