package testrunner

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/starlark"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/reconcile"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
)

// A parent that a test takes from state A over B to C must end as one that goes from A to C: a controller
// goes by what is, and by nothing that was. So a test with such parents is run once more, in which nobody
// sees the states between: each of these changes is made together with the next one of its parent.

// parentLife is one object from its creation to its deletion.
type parentLife struct {
	ref effect.Ref
	n   int // how often it was deleted before
}

// changes counts those that a test makes to parents of controllers.
type changes map[parentLife]int

// parentsOf are the kinds of parents.
func parentsOf(g *generation.Generation) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, h := range g.Hooks() {
		if !h.Decides() {
			continue
		}
		watched := h.Binding(h.ForEach).Watch
		out[groupKind(watched.APIVersion, watched.Kind)] = true
	}
	return out
}

func groupKind(apiVersion, kind string) schema.GroupKind {
	return schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
}

// life is the one that an object is in; false: it is no parent.
func (w *world) life(ref effect.Ref) (parentLife, bool) {
	of := groupKind(ref.APIVersion, ref.Kind)
	if !w.parents[of] {
		return parentLife{}, false
	}
	life := parentLife{ref: effect.Ref{APIVersion: of.Group, Kind: of.Kind, Namespace: cmp.Or(ref.Namespace, "default"), Name: ref.Name}}
	for w.changes[life] < 0 { // it was deleted
		life.n++
	}
	return life, true
}

// change makes a change of an object, or leaves it until the next one of the same parent.
func (w *world) change(ref effect.Ref, do func() error) error {
	life, is := w.life(ref)
	if !is {
		return do()
	}
	if w.changes == nil {
		w.changes, w.late = changes{}, map[parentLife][]func() error{}
	}
	w.changes[life]++
	w.late[life] = append(w.late[life], do)
	if n := w.changes[life]; 1 < n && n < w.skip[life] {
		return nil
	}
	return w.makeLate(life)
}

func (w *world) makeLate(life parentLife) error {
	late := w.late[life]
	delete(w.late, life)
	for _, do := range late {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// catchUp makes the changes that were left until now.
func (w *world) catchUp(ctx context.Context) error {
	if len(w.late) == 0 {
		return nil
	}
	byName := func(a, b parentLife) int { return cmp.Or(strings.Compare(a.ref.String(), b.ref.String()), a.n-b.n) }
	for _, life := range slices.SortedFunc(maps.Keys(w.late), byName) {
		if err := w.makeLate(life); err != nil {
			return err
		}
	}
	return w.Settle(ctx)
}

func (w *world) Apply(ctx context.Context, objects []map[string]any) error {
	for _, obj := range objects {
		if err := w.change(effect.RefOf(obj), func() error { return w.w.Apply(obj) }); err != nil {
			return err
		}
	}
	return w.Settle(ctx)
}

func (w *world) Patch(ctx context.Context, ref effect.Ref, merge map[string]any) error {
	if err := w.change(ref, func() error { return w.w.Patch(ref, merge) }); err != nil {
		return err
	}
	return w.Settle(ctx)
}

func (w *world) Delete(ctx context.Context, ref effect.Ref) error {
	if life, is := w.life(ref); is {
		if err := w.makeLate(life); err != nil {
			return err
		}
		if w.changes[life] > 0 {
			w.changes[life] *= -1 // the next change begins another life
		}
	}
	if err := w.w.Delete(ref); err != nil {
		return err
	}
	return w.Settle(ctx)
}

// skipped runs a test without the states of parents between their first and their last one, if it has any.
// A test that cannot go on without them says nothing.
func skipped(ctx context.Context, o Options, host *script.Host, file, name string, fn *starlark.Function, want ending) error {
	skip, some := changes{}, false
	for life, n := range want.changes {
		if skip[life] = max(n, -n); skip[life] > 2 {
			some = true
		}
	}
	if !some {
		return nil
	}
	got, err := end(ctx, o, host, file, name, fn, way{skip: skip})
	if err != nil {
		return nil
	}
	parents := parentsOf(o.Generation)
	lines := differ(ofControllers(got, parents, o.Generation), ofControllers(want, parents, o.Generation))
	if len(lines) == 0 {
		return nil
	}
	return &ExploreError{Skipped: true, Differences: lines, Log: got.log}
}

// ofControllers is what controllers have to do with an ending: parents and their children. A child that
// is kept as it was, or beyond its time, tells of the states between, as it should.
func ofControllers(e ending, parents map[schema.GroupKind]bool, g *generation.Generation) ending {
	out := ending{failures: map[string]string{}}
	for _, held := range e.state {
		if parents[groupKind(text(held.Fields, "apiVersion"), held.Kind)] || child(held) && !slices.ContainsFunc(e.kept, func(ref effect.Ref) bool { return ref.String() == held.Name }) {
			out.state = append(out.state, held)
		}
	}
	for of, said := range e.failures {
		_, of, _ := strings.Cut(of, " ")
		id, _, _ := strings.Cut(of, " ")
		if h := g.Hook(id); h != nil && h.Decides() {
			out.failures[of] = said
		}
	}
	return out
}

func child(held sim.Held) bool {
	_, of := reconcile.ParentOf(held.Fields)
	return of != "" && !reconcile.ChildOf(held.Fields).Retain
}
