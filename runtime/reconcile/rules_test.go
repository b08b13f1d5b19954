package reconcile

import (
	"slices"
	"testing"
)

// checkRules holds an answer to the rules that protect what is in the cluster. It shares no code with
// [Actions].
func checkRules(t *testing.T, wanted Wanted, in Inventory, actions []Action) {
	t.Helper()
	bad := func(a Action, rule string) { t.Errorf("%s\n%s; all of them:\n%s", rule, a, shown(actions)) }
	child := func(id ID) *Child {
		if i := slices.IndexFunc(in.Children, func(c Child) bool { return c.ID == id }); i >= 0 {
			return &in.Children[i]
		}
		return nil
	}
	part := func(match func(Part) bool) *Part {
		if i := slices.IndexFunc(wanted.Parts, match); i >= 0 {
			return &wanted.Parts[i]
		}
		return nil
	}
	named := func(name string) *Part { return part(func(p Part) bool { return p.Name == name }) }
	of := func(id ID) *Part { return part(func(p Part) bool { return p.ID == id }) }
	written := func(p *Part) bool {
		c := child(p.ID)
		return c != nil && c.Foreign == "" && !c.Deleting && (c.Digest == p.Digest || p.Update == UpdateNever)
	}

	seen := map[ID]bool{}
	for _, a := range actions {
		if seen[a.ID] {
			bad(a, "one child has two actions")
		}
		seen[a.ID] = true
		if a.Why == "" {
			bad(a, "nobody says why")
		}
		c, p := child(a.ID), of(a.ID)
		if !a.Op.Acts() {
			continue
		}
		if len(in.Unsynced) > 0 && in.Unsynced[0].Kind == a.ID.Kind {
			bad(a, "something is done about a kind that is not synced")
		}
		switch a.Op {
		case OpCreate:
			if c != nil || p == nil {
				bad(a, "what is there is made")
			}
		case OpApply:
			if c == nil || p == nil || c.Deleting || c.UID != a.UID || c.Foreign != "" && !(c.Adopt && a.Adopt) || c.Foreign == "" && p.Update == UpdateNever {
				bad(a, "an object is changed that is not the part's")
			}
		case OpDelete:
			checkDelete(func(rule string) { bad(a, rule) }, a, in, c, of)
			for i := range wanted.Parts {
				if q := &wanted.Parts[i]; !written(q) && (q.Rolling == "" || child(q.ID) == nil) {
					bad(a, "it is deleted before "+q.Name+" is written")
				}
			}
		}
		if p == nil || c != nil && c.Digest == p.Digest && c.Foreign == "" { // a repair waits for nobody
			continue
		}
		for _, name := range p.After {
			if other := named(name); !written(other) || !child(other.ID).Ready {
				bad(a, "it comes before "+name)
			}
		}
	}
	checkRollout(t, wanted, child, actions)
}

func checkDelete(bad func(rule string), a Action, in Inventory, c *Child, of func(ID) *Part) {
	if c == nil || of(a.ID) != nil || c.Foreign != "" || c.Retain || c.Deleting || c.UID != a.UID || a.UID == "" {
		bad("an object is deleted that may not be")
		return
	}
	if len(in.Unsynced) > 0 || in.Unknown != "" {
		bad("it is deleted while not all is known")
	}
	for _, other := range in.Children {
		stays := other.Foreign != "" || other.Retain && !other.Deleting
		if !stays && other.Layer > c.Layer && of(other.ID) == nil {
			bad("it is deleted before " + other.ID.String())
		}
	}
}

// checkRollout makes sure that no more parts that work begin than may be unavailable.
func checkRollout(t *testing.T, wanted Wanted, child func(ID) *Child, actions []Action) {
	t.Helper()
	r := wanted.Rollouts[0]
	unavailable, begin := 0, 0
	for _, p := range wanted.Parts {
		if p.Rolling != r.Name {
			continue
		}
		c := child(p.ID)
		works := c != nil && !c.Deleting && c.Ready && (c.Foreign == "" || c.Adopt)
		if !works {
			unavailable++
		}
		if works && c.Digest != p.Digest && slices.ContainsFunc(actions, func(a Action) bool { return a.ID == p.ID && a.Op.Acts() }) {
			begin++
		}
	}
	if begin > 0 && unavailable+begin > r.MaxUnavailable {
		t.Errorf("%d parts begin while %d do not work, and %d may: \n%s", begin, unavailable, r.MaxUnavailable, shown(actions))
	}
}
