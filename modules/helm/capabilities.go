package helm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Capabilities is what charts see of an API server as .Capabilities.
type Capabilities = chartutil.Capabilities

// CapabilitiesOf reads the capabilities of an API server. Failed are the group-versions that it does not tell of, as
// while a server behind an APIService is away, and why: they count as before, where that is not nil.
func CapabilitiesOf(d discovery.DiscoveryInterface, before *Capabilities) (caps *Capabilities, failed map[string]error, err error) {
	version, err := d.ServerVersion()
	if err != nil {
		return nil, nil, fmt.Errorf("the version of the API server: %w", err)
	}
	groups, lists, err := d.ServerGroupsAndResources()
	if away, some := discovery.GroupDiscoveryFailedErrorGroups(err); some {
		failed = map[string]error{}
		for of, why := range away {
			failed[of.String()] = why
		}
	} else if err != nil {
		return nil, nil, fmt.Errorf("what the API server serves: %w", err)
	}
	served := map[string]bool{}
	for _, g := range groups {
		for _, gv := range g.Versions {
			served[gv.GroupVersion] = true
		}
	}
	for _, l := range lists {
		for _, r := range l.APIResources {
			served[path.Join(l.GroupVersion, r.Kind)] = true
		}
	}
	for of := range failed {
		for i := 0; before != nil && i < len(before.APIVersions); i++ {
			if name := before.APIVersions[i]; strings.HasPrefix(name+"/", of+"/") {
				served[name] = true
			}
		}
	}
	caps = &Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: slices.Sorted(maps.Keys(served)),
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	if len(groups) == 0 && len(lists) == 0 {
		caps.APIVersions = slices.Sorted(slices.Values(chartutil.DefaultVersionSet))
	}
	return caps, failed, nil
}

// NewCapabilities are those of an API server of a version ("v1.37.1") that serves nothing yet.
func NewCapabilities(version string) (*Capabilities, error) {
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("%q is no version of Kubernetes", version)
	}
	return &Capabilities{KubeVersion: *parsed, HelmVersion: chartutil.DefaultCapabilities.HelmVersion}, nil
}

// WithKinds are capabilities that have these kinds, too.
func WithKinds(caps *Capabilities, kinds ...schema.GroupVersionKind) *Capabilities {
	out := caps.Copy()
	out.APIVersions = slices.Clone(caps.APIVersions)
	for _, k := range kinds {
		version := k.GroupVersion().String()
		out.APIVersions = append(out.APIVersions, version, path.Join(version, k.Kind))
	}
	slices.Sort(out.APIVersions)
	out.APIVersions = slices.Compact(out.APIVersions)
	return out
}
