package builtins

import (
	"slices"
	"strings"
)

// section is a part of the reference.
type section struct {
	title string
	specs []Spec
}

// grouped puts builtins into the groups of the reference, those of every day first. Within a group they keep the order
// of the table.
func grouped(table []Spec) []section {
	out := make([]section, len(groupNames()))
	for i, g := range groupNames() {
		out[i].title = g.title
		for _, word := range strings.Fields(g.names) {
			for _, s := range table {
				family, all := strings.CutSuffix(word, "*")
				if s.Name == word || all && strings.HasPrefix(s.Name, family) && !named(s.Name) {
					out[i].specs = append(out[i].specs, s)
				}
			}
		}
	}
	return out
}

// named says whether a group names a builtin itself, not by its family.
func named(name string) bool {
	return slices.ContainsFunc(groupNames(), func(g groupName) bool { return slices.Contains(strings.Fields(g.names), name) })
}

// groupName is the title of a group and its builtins; k8s.* are those of a family that no group names.
type groupName struct{ title, names string }

func groupNames() []groupName {
	return []groupName{
		{"Hooks and their triggers", "hook k8s.watch startup schedule before_helm after_helm before_delete after_delete before_all after_all retry"},
		{"Values and config", "values.* config.*"},
		{"Objects of the cluster", "k8s.*"},
		{"Logs, metrics and the run", "log.* print metrics.* ctx.state.* fail requeue"},
		{"Module and its kinds", "module grant waiting disabled module.* crd field"},
		{"Data and text", "struct dict copy equal json.* yaml.* jq re.* names.* semver.*"},
		{"Times and durations", "time.*"},
		{"HTTP", "http.* secret_ref reply"},
		{"Reviews and conversions", "k8s.validate k8s.mutate deny warn k8s.convert"},
		{"Controllers", "controller owns part set_fields rolling stalled progressing generate.*"},
		{"Containers and tokens", "k8s.exec k8s.logs k8s.ask k8s.token"},
		{"Secrets and certificates", "k8s.secret reveal tls.* jwt.* bcrypt.* random.*"},
		{"Encodings and the environment", "base64.* hash.* gzip.* env"},
		{"Tests", "t.* expect.* assert.*"},
		{"Numbers", "math.*"},
	}
}
