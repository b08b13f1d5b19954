package release

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	plain "github.com/starling-operator/starling/runtime/object"
)

// tries are revisions that have failed since the last one that is deployed, the first one first.
type tries struct {
	failed []*helm.Release
	// cut: Helm has deleted the first ones.
	cut bool
}

func triesOf(list []*helm.Release) (out tries) {
	deployed := 0
	for _, rel := range list {
		if rel.Info.Status == helm.StatusDeployed {
			deployed = max(deployed, rel.Version)
		}
	}
	for _, rel := range list {
		if rel.Info.Status == helm.StatusFailed && rel.Version > deployed {
			out.failed = append(out.failed, rel)
		}
	}
	slices.SortFunc(out.failed, func(a, b *helm.Release) int { return cmp.Compare(a.Version, b.Version) })
	out.cut = len(out.failed) > 0 && out.failed[0].Version > deployed+1
	return out
}

// of is the object as revisions had it that may have written it, whose last write was at a time: one that failed
// before that has changed nothing.
func (t tries) of(s stored, wrote time.Time) (out []map[string]any) {
	for _, f := range t.failed {
		if !t.cut && wrote.Before(f.Info.LastDeployed.Time.Truncate(time.Second)) { // the API server notes seconds
			continue
		}
		for _, doc := range plain.Documents(f.Manifest) {
			objects, err := chart.Decode(doc + "\n")
			if err != nil {
				continue // nothing of it was written
			}
			for _, u := range objects {
				if u.GroupVersionKind().GroupKind() == s.mapping.GroupVersionKind.GroupKind() && u.GetName() == s.key.Name &&
					cmp.Or(u.GetNamespace(), s.key.Namespace) == s.key.Namespace {
					out = append(out, u.Object)
				}
			}
		}
	}
	return out
}

// tries reads the revisions that have failed since the last one that is deployed, when somebody asks first.
func (l *life) tries(p revisionPlan) func() (tries, error) {
	return sync.OnceValues(func() (tries, error) {
		if p.before == nil {
			return tries{}, nil
		}
		list := []*helm.Release{p.before}
		if p.again {
			before, info := *p.rel, *p.rel.Info
			info.Status, before.Info = helm.StatusFailed, &info
			list = append(list, &before)
		}
		all, err := l.m.revisions(l.ctx, l.ref)
		if err != nil {
			return tries{}, err
		}
		for _, r := range all {
			if r.Status == helm.StatusFailed && r.Number != p.before.Version {
				rel, _, err := l.m.read(l.ctx, l.ref, r.Number)
				if err != nil {
					return tries{}, err
				}
				list = append(list, rel)
			}
		}
		return triesOf(list), nil
	})
}
