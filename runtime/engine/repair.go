package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine/repairs"
	"github.com/starling-operator/starling/runtime/engine/verdicts"
	"github.com/starling-operator/starling/runtime/message"
)

// DriftObject is an object of a release that is not as Starling has left it.
type DriftObject = repairs.Object

// Change is what others had changed of an object of a release.
type Change = repairs.Change

// drifted takes in which objects of a module's release differ.
func (t *turn) drifted(m *module, in Drift) {
	if t.reports(m) && len(in.Objects) > 0 && len(m.repairs.Objects()) == 0 {
		t.do(Note{Level: builtins.LevelWarn, Module: m.name, Event: "Drifted", Message: differs(in.Objects)})
	}
	m.repairs.Found(in.Objects, in.Verify)
	m.findings[untouched], m.findings[unseen] = in.untouched(), in.unseen()
}

// untouched says for people which objects no repair touches now.
func (d Drift) untouched() (out []string) {
	if len(d.Going) > 0 {
		text := d.Going[0].String() + " is being deleted, and stays until its finalizers are gone"
		out = append(out, text+message.More(len(d.Going)-1))
	}
	return out
}

// unseen says for people of which objects nobody sees whether others change them.
func (d Drift) unseen() (out []string) {
	if d.Blind != "" {
		out = append(out, "changes of others are not seen: "+d.Blind)
	}
	return out
}

// drift says what becomes of changes of others: as the user says, or else the module.
func (g *ground) drift(m *module) string { return m.policy(g.config.Accepted().Policies[m.name]) }

func (m *module) policy(user values.Policy) string {
	return cmp.Or(user.Drift, m.gen.Decl.Drift, builtins.DriftRepair)
}

// reports says that changes of others are shown, and not put right.
func (g *ground) reports(m *module) bool { return g.drift(m) == builtins.DriftReport }

// differs says for people which objects others have changed.
func differs(objects []DriftObject) string {
	o, text := objects[0], ""
	switch {
	case o.Missing:
		text = o.String() + " was deleted"
	case len(o.By) > 0:
		text = o.String() + " was changed by " + o.By[0]
	default:
		text = o.String() + " was changed"
	}
	return text + message.More(len(objects)-1) + "; it stays so, for drift is reported alone"
}

// released says that the module's release is as it should be, and nothing else works on it.
func (m *module) released() bool {
	return !m.removed && m.verdict.Do == verdicts.Install && m.hasChart() && m.pass.Ready() && m.pass.Idle()
}

// repairable says that objects of the module's release may be put right.
func (m *module) repairable() bool { return m.released() && !m.pass.Wanted() }

// repair has objects put right that differ.
func (t *turn) repair(m *module) {
	if m.repairs.Ignore(t.ignored(m)); !m.repairable() {
		return
	}
	if objects, due := m.repairs.Begin(t.now, t.reports(m)); due {
		t.ask(m, Repair{Op: t.op(), Module: m.gen, Ref: m.ref(t.opts.Namespace), Drift: t.drift(m), Objects: objects, Secrets: m.values.Secrets()})
	}
}

func (t *turn) repaired(m *module, a asked, in Repaired) {
	if in.Lost && in.Waits == "" && in.Op > m.incarnation { // there is no release any more: the pass makes it anew
		m.pass.Want(true, nil)
	}
	var objects []DriftObject
	for _, k := range in.Written {
		objects = append(objects, DriftObject{Ref: k})
	}
	asked := a.action.(Repair).Objects
	if asked != nil && !in.Lost {
		objects = asked // those that were as they should be, too: else a watch that errs would have them looked at without end
	}
	for _, c := range in.Left {
		t.do(Note{Level: builtins.LevelInfo, Module: m.name, Event: "LeftToOthers", Message: left(c)})
	}
	contested := m.repairs.Ended(repairs.Outcome{Err: in.Err, Tried: asked, Failed: in.Failed, Changes: changesOf(objects, in.Changes), Waits: in.Waits}, t.now, t.opts.Jitter)
	m.repairs.Ignore(t.ignored(m)) // it may be another list than that of the repair
	var contests []contest
	for _, k := range contested {
		if c, is := m.repairs.Contested(k, t.now); is {
			contests = append(contests, contest{k, c})
		}
	}
	if len(contests) > 0 {
		t.do(Note{Level: builtins.LevelWarn, Module: m.name, Event: driftContested, Message: contestedBy(contests) + ". " + leaveIt(contests)})
	}
}

// left says for people that fields stay as another writer of the release has left them.
func left(c Change) string {
	var lines []string
	for _, e := range c.Edits[:min(len(c.Edits), mostIgnores)] {
		lines = append(lines, fmt.Sprintf("%q", c.Kind+"/"+c.Name+" "+e.Path.String()))
	}
	return fmt.Sprintf("%s stays in %s as %s has written it: a hook of its chart, somebody while that ran, or who fills in certificates. Say so with module(ignore = [%s])",
		c.Ref, c.Edits[0].Path, cmp.Or(c.Edits[0].By, "somebody"), strings.Join(lines, ", "))
}

// changesOf are the changes of all objects that a repair has looked at. Where no field is known, the other manager
// that has written last is told.
func changesOf(objects []DriftObject, known []Change) (changes []Change) {
	edits := map[effect.Ref][]owned.Edit{}
	for _, c := range known {
		edits[c.Ref] = c.Edits
	}
	for _, o := range objects {
		c := Change{Ref: o.Ref, Edits: edits[o.Ref]}
		if len(c.Edits) == 0 && len(o.By) > 0 {
			c.Edits = []owned.Edit{{By: o.By[0]}}
		}
		changes = append(changes, c)
	}
	return changes
}

// ignored is what of the module's release is left to others.
func (g *ground) ignored(m *module) []owned.Ignore {
	if g.drift(m) == builtins.DriftIgnore {
		return []owned.Ignore{{}} // all of it
	}
	return m.gen.Decl.Ignore
}

// driftStatus is what people are shown of objects that others have changed.
func (g *ground) driftStatus(m *module) []status.Drifted {
	var out []status.Drifted
	shown := map[effect.Ref]bool{}
	add := func(o DriftObject) {
		shown[o.Ref] = true
		d := status.Drifted{Object: o.String(), Missing: o.Missing, By: o.By}
		if c, is := m.repairs.Contested(o.Ref, g.now); is {
			d.Contested, d.Fields, d.Remedy = true, c.Fields, leaveIt([]contest{{o.Ref, c}})
			if d.By = nil; c.By != "" { // others may have written other fields later
				d.By = append([]string{c.By}, slices.DeleteFunc(slices.Clone(o.By), func(by string) bool { return by == c.By })...)
			}
		}
		out = append(out, d)
	}
	for _, o := range m.repairs.Objects() {
		add(o)
	}
	for _, k := range m.repairs.AllContested(g.now) {
		if !shown[k] {
			add(DriftObject{Ref: k})
		}
	}
	return out
}
