package rbac

import (
	"cmp"
	"slices"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/sim"
)

// released notes what the releases in the cluster need to go, or to drop what their charts hold no more. Of a module
// that has left the tree nothing else tells.
func (b *builder) released(w *sim.World) error {
	if err := w.Begin(b.ctx); err != nil {
		return err
	}
	defer w.Stop()
	refs, err := w.Installed(b.ctx)
	if err != nil {
		return err
	}
	defer w.ReleasesAhead(refs)()
	for _, ref := range refs {
		if len(b.o.Modules) > 0 && !slices.Contains(b.o.Modules, ref.Module) {
			continue
		}
		r, err := w.ReleaseOf(b.ctx, ref)
		if err != nil {
			return err
		}
		if r == nil {
			continue
		}
		why := []string{"release of " + ref.Module + ", which is in the cluster"}
		b.leaves = append(b.leaves, placedRule{ref.Namespace, Rule{Resource: "secrets", Verbs: helmStorage[:], Why: why}})
		held := &chart{}
		for _, doc := range releaseutil.SplitManifests(r.Manifest) {
			if err := held.parse(doc, kindName{}, b.kinds); err != nil {
				return err
			}
		}
		for _, o := range held.objects {
			k, served := w.Store().KindOf(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
			if !served || o.Metadata.Annotations["helm.sh/resource-policy"] == "keep" {
				continue
			}
			namespace := ""
			if k.Namespaced {
				namespace = cmp.Or(o.Metadata.Namespace, ref.Namespace)
			}
			b.leaves = append(b.leaves, placedRule{namespace, Rule{Group: k.Group, Resource: k.Plural, Verbs: []string{"get", "delete"}, Why: why}})
		}
	}
	return nil
}

// placedRule is a rule in a namespace, "" for the whole cluster.
type placedRule struct {
	namespace string
	Rule
}

// leave needs what was noted of releases and nothing else needs.
func (b *builder) leave() {
	for _, r := range b.leaves {
		r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool {
			return slices.ContainsFunc([]*rules{b.tree[""], b.tree[r.namespace]}, func(all *rules) bool {
				return all != nil && slices.ContainsFunc(all.list, func(other Rule) bool { return other.covers(r.Rule, verb) })
			})
		})
		if len(r.Verbs) > 0 {
			b.add(r.namespace, r.Rule)
		}
	}
}
