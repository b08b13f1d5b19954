package hook

import (
	"maps"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/reconcile"
)

const (
	// statusEvery is how long the status of a parent stays as it is at least.
	statusEvery = time.Second
	// maxCondition bounds the message of a condition, in bytes.
	maxCondition = 1024
)

// status has the status of the parent written beside its children, where it differs. Fields are what the
// author says of it, nil when nobody could be asked: then they stay as they are.
func (d *decision) status(out *effect.Effects, look reconcile.Look, fields map[string]any) {
	if !d.r.Hook.WritesStatus || look.Moves() && look.Failed == "" { // then another look follows
		return
	}
	if d.r.Gone || d.r.Cleanup && look.Deleting == "" && look.Failed == "" { // nobody would see it
		return
	}
	before, at := d.r.Family.StatusOf(d.object)
	status := map[string]any{}
	switch {
	case fields != nil:
		maps.Copy(status, fields)
	case d.r.Hook.Controller.Status != nil:
		maps.Copy(status, before)
	}
	status["conditions"] = d.conditions(look)
	metadata, _ := d.object["metadata"].(map[string]any)
	if generation := metadata["generation"]; generation != nil {
		status["observedGeneration"] = generation
	}
	want := d.ref.Object()
	want["status"] = status
	if d.r.Family.StatusSame(want, d.object) {
		return
	}
	// By a clock that is ahead of ours nobody would ever write it.
	if left := at.Add(statusEvery).Sub(d.r.Now); 0 < left && left <= statusEvery {
		if out.Requeue == 0 || left < out.Requeue {
			out.Requeue = left
		}
		return
	}
	if n := len(out.Writes); n == 0 || out.Writes[n-1].Kind != effect.WriteChildren {
		out.Writes = append(out.Writes, d.family())
	}
	children := &out.Writes[len(out.Writes)-1]
	children.Children = append(children.Children, effect.Write{
		Kind: effect.WriteStatus, Ref: d.ref, Object: want, Force: true, Unchanged: &effect.Unchanged{UID: d.parent.UID},
	})
}

// conditions are those of the parent. One that has its status for longer says since when.
func (d *decision) conditions(look reconcile.Look) []any {
	status, _ := d.object["status"].(map[string]any)
	before, _ := status["conditions"].([]any)
	var out []any
	for _, c := range reconcile.Conditions(look) {
		since := d.r.Now.UTC().Format(time.RFC3339)
		for _, b := range before {
			old, _ := b.(map[string]any)
			if at := effect.At[string](old, "lastTransitionTime"); at != "" && old["type"] == c.Type && old["status"] == c.Status {
				since = at
			}
		}
		out = append(out, map[string]any{
			"type": c.Type, "status": c.Status, "reason": c.Reason, "message": message.Fit(message.Line(c.Message), maxCondition), "lastTransitionTime": since,
		})
	}
	return out
}
