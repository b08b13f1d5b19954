package reconcile

import "slices"

// Look is what one look at a parent has found.
type Look struct {
	// Deleting says for what a parent waits that is being deleted, "" of any other.
	Deleting string
	// Paused says why its children are left alone, "" when they are not.
	Paused string
	// Stalled says why nothing can be done before somebody changes something, or "".
	Stalled string
	// Failed says why this look, or the one before it, could not do what it should, or "". Tries is how
	// many have failed one after the other.
	Failed string
	Tries  int
	// Final says that another try would fail as well.
	Final bool
	// Hold says that nothing is done now, Waiting why: "" when the controller gives no reason.
	Hold    bool
	Waiting string
	// Progressing says in words of the author what is under way, though all children may be ready, or "".
	Progressing string
	// Unsure says of which kind nobody knows which children there are, or "".
	Unsure string
	// Parts, Children and Actions are what is wanted, what there is, and the answer of [Actions].
	Parts    []Part
	Children []Child
	Actions  []Action
}

// stalledAfter is after how many failures in a row nobody should wait for a parent any more.
const stalledAfter = 5

// Condition is one of status.conditions.
type Condition struct {
	// Type is Ready, Reconciling or Stalled; Status is True, False or Unknown.
	Type, Status string
	// Reason is one word for programs, Message is for people.
	Reason, Message string
}

// Conditions returns Ready, Reconciling and Stalled of a parent. Ready is Unknown while something is
// under way, and False when it is not.
func Conditions(l Look) []Condition {
	switch {
	case l.Paused != "":
		return conditions("False", "Paused", l.Paused, "")
	case l.Stalled != "":
		return conditions("False", "Stalled", l.Stalled, "Stalled")
	case l.Failed != "" && (l.Final || l.Tries >= stalledAfter):
		return conditions("False", "Failing", l.Failed, "Stalled")
	case l.Failed != "":
		return conditions("False", "Failing", l.Failed, "Reconciling")
	case l.Deleting != "":
		return conditions("False", "Deleting", l.Deleting, "Reconciling")
	case l.Hold && l.Waiting == "":
		return conditions("Unknown", "Waiting", "its controller has answered None: not now", "Reconciling")
	case l.Hold:
		return conditions("Unknown", "Waiting", "waits for "+l.Waiting, "Reconciling")
	}
	children := make(map[ID]*Child, len(l.Children))
	for i := range l.Children {
		children[l.Children[i].key()] = &l.Children[i]
	}
	for _, a := range l.Actions {
		if c := children[a.ID.key()]; a.Part != "" && a.Op == OpHold && c != nil && c.Foreign != "" && !c.Adopt {
			return conditions("False", "ForeignObject", a.String(), "Stalled")
		}
	}
	for i := range l.Parts {
		if c := children[l.Parts[i].ID.key()]; c != nil && c.Contested != "" {
			return conditions("False", "Contested", c.ID.String()+" is contested by "+c.Contested+": it is put right again and again, and later each time", "Stalled")
		}
	}
	if l.Progressing != "" {
		return conditions("Unknown", "Progressing", l.Progressing, "Reconciling")
	}
	for i := range l.Parts {
		if c := children[l.Parts[i].ID.key()]; c != nil && !c.Ready && c.Foreign == "" {
			why := c.ID.String() + " is not ready"
			if c.Reason != "" {
				why += ": " + c.Reason
			}
			return conditions("Unknown", "Progressing", why, "Reconciling")
		}
	}
	for i := range l.Actions {
		if a := &l.Actions[i]; !a.rests(children) {
			return conditions("Unknown", "Progressing", a.String(), "Reconciling")
		}
	}
	if l.Unsure != "" {
		return conditions("Unknown", "Progressing", l.Unsure, "Reconciling")
	}
	for _, a := range l.Actions {
		if c := children[a.ID.key()]; a.Op == OpHold && c != nil && c.Reported {
			return conditions("True", "Drifted", c.ID.String()+": "+a.Why, "")
		}
	}
	return conditions("True", "Ready", "all children are as they should be", "")
}

// Moves says whether some action makes, changes or deletes a child, so that another look follows. To put
// back what somebody has changed may change nothing: the API server keeps some values in another form.
func (l *Look) Moves() bool {
	return slices.ContainsFunc(l.Actions, func(a Action) bool {
		changed := func(c Child) bool { return c.key() == a.ID.key() && c.Changed != "" }
		return a.Op.Acts() && !(a.Op == OpApply && slices.ContainsFunc(l.Children, changed))
	})
}

// rests says that a parent is ready with such an action: a child is retained, or is put back.
func (a *Action) rests(children map[ID]*Child) bool {
	c := children[a.ID.key()]
	return a.Op == OpHold && a.Part == "" || c != nil && c.Changed != "" && (a.Op == OpApply || a.Op == OpHold)
}

// conditions are Ready with a reason, and the same reason for the one of the others that holds, "" for none.
func conditions(ready, reason, message, holds string) []Condition {
	out := []Condition{{"Ready", ready, reason, message}}
	for _, kind := range []string{"Reconciling", "Stalled"} {
		c := Condition{Type: kind, Status: "False", Reason: reason}
		if kind == holds {
			c.Status, c.Message = "True", message
		}
		out = append(out, c)
	}
	return out
}
