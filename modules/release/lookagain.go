package release

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/effect"
)

// A chart that looks things up is rendered again when the answers change, where the same answers give the same
// manifest. One that makes random values, too, waits for the next pass: each status that moves would give it other
// ones.

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
	t, looked := Target{Input: chart.Input{Namespace: r.t.Namespace, Lookup: r.t.Lookup}}, slices.SortedFunc(maps.Keys(answers), effect.Ref.Compare)
	r.m.rest(&r.m.followed, r.t.Ref(), &resting{digestOf(answers), func(ctx context.Context) (string, error) {
		l := &lookups{mapper: r.m.o.Mapper, client: r.m.dynamic, target: t, instance: r.m.instance()}
		for _, of := range looked {
			if _, err := l.find(ctx, of); err != nil && !apierrors.IsNotFound(err) {
				return "", err
			}
		}
		return digestOf(l.answers), nil
	}, looked})
}

// LookedUp are the kinds of what is followed.
func (m *Manager) LookedUp() []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, on := range m.followed.Range {
		for _, of := range on.(*resting).looked {
			kinds[schema.FromAPIVersionAndKind(of.APIVersion, of.Kind)] = true
		}
	}
	return slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
}
