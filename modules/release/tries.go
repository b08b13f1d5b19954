package release

import (
	"cmp"
	"slices"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/cli-runtime/pkg/resource"
)

// tries are revisions that have failed since the last one that is deployed, the first one first.
type tries struct {
	failed []try
	// cut: Helm has deleted the first ones.
	cut bool
}

type try struct {
	number   int
	begun    time.Time
	manifest string
}

func triesOf(list []*helmrelease.Release) (out tries) {
	deployed := 0
	for _, rel := range list {
		if rel.Info.Status == helmrelease.StatusDeployed {
			deployed = max(deployed, rel.Version)
		}
	}
	for _, rel := range list {
		if rel.Info.Status == helmrelease.StatusFailed && rel.Version > deployed {
			out.failed = append(out.failed, try{rel.Version, rel.Info.LastDeployed.Time, rel.Manifest})
		}
	}
	slices.SortFunc(out.failed, func(a, b try) int { return cmp.Compare(a.number, b.number) })
	out.cut = len(out.failed) > 0 && out.failed[0].number > deployed+1
	return out
}

// of is the object as those revisions had it that may have written it, whose last write was at a time: one that failed
// before that has changed nothing.
func (t tries) of(info *resource.Info, wrote time.Time) (out []map[string]any) {
	for _, f := range t.failed {
		if !t.cut && wrote.Before(f.begun.Truncate(time.Second)) { // the API server notes seconds
			continue
		}
		for _, doc := range releaseutil.SplitManifests(f.manifest) {
			objects, err := decodeDocument(doc + "\n")
			if err != nil {
				continue // Helm would have written nothing of it
			}
			for _, u := range objects {
				if u.GroupVersionKind().GroupKind() == info.Mapping.GroupVersionKind.GroupKind() && u.GetName() == info.Name &&
					cmp.Or(u.GetNamespace(), info.Namespace) == info.Namespace {
					out = append(out, u.Object)
				}
			}
		}
	}
	return out
}
