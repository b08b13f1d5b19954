package release

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// servedInstead says, where Helm's error names a kind of Kubernetes itself that the cluster does not serve, of which
// API version it does: nobody can bring a definition of such a kind.
func (m *Manager) servedInstead(text string) string {
	return noKind.ReplaceAllStringFunc(text, func(all string) string {
		found := noKind.FindStringSubmatch(all)
		name, kind, apiVersion := found[1], found[2], found[3]
		caps, err := m.capabilities()
		if err != nil {
			return all
		}
		if instead := versionOf(caps.APIVersions, apiVersion, kind); instead != "" {
			return fmt.Sprintf("%s %q: the cluster does not serve kind %[1]s of %[3]s (write apiVersion: %[4]s)", kind, name, apiVersion, instead)
		}
		return all
	})
}

// versionOf is the API version of which a kind is served, as "apps/v1/Deployment": of the same group, or, of the groups
// of Kubernetes itself, of another one. It is "" for kinds that are not.
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
