package rbac

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/helm"
	texts "github.com/starling-operator/starling/runtime/object"
)

// released needs what the releases in the cluster take to go, or to drop what their charts hold no more. Of a module
// that has left the tree nothing else tells.
func (b *builder) released() error {
	w, err := b.world()
	if err == nil {
		err = w.Begin(b.ctx)
	}
	if err != nil {
		return err
	}
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
		b.lacks(ref.Namespace, Rule{Resource: "secrets", Verbs: helmStorage[:], Why: why})
		held := &charted{}
		for _, doc := range texts.Documents(r.Manifest) {
			if err := held.parse(doc, b.kinds); err != nil {
				return err
			}
		}
		for _, o := range held.objects {
			k, served := w.Store().KindOf(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind))
			if !served || helm.Keeps(o.Metadata.Annotations) {
				continue
			}
			namespace := ""
			if k.Namespaced {
				namespace = cmp.Or(o.Metadata.Namespace, ref.Namespace)
			}
			b.lacks(namespace, Rule{Group: k.Group, Resource: k.Plural, Verbs: []string{"get", "delete"}, Why: why})
		}
	}
	return nil
}

// lacks needs verbs that nothing else needs.
func (b *builder) lacks(namespace string, r Rule) {
	r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool {
		return slices.ContainsFunc([]*rules{b.tree[""], b.tree[namespace]}, func(all *rules) bool {
			return all != nil && slices.ContainsFunc(all.list, func(other Rule) bool { return other.covers(r, verb) })
		})
	})
	if len(r.Verbs) > 0 {
		b.add(namespace, r)
	}
}
