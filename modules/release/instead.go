package release

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

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

// versionOf is the API version in which a kind is served; served lists all, as "apps/v1/Deployment", in the order of
// names. It is of the same group, or, of the groups of Kubernetes itself, of another one; a stable one, and a later one,
// before others. It is "" for kinds that are not served.
func versionOf(served []string, apiVersion, kind string) (nearest string) {
	native := func(group string) bool { return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") }
	of, least := schema.FromAPIVersionAndKind(apiVersion, kind).Group, 3
	for _, entry := range served {
		version, is := strings.CutSuffix(entry, "/"+kind)
		group, far := schema.FromAPIVersionAndKind(version, kind).Group, 0
		if !is || group != of && !(native(of) && native(group)) {
			continue
		}
		if group != of {
			far += 2
		}
		if strings.Contains(version, "alpha") || strings.Contains(version, "beta") {
			far++
		}
		if far <= least {
			nearest, least = version, far
		}
	}
	return nearest
}
