package hook

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
)

// maxFirst is how often in a row the fields before a call are written: the watch may be behind, and somebody may come
// between.
const maxFirst = 6

// soon is when a parent is observed again after a step, if no event of it comes sooner; each write of the same fields
// doubles it.
const soon = 100 * time.Millisecond

// observe has the observe function of a controller called about a parent, and its act function, which may ask for one
// call. All that they change in the cluster are fields of the parent's status: those before a call, or those after it.
func observe(ctx context.Context, r Request, s *Seen) Result {
	d, err := newDecision(&r, s)
	if err != nil {
		return Result{Err: err}
	}
	deleting := effect.At[any](d.object, "metadata", "deletionTimestamp") != nil
	if d.paused() && !deleting {
		return Result{Waits: "it is paused by its annotation " + reconcile.PausedAnnotation, Observed: r.Observed}
	}
	var waited waiting
	run, act, lookups := r.run(&waited), r.Hook.Controller.Act, r.lookups(s)
	if r.Gone || deleting {
		act = nil
	}
	q := builtins.Question{Key: r.Key, Parent: r.Object, Children: d.children(), Lookups: lookups, Observed: r.Observed}
	status := func(fresh bool) (map[string]any, error) {
		obj, err := d.object, error(nil)
		if fresh {
			if obj, err = run.Reader.Get(ctx, d.ref); effect.At[string](obj, "metadata", "uid") != d.parent.UID {
				obj = nil
			}
		}
		return effect.At[map[string]any](obj, "status"), err
	}
	var out builtins.Acted
	_, usage, err := r.Host.Call(ctx, q.Observe(r.Hook.Fn, act, status, r.Plans, &out), nil, script.CallOptions{
		Name: r.Hook.ID, Context: &builtins.Context{Phase: spec.InObserve, Run: run, Log: r.Log},
		Limits: script.Limits{Wall: r.Hook.Timeout}, Subject: r.Key, Of: r.Hook.Fn,
	})
	usage.Waited += time.Duration(waited.total.Load())
	result := Result{Usage: usage, Err: err, Ctx: q.Ctx, Waits: out.Waits, Called: out.Called}
	result.Lookups, result.Due = lookups.Asked()
	result.Effects.Requeue = r.Hook.Controller.Every
	s.use(func(m *object.Mask) {
		if secrets := m.Marks(out.Observed); len(secrets) > 0 { // people see it, and so do functions that know no Secret
			out.Observed = nil
			result.Err = fmt.Errorf("observe returned the content of a Secret at %s; leave it out", object.KeysText(secrets[0]))
		}
	})
	if out.Observed == nil && result.Err != nil {
		return result
	}
	seen := &builtins.Observed{UID: d.parent.UID, Value: out.Observed, At: r.Now}
	result.Observed = seen
	fields := out.Then
	if out.First != nil {
		seen.First, seen.Tries, fields = out.First, 1, out.First
		if before := r.Observed; before != nil && object.Same(before.First, out.First) {
			seen.Tries = before.Tries + 1
		}
		if seen.Tries > maxFirst {
			seen.Tries, fields = 0, nil
			result.Err = fmt.Errorf("%s: the status does not keep the fields of first= for %s; declare them in the schema", out.Pos, out.What)
		}
	}
	if len(fields) > 0 {
		result.Effects.Requeue = min(soon<<seen.Tries, r.Hook.Controller.Every)
		w := effect.Write{Kind: effect.WritePatch, Ref: d.ref, Pos: out.Pos, Patch: &effect.Patch{
			Type: effect.PatchMerge, Subresource: "status",
			Body: map[string]any{"metadata": map[string]any{"uid": d.parent.UID}, "status": fields},
		}}
		if out.First != nil { // what was decided is about the parent as it was
			w.Unchanged = &effect.Unchanged{ResourceVersion: effect.At[string](d.object, "metadata", "resourceVersion"), UID: d.parent.UID}
		}
		result.Effects.Writes = []effect.Write{w}
	}
	return result
}
