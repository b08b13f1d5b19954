package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/apply"
	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/kstatus"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// atRest is how long controllers are left alone: what somebody changes in a child right after it was
// written, and a status that was written just now, wait for seconds.
const atRest = time.Minute

// Broken says what the controllers of a process at rest have not kept to, a line each. For each parent of
// which nothing fails, and which its controller does not hold:
//
//   - each child that is wanted is there, with all fields that are wanted, unless it waits for another one;
//   - no other object is its child, but those that are retained;
//   - its condition Ready says so.
//
// No object is the child of a parent that is gone; and in a minute more none of them writes anything. The
// wanted children are those of the desired function, asked once more; what is there is what the API server
// holds, whatever the controller has seen of it. The clock is two minutes later afterwards. Kept are children
// that stay as they were made, whatever is wanted now.
func (w *World) Broken(ctx context.Context) (broken []string, kept []effect.Ref, err error) {
	if w.engine == nil || !w.controls() {
		return nil, nil, nil
	}
	if err := w.Advance(ctx, atRest); err != nil {
		return nil, nil, err
	}
	p := w.lookAtPromises(ctx)
	err = p.goesOn(ctx)
	return p.broken, p.kept, err
}

// controls says whether a hook is a controller.
func (w *World) controls() bool {
	return slices.ContainsFunc(w.AllHooks(), func(h *generation.Hook) bool { return h.Decides() })
}

func (w *World) lookAtPromises(ctx context.Context) *promises {
	p := &promises{w: w, failing: map[string]bool{}, uids: map[string]bool{}, looks: map[string]*parentLook{}}
	for _, f := range w.engine.Failures() {
		p.failing[cmp.Or(f.Hook, f.Module)+" "+f.Key] = true
	}
	p.scan()
	for _, of := range slices.Sorted(maps.Keys(w.families)) {
		p.parent(ctx, of, w.families[of])
	}
	for _, child := range p.children {
		p.child(child)
	}
	return p
}

// promises is one call of [World.Broken].
type promises struct {
	w        *World
	failing  map[string]bool // by hook and key, or by module
	uids     map[string]bool // of all objects
	children []madeChild
	looks    map[string]*parentLook // by hook and key
	broken   []string
	kept     []effect.Ref
}

func (p *promises) say(format string, a ...any) {
	p.broken = append(p.broken, fmt.Sprintf(format, a...))
}

// madeChild is an object that a controller has made.
type madeChild struct {
	obj  map[string]any
	hook *generation.Hook
}

// scan finds the children of all controllers that work, by what the API server says of who has written
// them.
func (p *promises) scan() {
	working := map[string]bool{}
	for id := range p.w.watches {
		working[engine.WatchHook(id)] = true
	}
	for _, k := range p.w.store.Kinds() {
		list, err := p.w.store.List(store.Target{GVR: k.GVR(), Spared: true}, store.ListOptions{})
		if err != nil {
			continue
		}
		for _, obj := range list.Items {
			uid := uidOf(obj)
			if p.uids[uid] { // in another version of its kind
				continue
			}
			p.uids[uid] = true
			if _, of := reconcile.ParentOf(obj); of == "" {
				continue
			}
			for _, h := range p.w.AllHooks() {
				if !h.Decides() || !working[h.ID] {
					continue
				}
				if made, signed := cluster.Written(p.w.client.Seal(), obj, effect.Manager(h.ID)); made && signed {
					p.children = append(p.children, madeChild{obj, h})
				}
			}
		}
	}
}

func uidOf(obj map[string]any) string { return effect.At[string](obj, "metadata", "uid") }

// parentLook is one more look at a parent.
type parentLook struct {
	name   string // for people
	hook   string
	object map[string]any
	uid    string
	result hook.Result
	// held says why nothing is done about its children, "" when all is done.
	held    string
	wanted  map[effect.Ref]bool
	actions map[effect.Ref]*reconcile.Action
	// whole: all children are there as they are wanted. Ready: they are ready, too, as far as their status
	// says; unsure: some parts say that otherwise.
	whole, ready, unsure bool
	// waits names a child that is not ready.
	waits string
}

// parent looks at a parent as its controller does, and changes nothing.
func (p *promises) parent(ctx context.Context, of string, a engine.RunHook) {
	w := p.w
	watched := a.Hook.Binding(a.Each).Watch
	live, err := w.Get(effect.Ref{APIVersion: watched.APIVersion, Kind: watched.Kind, Namespace: a.ObjectNamespace, Name: a.ObjectName})
	if meta, _ := live["metadata"].(map[string]any); err != nil || live == nil || meta["deletionTimestamp"] != nil {
		return
	}
	a.Now, a.Attempt, a.Failed = w.now, 1, ""
	done, result := w.quietly(ctx, a)
	if done.Gone || done.Incomplete {
		return
	}
	l := &parentLook{
		hook: a.Hook.ID, name: fmt.Sprintf("%s %s of controller %s", watched.Kind, a.Key, a.Hook.ID), object: live, uid: uidOf(live), result: result,
		wanted: map[effect.Ref]bool{}, actions: map[effect.Ref]*reconcile.Action{}, whole: true, ready: true,
	}
	l.unsure = result.Progressing != ""
	p.looks[of] = l
	switch {
	case p.failing[of] || p.failing[a.Hook.Module+" "] || result.Err != nil:
		l.held = "its controller fails"
	case result.Wanted == nil:
		l.held = "its controller does nothing about it now"
	}
	for i := range result.Actions {
		l.actions[result.Actions[i].ID.Ref.AnyVersion()] = &result.Actions[i]
	}
	if l.held == "" {
		for i := range result.Wanted {
			p.wanted(ctx, l, &result.Wanted[i])
		}
	}
	if a.Hook.WritesStatus {
		p.status(l)
	}
}

// wanted makes sure that a child is there as it is wanted.
func (p *promises) wanted(ctx context.Context, l *parentLook, want *hook.Wanted) {
	ref := effect.RefOf(want.Object)
	l.wanted[ref.AnyVersion()] = true
	live, _ := p.w.Get(ref)
	todo := l.actions[ref.AnyVersion()]
	reports := func(apiVersion, kind string) bool { return p.w.client.Reports(ctx, apiVersion, kind) }
	now := kstatus.Of(p.w.o.Generation.Unheard(live, reports))
	if live != nil && !now.Ready && l.waits == "" {
		l.waits = fmt.Sprintf("%s is not ready: %s", ref, now.Reason)
	}
	l.unsure = l.unsure || want.Judged
	l.ready = l.ready && todo == nil && live != nil && now.Ready
	_, of := reconcile.ParentOf(live)
	if todo != nil && !todo.Op.Acts() { // it says why; a child may be left as somebody has changed it
		l.whole = l.whole && todo.Op == reconcile.OpHold && of == l.uid
		return
	}
	if want.Update == reconcile.UpdateNever || want.AtCreation {
		p.kept = append(p.kept, ref)
	}
	before := len(p.broken)
	switch {
	case live == nil:
		p.say("%s: its part %q wants %s, which is not there", l.name, want.Part, ref)
	case of != l.uid:
		p.say("%s: its part %q wants %s, which is there and is not its child", l.name, want.Part, ref)
	case want.Update == reconcile.UpdateNever:
	default:
		if path, should, is, differ := lacks(want.Object, live); differ && !p.same(l, want.Object, live) {
			p.say("%s: its part %q wants %s with %s", l.name, want.Part, ref, otherwise(path, should, is))
		} else if todo != nil {
			p.say("%s: it rests, and this is left to be done: %s", l.name, todo)
		}
	}
	l.whole = l.whole && len(p.broken) == before
}

// same says whether the API server would leave a child as it is, though it keeps a field in another form than it is
// wanted in.
func (p *promises) same(l *parentLook, want, live map[string]any) bool {
	at, _, err := p.w.target(effect.RefOf(want), false)
	data, failed := json.Marshal(reconcile.Signed(want, live))
	if err != nil || failed != nil {
		return false
	}
	made, err := p.w.store.Patch(at, types.ApplyPatchType, data, store.WriteOptions{Manager: effect.Manager(l.hook), Force: true, DryRun: true})
	return err == nil && reflect.DeepEqual(made.Object, live)
}

// otherwise says how a field is not as it is wanted, and what that comes from, mostly.
func otherwise(path, should, is string) string {
	if is == "" {
		return fmt.Sprintf("%s: %s, and it has none: the API server drops fields that its kind does not have", path, should)
	}
	return fmt.Sprintf("%s: %s, and it has %s: the API server keeps it in another form, or somebody else writes it too; write it as kubectl get shows it, or leave it out", path, should, is)
}

// status makes sure that a parent says how it is.
func (p *promises) status(l *parentLook) {
	for _, w := range l.result.Effects.Writes {
		for _, c := range w.Children {
			if c.Kind != effect.WriteStatus || l.held != "" {
				continue
			}
			want := map[string]any{"status": c.Object["status"]}
			if path, should, is, differ := lacks(want, l.object); differ {
				p.say("%s: its controller writes %s", l.name, otherwise(path, should, is))
				return
			}
		}
	}
	status, _ := l.object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	var ready map[string]any
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == "Ready" {
			ready = c
		}
	}
	meta, _ := l.object["metadata"].(map[string]any)
	says := fmt.Sprintf("%s: its condition Ready is %s (%s)", l.name, text(ready["status"]), text(ready["message"]))
	left := slices.ContainsFunc(l.result.Actions, func(a reconcile.Action) bool { return a.Part != "" || a.Op.Acts() })
	switch {
	case ready == nil:
		p.say("%s: it has no condition Ready; does its CustomResourceDefinition keep status.conditions?", l.name)
	case ready["status"] == "True" && l.held != "":
		p.say("%s, and %s", says, l.held)
	case ready["status"] == "True" && !l.whole:
		p.say("%s, and not all of its children are there as they are wanted", says)
	case ready["status"] == "True" && l.waits != "" && !l.unsure:
		p.say("%s, and %s", says, l.waits)
	case l.held == "" && !object.Same(status["observedGeneration"], meta["generation"]):
		p.say("%s: its status.observedGeneration is %v, and its metadata.generation %v", l.name, status["observedGeneration"], meta["generation"])
	case ready["status"] != "True" && l.held == "" && l.whole && l.ready && !l.unsure && !left:
		p.say("%s, and all of its children are there, as they are wanted, and ready", says)
	}
}

// child makes sure that a child is wanted, or goes.
func (p *promises) child(made madeChild) {
	c := reconcile.ChildOf(made.obj)
	key, of := reconcile.ParentOf(made.obj)
	l := p.looks[made.hook.ID+" "+key]
	switch {
	case c.Foreign != "" || c.Retain || c.Deleting:
	case !p.uids[of]:
		p.say("%s is a child of %s by controller %s, and this parent is not there any more: nobody will delete it. Does somebody take finalizers off parents?", c.ID, key, made.hook.ID)
	case l == nil || l.held != "" || l.uid != of || l.wanted[c.Ref.AnyVersion()]:
	case l.actions[c.Ref.AnyVersion()] == nil:
		p.say("%s: %s is its child, no part wants it, and nothing is done about it", l.name, c.ID)
	case l.actions[c.Ref.AnyVersion()].Op.Acts():
		p.say("%s: it rests, and this is left to be done: %s", l.name, l.actions[c.Ref.AnyVersion()])
	}
}

// goesOn finds controllers that go on writing. Schedules, and workloads that move, may rightly have them
// write: then nobody knows.
func (p *promises) goesOn(ctx context.Context) error {
	w := p.w
	if w.moving != nil {
		if next := w.moving.Next(); !next.IsZero() && !next.After(w.now.Add(atRest)) {
			return nil
		}
	}
	runs := len(w.Runs)
	requests, _ := w.Requests()
	if err := w.Advance(ctx, atRest); err != nil {
		return err
	}
	times, writers := map[string]int{}, map[string][]string{}
	for i := range w.Runs[runs:] {
		r := &w.Runs[runs+i]
		h := w.o.Generation.Hook(r.Hook)
		if h == nil {
			continue
		}
		for _, b := range h.Bindings {
			if b.Schedule != nil {
				return nil
			}
		}
		for _, write := range r.Effects.Writes {
			for _, c := range write.Children {
				if p.failing[r.Hook+" "+r.Key] {
					continue
				}
				what, subresource := c.Ref.String(), ""
				if c.Kind == effect.WriteStatus {
					what, subresource = "its status", "status"
				}
				name := fmt.Sprintf("%s %s of controller %s: it does not come to rest: %s", h.Binding(h.ForEach).Watch.Kind, r.Key, r.Hook, what)
				times[name]++
				if live, _ := w.Get(c.Ref); live != nil {
					writers[name] = others(live, effect.Manager(r.Hook), subresource)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		who := ""
		if others := writers[name]; len(others) > 0 {
			who = ", which " + strings.Join(others, ", ") + " also writes"
		}
		p.say("%s is written %d times in %s%s", name, times[name], atRest, who)
	}
	now, last := w.Requests()
	if len(w.Runs) == runs && now > requests && len(w.engine.Failures()) == 0 {
		p.say("with nothing to do, %d requests are made in %s, the last one %s", now-requests, atRest, last)
	}
	return nil
}

// others are the field managers of an object, or of its status, that are not the controller's.
func others(live map[string]any, manager, subresource string) (out []string) {
	for entry := range apply.Entries(live) {
		if by := text(entry["manager"]); by != manager && by != "" && text(entry["subresource"]) == subresource {
			out = append(out, by)
		}
	}
	return out
}

// record takes the runs of a process; nil: nobody does.
func (w *World) record() func(*record.Trace) {
	if w.o.Record == nil {
		return nil
	}
	return func(t *record.Trace) {
		if !w.asking {
			w.o.Record(t)
		}
	}
}
