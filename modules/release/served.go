package release

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// CapabilitiesOf is what charts see of an API server as .Capabilities.
func CapabilitiesOf(d discovery.DiscoveryInterface) (*chartutil.Capabilities, error) {
	caps, _, err := served(d)
	return caps, err
}

// served is CapabilitiesOf, with the group-versions that the API server does not tell of, as while a server behind an
// APIService is away, and why.
func served(d discovery.DiscoveryInterface) (caps *chartutil.Capabilities, failed map[string]error, err error) {
	version, err := d.ServerVersion()
	if err != nil {
		return nil, nil, fmt.Errorf("the version of the API server: %w", err)
	}
	noted := &noting{DiscoveryInterface: d}
	kinds, err := action.GetVersionSet(noted)
	if err != nil {
		return nil, nil, fmt.Errorf("what the API server serves: %w", err)
	}
	slices.Sort(kinds)
	return &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: kinds,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}, noted.failed, nil
}

// noting notes what Helm passes over.
type noting struct {
	discovery.DiscoveryInterface
	failed map[string]error
}

// ServerGroupsAndResources implements [discovery.ServerResourcesInterface].
func (n *noting) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := n.DiscoveryInterface.ServerGroupsAndResources()
	if failed, some := discovery.GroupDiscoveryFailedErrorGroups(err); some {
		n.failed = map[string]error{}
		for of, why := range failed {
			n.failed[of.String()] = why
		}
	}
	return groups, lists, err
}

// NewCapabilities are those of an API server of a version ("v1.37.1") that serves nothing yet.
func NewCapabilities(version string) (*chartutil.Capabilities, error) {
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("%q is no version of Kubernetes", version)
	}
	return &chartutil.Capabilities{KubeVersion: *parsed, HelmVersion: chartutil.DefaultCapabilities.HelmVersion}, nil
}

// WithKinds are capabilities that have these kinds, too.
func WithKinds(caps *chartutil.Capabilities, kinds ...schema.GroupVersionKind) *chartutil.Capabilities {
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

// AsksCapabilities says whether a chart may render to something else in another cluster: a file mentions
// .Capabilities, or is packed.
func AsksCapabilities(files []File) bool {
	return slices.ContainsFunc(files, func(f File) bool {
		return bytes.Contains(f.Data, capabilitiesWord) || strings.HasSuffix(f.Path, ".tgz")
	})
}
