package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/chart"
)

// kindMissing says that a release holds an object of a kind that the cluster does not serve.
type kindMissing struct {
	chart.Object
	m *Manager
}

// Error says what to do. Nobody can bring a definition of a kind of Kubernetes itself.
func (e *kindMissing) Error() string {
	text := fmt.Sprintf("%s %q: the cluster does not serve kind %[1]s of %[3]s", e.Kind, e.Name, e.APIVersion)
	if caps, err := e.m.capabilities(); err == nil {
		if instead := versionOf(caps.APIVersions, e.APIVersion, e.Kind); instead != "" {
			return text + " (write apiVersion: " + instead + ")"
		}
	}
	return text + "; its CustomResourceDefinition belongs into crds/ of a module that comes before"
}

// versionOf is the API version of which a kind is served, as "apps/v1/Deployment": of the same group, or, of the
// groups of Kubernetes itself, of another one. It is "" for kinds that are not.
func versionOf(served []string, apiVersion, kind string) string {
	group := func(version string) string {
		group, _, named := strings.Cut(version, "/")
		if !named {
			return ""
		}
		return group
	}
	of := group(apiVersion)
	native := func(group string) bool { return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") }
	var all []string
	for _, entry := range served {
		version, is := strings.CutSuffix(entry, "/"+kind)
		if is && (group(version) == of || native(of) && native(group(version))) {
			all = append(all, version)
		}
	}
	far := func(version string) (n int) {
		if group(version) != of {
			n += 2
		}
		if strings.Contains(version, "alpha") || strings.Contains(version, "beta") {
			n++
		}
		return n
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(far(a), far(b)), cmp.Compare(b, a)) })
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
