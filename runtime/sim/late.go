package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/reconcile"
)

// Late says what was wrong on the way, in the order of the seed: failed hooks, or objects of hooks, that waited for their
// next try longer than they may, for an event had come since the last one began; children that waited for others which
// they do not name; and what [World.Broken] would have said before the test went on, after time for all to rest.
func (w *World) Late() []string {
	if w.chaos == nil {
		return nil
	}
	return w.chaos.late
}

// heed notes what waits longer than it may, after actions of the engine. First tries, and tries that somebody
// has asked for, say nothing: the wait after them is the least one.
func (w *World) heed(actions []engine.Action) {
	if w.chaos == nil {
		return
	}
	for _, a := range actions {
		if a, is := a.(engine.RunHook); is && a.Attempt > 1 {
			w.chaos.tries[lane.ID{Group: a.Hook.ID, Key: a.Key}] = a
		}
	}
	if len(w.chaos.tries) == 0 { // most orders: the lines cost more than the input
		return
	}
	for _, line := range w.engine.Lines() {
		for _, item := range line.Waiting {
			try := w.chaos.tries[item.ID]
			if try.Hook == nil || item.Failures != try.Attempt || item.Events <= len(try.Events) {
				continue
			}
			if due := try.Now.Add(try.Hook.Retry.Min); item.NotBefore.After(due) && item.NotBefore.After(w.now) {
				w.chaos.missed("hook %s has failed, and is not tried again for %s, though something has come since its try began"+bug, named(item.ID), item.NotBefore.Sub(w.now))
			}
		}
	}
}

const bug = "; this is a bug of starling, please report it"

// missed notes what is not as it should be on the way to the end.
func (c *chaos) missed(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); !slices.Contains(c.late, text) {
		c.note("%s", text)
		c.late = append(c.late, text)
	}
}

func named(id lane.ID) string { return strings.TrimSpace(id.Group + " " + id.Key) }

// noteChildren takes in which children of a parent could not be written: known are those of earlier runs, for which the
// engine waits. Where something else has failed, all about the parent waits for that.
func (c *chaos) noteChildren(known []reconcile.Failure, r *Run, done engine.Committed) {
	id := lane.ID{Group: r.Hook, Key: r.Key}
	refused, apart := slices.Clone(known), done.Err == nil
	for i, fate := range done.Children {
		if i >= len(r.Writes) { // the status of the parent
			apart = apart && fate.Err == nil
			break
		}
		about := r.Writes[i]
		if fate.Written || fate.Err != nil {
			refused = slices.DeleteFunc(refused, func(f reconcile.Failure) bool { return f.ID == about.ID })
		}
		if fate.Err != nil {
			apart = true
			refused = append(refused, reconcile.Failure{ID: about.ID, Digest: about.Digest, Reason: fate.Err.Error(), Tries: 1})
		}
	}
	if c.refused[id] = refused; !apart || r.Err != nil || len(refused) == 0 {
		delete(c.refused, id)
	}
}

// heedChildren notes which children could be made now and are not, while others of their parent cannot be written. It
// asks the controllers once more, when nothing happens any more before a time comes.
func (w *World) heedChildren(ctx context.Context) {
	if len(w.chaos.refused) == 0 {
		return
	}
	delayed := map[lane.ID]bool{}
	for _, line := range w.engine.Lines() {
		for _, item := range line.Waiting { // a run that has failed waits for what is refused
			delayed[item.ID] = item.Failures == 0 || !item.NotBefore.After(w.now)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(w.chaos.refused), func(a, b lane.ID) int { return strings.Compare(named(a), named(b)) }) {
		refused := w.chaos.refused[id]
		a, is := w.families[named(id)]
		if !is || delayed[id] || w.behind(id.Group) {
			continue
		}
		a.Now, a.Attempt, a.Failed, a.Past.Failures = w.now, 1, "", refused
		done, result := w.quietly(ctx, a)
		if done.Gone || done.Incomplete || done.Err != nil {
			continue
		}
		for _, action := range result.Actions {
			if action.Op == reconcile.OpCreate {
				w.chaos.missed("%s: %s is not made, though it waits for nothing: %s holds it up"+bug, named(id), action.ID, refused[0].ID)
			}
		}
	}
}

// heedPromises notes what controllers at rest do not keep to in the middle of a test, which may mend it later.
func (w *World) heedPromises(ctx context.Context) {
	if w.chaos == nil || w.engine == nil || !w.controls() {
		return
	}
	for _, text := range w.lookAtPromises(ctx).broken {
		w.chaos.missed("%s", text)
	}
}

// behind says that a watch of a hook could not read what has changed.
func (w *World) behind(hook string) bool {
	for id, f := range w.watches {
		if engine.WatchHook(id) == hook && (!f.synced || f.failure != "") {
			return true
		}
	}
	return false
}
