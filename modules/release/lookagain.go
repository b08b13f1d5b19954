package release

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/effect"
)

// A chart that looks things up is rendered again when the answers change, where the same answers give the same
// manifest. One that makes random values, too, waits for the next pass: each status that moves would give it other
// ones.

// followed is what the chart of a release has looked up.
type followed struct {
	// target says what it may look up.
	target  Target
	answers map[effect.Ref]found
}

// mostFollowed is how many objects a lookup may have found that is made again.
const mostFollowed = 100

// follow notes the lookups of a render, which [Manager.Follow] makes again. same: it gave the expected manifest.
func (r *reconcile) follow(of rendering, same bool) {
	answers := maps.Clone(of.answers)
	maps.DeleteFunc(answers, func(_ effect.Ref, f found) bool { return f.objects > mostFollowed })
	if !same || len(answers) == 0 {
		r.m.followed.Delete(r.t.Ref())
		return
	}
	f := &followed{Target{Namespace: r.t.Namespace, Lookup: r.t.Lookup}, answers}
	if _, before := r.m.followed.Swap(r.t.Ref(), f); !before {
		r.m.lookSoon()
	}
}

// LookedUp are the kinds of what is followed.
func (m *Manager) LookedUp() []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, f := range m.followed.Range {
		for of := range f.(*followed).answers {
			kinds[schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}

// RecheckLookups names the modules whose charts get other answers from their lookups than their releases rest on, each
// change once. A request that fails decides nothing.
func (m *Manager) RecheckLookups(ctx context.Context) (modules []string) {
	all := map[Ref]*followed{}
	for ref, f := range m.followed.Range {
		all[ref.(Ref)] = f.(*followed)
	}
	for _, ref := range slices.SortedFunc(maps.Keys(all), func(a, b Ref) int { return strings.Compare(recordKey(a), recordKey(b)) }) {
		f := all[ref]
		if now, known := m.lookUpAgain(ctx, f); known && !maps.Equal(now, f.answers) && m.followed.CompareAndSwap(ref, f, &followed{f.target, now}) {
			modules = append(modules, ref.Module)
		}
	}
	return modules
}

func (m *Manager) lookUpAgain(ctx context.Context, f *followed) (now map[effect.Ref]found, known bool) {
	l := &lookups{mapper: m.o.Mapper, client: m.dynamic, target: f.target, instance: m.instance()}
	for _, of := range slices.SortedFunc(maps.Keys(f.answers), effect.Ref.Compare) {
		if _, err := l.find(ctx, of); err != nil && !apierrors.IsNotFound(err) {
			return nil, false
		}
	}
	return l.answers, true
}
