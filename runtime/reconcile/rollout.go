package reconcile

import (
	"cmp"
	"fmt"
	"slices"
)

// takeTurns has parts of rollouts wait whose turn has not come.
func (d *decision) takeTurns() {
	rollouts := map[string][]*part{} // each goes by its own parts
	for _, a := range d.parts {
		if a.Rolling != "" {
			rollouts[a.Rolling] = append(rollouts[a.Rolling], a)
		}
	}
	for name, members := range rollouts {
		r := Rollout{Name: name}
		if i := slices.IndexFunc(d.rollouts, func(r Rollout) bool { return r.Name == name }); i >= 0 {
			r = d.rollouts[i]
		}
		r.MaxUnavailable = max(r.MaxUnavailable, 1)
		r.takeTurns(members)
	}
}

// takeTurns lets parts begin that are there in an older state. Those that do not work go first, for
// that costs nothing; but even of them no more than MaxUnavailable are on their way at a time: a
// moment in which nobody can tell whether they work would else have all of them restarted.
func (r Rollout) takeTurns(members []*part) {
	var due, unavailable []*part
	underWay := 0
	for _, a := range members {
		outdated := a.news && a.child != nil && a.op == OpApply
		if outdated {
			due = append(due, a)
		}
		if a.available() {
			continue
		}
		unavailable = append(unavailable, a)
		if !outdated && !a.keepsOld() {
			underWay++
		}
	}
	slices.SortStableFunc(due, func(a, b *part) int {
		return cmp.Or(cmp.Compare(one(a.available()), one(b.available())), cmp.Compare(a.Rank, b.Rank))
	})
	held := ""
	for _, a := range due {
		why := held
		switch {
		case held != "":
		case a.available() && len(unavailable) >= r.MaxUnavailable, underWay >= r.MaxUnavailable:
			why = fmt.Sprintf("its turn has not come: %d of %d are not available, such as %s",
				len(unavailable), len(members), unavailable[0].Name)
		default:
			if r.Hold != nil {
				why = r.Hold(a.child)
			}
			if why != "" {
				held = "its turn has not come: " + a.Name + " waits: " + why
				break
			}
			if underWay++; a.available() {
				unavailable = append(unavailable, a)
			}
		}
		if why != "" {
			a.need = need{op: OpWait, why: why, news: true, written: true}
		}
	}
}

// keepsOld says that the part stays in an older state because it waits for others, or because its write
// fails. It is not on its way then.
func (a *part) keepsOld() bool {
	return a.child != nil && !a.child.Deleting && !a.settled() && !a.op.Acts()
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
