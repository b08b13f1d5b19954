package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// decide has the desired function called, and makes writes of what is done about the children.
func decide(ctx context.Context, r Request, s *Seen) Result {
	lookups := r.lookups(s)
	result := decideBy(ctx, r, s, lookups)
	result.Lookups, result.Due = lookups.Asked()
	return result
}

func decideBy(ctx context.Context, r Request, s *Seen, lookups *builtins.Lookups) Result {
	d, err := newDecision(&r, s)
	if err != nil {
		return Result{Err: err}
	}
	has := len(d.live) > 0 // a parent had its finalizer before the first of those that are not known
	if d.paused() && !r.Cleanup {
		result := Result{Children: has, Waits: "it is paused by its annotation " + reconcile.PausedAnnotation}
		d.status(&result.Effects, reconcile.Look{Paused: result.Waits}, nil)
		return result
	}
	namespace := cmp.Or(d.ref.Namespace, r.Namespace)
	run := &builtins.Run{
		Module: r.Module.Name, Hook: r.Hook.HookDecl.ID, Global: r.Module.Global, Namespace: namespace, Instance: r.Instance, Seal: r.Seal, Labels: r.Module.Decl.Labels,
		Scope: d.scope, Owns: r.Hook.Controller.Owns, Fields: r.Hook.Controller.Fields, Key: r.Key, Cleanup: r.Cleanup,
		Compose: func(own []effect.ValueOp) (map[string]any, error) {
			lookups.Values()
			return d.compose(own)
		},
	}
	options := script.CallOptions{
		Name: r.Hook.ID, Context: &builtins.Context{Phase: spec.InDesired, Log: r.Log, Run: run},
		Limits: script.Limits{Wall: r.Hook.Timeout}, Subject: r.Key,
	}
	fn := r.Hook.Fn
	if r.Cleanup {
		fn = r.Hook.Controller.Cleanup
		// what it says of children that are gone would not count
		if d.annotations[reconcile.CleanedAnnotation] == d.parent.UID {
			fn = nil
		}
	}
	q := builtins.Question{Key: r.Key, Parent: r.Object, Children: d.children(), Unsynced: r.Unsynced, Failures: r.Past.Failures, Lookups: lookups, Look: d.look, Cleanup: r.Cleanup, Observed: r.Observed}
	again := d.twice(q, options)
	var out builtins.Decided
	options.Of = fn // nobody else's: a deletion does not wait for a function that does not end
	_, usage, err := r.Host.Call(ctx, q.Decide(fn, &out), nil, options)
	if err == nil && r.Twice && !r.Cleanup {
		err = again(ctx, fn, &out.Desired)
	}
	var unserved *unservedError
	if errors.As(err, &unserved) {
		out, err = builtins.Decided{Desired: builtins.Desired{Hold: true, Waiting: unserved.Error()}, Children: q.Children}, nil
	}
	if err != nil { // what has not ended in time may go on, so nobody looks at its answer
		result := Result{Children: has, Usage: usage, Ctx: q.Ctx}
		look := reconcile.Look{Failed: s.Err(err).Error(), Tries: r.Attempt}
		result.Err, look.Final = d.final(ctx, err)
		d.status(&result.Effects, look, nil)
		return result
	}
	result := Result{Children: has, Usage: usage, Ctx: q.Ctx, Found: d.found, Actions: out.Actions}
	switch {
	case out.Hold && r.Cleanup:
		result.Waits = "cleanup waits for " + out.Waiting
	case out.Hold:
		result.Waits = out.Waiting
	default:
		result.Wanted = d.wants(&out.Desired)
		result.Effects, result.Writes, result.Size, result.Waits = d.effects(out.Actions)
		result.Children = has || len(result.Effects.Writes) > 0
	}
	if r.Cleanup && len(out.Parts) > 0 && result.Waits == "" {
		result.Waits = "cleanup keeps " + out.Parts[0].ID.String()
	}
	if out.Cleaned && len(result.Effects.Writes) > 0 && !r.Gone {
		result.Effects.Writes = append([]effect.Write{d.cleaned()}, result.Effects.Writes...)
	}
	if result.Waits == "" {
		result.Waits = reconcile.Unsure(r.Unsynced)
	}
	look := reconcile.Look{
		Stalled: out.Stalled, Hold: out.Hold, Waiting: out.Waiting, Parts: out.Wanted().Parts, Actions: out.Actions,
		Children: out.Children, Unsure: reconcile.Unsure(r.Unsynced),
	}
	s.use(func(m *object.Mask) { // the author's words may hold what a Secret does
		look.Stalled, look.Waiting, result.Waits = m.Text(look.Stalled), m.Text(look.Waiting), m.Text(result.Waits)
		for i := range out.Actions {
			out.Actions[i].Why = m.Text(out.Actions[i].Why)
		}
	})
	if r.Cleanup {
		look.Deleting = result.Waits
	}
	if len(result.Effects.Writes) > 0 { // what has failed may fail again
		look.Failed, look.Tries = r.Failed, r.Attempt-1
	}
	for _, f := range r.Past.Failures {
		if slices.ContainsFunc(out.Actions, func(a reconcile.Action) bool { return a.ID == f.ID }) {
			look.Failed, look.Tries = cmp.Or(r.Failed, f.Reason), max(look.Tries, f.Tries)
		}
	}
	if out.Stalled != "" {
		result.Err = &builtins.FailError{Msg: out.Stalled, Permanent: true}
	}
	if !out.Hold {
		q.Children = out.Children
	}
	var told, fields map[string]any
	if tell := r.Hook.Controller.Status; tell != nil && !r.Cleanup {
		options.Of = tell
		_, more, err := r.Host.Call(ctx, q.Status(tell, &told), nil, options)
		if result.Usage = result.Usage.Plus(more); err == nil {
			fields = told
		} else if errors.As(err, &unserved) {
			look.Hold, look.Waiting = true, unserved.Error()
		} else {
			look.Failed, look.Tries = s.Err(err).Error(), r.Attempt
			result.Err, look.Final = d.final(ctx, err)
		}
	}
	result.Progressing = run.Progressing
	s.use(func(m *object.Mask) { look.Progressing = m.Text(run.Progressing) })
	d.status(&result.Effects, look, fields)
	return result
}

// look makes the objects as they are written, and finds who has changed children.
func (d *decision) look(wanted *builtins.Desired, children []reconcile.Child) ([]reconcile.Child, error) {
	w := wanted.Wanted()
	layers, err := reconcile.Layers(w.Parts)
	if err != nil {
		return nil, err
	}
	parts := map[reconcile.ID]int{}
	for i := range wanted.Parts {
		p := &wanted.Parts[i]
		parts[p.ID], d.digests[p.Name], d.pos[p.Name] = i, p.Digest, p.Pos
		if p.ID.Fields {
			if c := d.wantFields(p); c != nil {
				children = append(children, *c)
			}
			continue
		}
		var applied map[string]any
		if len(p.AtCreation) > 0 && d.live[p.ID] != nil {
			applied = d.r.Family.Applied(d.live[p.ID])
		}
		obj, err := p.Made(d.live[p.ID], applied, d.r.Random)
		if err != nil {
			return nil, fmt.Errorf("part %q: %w", p.Name, err)
		}
		parent := d.parent
		if d.owns(p) {
			parent.Owner = map[string]any{"apiVersion": d.ref.APIVersion, "kind": d.ref.Kind, "name": d.ref.Name, "uid": d.parent.UID, "controller": true, "blockOwnerDeletion": false}
		}
		d.wanted[p.Name] = reconcile.Mark(obj, &w.Parts[i], layers[i], parent)
		d.recreate[p.Name] = p.Update == reconcile.UpdateRecreate
		d.adopt[p.Name] = d.r.Hook.Controller.Adopt && len(p.Fill) == 0 // those that are there are not known
	}
	for i := range children {
		c := &children[i]
		at, is := parts[c.ID]
		if is && c.Fields {
			d.lookAtFields(c, &wanted.Parts[at])
			continue
		}
		if is && len(wanted.Parts[at].Fill) > 0 {
			c.Adopt = false // what is filled in once is not taken from others
		}
		if !is || c.Foreign != "" || c.Digest != w.Parts[at].Digest {
			continue
		}
		live := d.live[c.ID]
		switch want := d.wanted[wanted.Parts[at].Name]; {
		case d.r.Family.Same(want, live) || d.asLeft(c.ID, want, live):
			c.Layer, c.Retain = layers[at], w.Parts[at].Retain // what somebody else has noted stays theirs
			d.rests(c)
		case c.Layer != layers[at] || c.Retain != w.Parts[at].Retain:
		default:
			c.Unsure = d.r.Family.Owns(want, live)
			d.changed(c, c.Unsure, d.r.Family.Writer(live))
		}
	}
	return children, nil
}

// asLeft says whether a child is as the API server has left it after the last write of the same.
func (d *decision) asLeft(id reconcile.ID, want, live map[string]any) bool {
	at := slices.IndexFunc(d.r.Past.Kept, func(k Kept) bool { return k.ID == id })
	return at >= 0 && d.r.Past.Kept[at].Form == d.r.Family.Form(want, live)
}

// lookAtEnds is how often a parent that is being deleted looks whether its children are gone, if no event of them
// tells: somebody may have had a child in another namespace name another parent.
const lookAtEnds = 30 * time.Second

// changed notes that somebody has changed a child; owned says that all fields are still the controller's.
func (d *decision) changed(c *reconcile.Child, owned bool, by Written) {
	report := d.r.Hook.Controller.Drift == builtins.DriftReport
	if report && owned { // it holds for long: no value is told of which the API server keeps another form
		return
	}
	if c.Changed = by.By; c.Changed == "" {
		c.Changed = "somebody"
	}
	if c.Reported = report; report {
		c.Held = c.Changed + " has changed it; it stays so until another state is wanted, for drift = \"report\""
		return
	}
	d.changedBy[c.ID] = true
	if !owned { // else only a value differs, which the API server may keep in another form
		d.takenBy[c.ID] = c.Changed
	}
	contest, is := d.contests[c.ID]
	if !is {
		return
	}
	if c.Contested = c.Changed; contest.Left > 0 {
		c.Held = c.Changed + " changes it again and again; it is put right later each time"
		d.lookAgain(contest.Left)
	}
}

// rests notes of a child that is as it should be whether it is still contested: somebody may be about to
// change it again.
func (d *decision) rests(c *reconcile.Child) {
	if contest := d.contests[c.ID]; contest.Left > 0 {
		c.Contested = contest.By
		d.lookAgain(contest.Left)
	}
}

// owns says whether the parent becomes the owner of a part. Nobody owns what stays when the parent goes.
func (d *decision) owns(p *builtins.Part) bool {
	possible := d.ref.Namespace == "" || d.ref.Namespace == p.ID.Namespace
	return possible && !p.Retain && (p.Owner == nil || *p.Owner)
}

// cleaned has the parent say that cleanup is done, before anything is deleted: after a restart cleanup would
// be asked about children of which some are gone.
func (d *decision) cleaned() effect.Write {
	return effect.Write{
		Kind: effect.WritePatch, Ref: d.ref, Pos: d.r.Hook.Pos,
		Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{reconcile.CleanedAnnotation: d.parent.UID}},
		}},
	}
}

// family is a write of several objects, none of them yet.
func (d *decision) family() effect.Write {
	return effect.Write{Kind: effect.WriteChildren, Ref: effect.Ref{Kind: "children", Name: d.r.Key}, Pos: d.r.Hook.Pos}
}

// effects are the writes of actions, which children they are about, how large they are in memory, and for what
// the rest waits.
func (d *decision) effects(actions []reconcile.Action) (out effect.Effects, about []reconcile.Write, size int, waits string) {
	children := d.family()
	for _, a := range actions {
		w := effect.Write{Ref: a.ID.Ref}
		if a.UID != "" {
			w.Unchanged = &effect.Unchanged{UID: a.UID}
		}
		switch {
		case a.Op == reconcile.OpRelease:
			w = d.giveFields(a)
		case a.Op == reconcile.OpApply && a.ID.Fields:
			w = d.takeFields(a)
		case a.Op == reconcile.OpCreate, a.Op == reconcile.OpApply:
			w.Kind, w.Object, w.Force = effect.WriteApply, d.wanted[a.Part], true
			if live := d.live[a.ID]; live != nil {
				if by := d.r.Family.Writer(live); by.Ours && !by.Unsigned {
					w.Object = reconcile.Signed(w.Object, live)
				}
			}
			w.Recreate, w.Adopt = d.recreate[a.Part] && !a.Adopt, d.adopt[a.Part]
		case a.Op == reconcile.OpDelete:
			w.Kind = effect.WriteDelete
		default:
			if waits == "" && !(a.Part == "" && a.Op == reconcile.OpHold) { // else it is retained
				waits = a.String()
			}
			continue
		}
		if waits == "" && d.r.Cleanup {
			waits = a.String()
		}
		w.Pos = d.pos[a.Part]
		children.Children = append(children.Children, w)
		about = append(about, reconcile.Write{ID: a.ID, Digest: d.digests[a.Part], Put: d.changedBy[a.ID], By: d.takenBy[a.ID]})
		size += object.PlainSize(w.Object)
	}
	d.sign(&children, &about)
	if len(children.Children) > 0 {
		out.Writes = []effect.Write{children}
	}
	if d.r.Cleanup && waits != "" {
		d.lookAgain(lookAtEnds)
	}
	out.Requeue = d.again
	return out, about, size, waits
}
