package generation

import (
	"maps"
	"strings"
	"testing"
)

// A hook that changes objects as they are written, converts a definition or holds up deletions needs a line in
// module.star, and the error holds it.
func TestPowersAreShownInTheModule(t *testing.T) {
	const f = "def f(ctx):\n    pass\n\n"
	crdOf := func(group, kind, plural string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + plural + "." + group + "}\n" +
			"spec: {group: \"" + group + "\", names: {kind: " + kind + ", plural: " + plural + "}, versions: [{name: v1}]}\n"
	}
	crd := crdOf("example.org", "Lamp", "lamps")
	up := `hook(name = "up", on = [k8s.convert("lamps.example.org", {("v1", "v2"): f, ("v2", "v1"): f})])`
	each := func(apiVersion, kind string) string {
		return `hook(f, on = [k8s.watch("` + apiVersion + `", "` + kind + `", name = "all")], for_each = "all", cleanup = f)`
	}
	for name, tt := range map[string]struct {
		hook, grants, lacks string
		own                 bool
		more                map[string]string
	}{
		"mutate":                                 {hook: `hook(f, on = [k8s.mutate("v1", "Secret", failure_policy = "ignore")])`, lacks: `grant("v1", "Secret", verbs = ["mutate"])`},
		"mutate, a star":                         {hook: `hook(f, on = [k8s.mutate("v1", "Secret", failure_policy = "ignore")])`, grants: `grant("v1", "Secret", verbs = ["*"])`, lacks: `grant("v1", "Secret", verbs = ["mutate"])`},
		"mutate, another group":                  {hook: `hook(f, on = [k8s.mutate("apps/v1", "Deployment", failure_policy = "ignore")])`, grants: `grant("v1", "Deployment", verbs = ["mutate"])`, lacks: `grant("apps/v1", "Deployment", verbs = ["mutate"])`},
		"mutate, shown":                          {hook: `hook(f, on = [k8s.mutate("v1", "Secret", failure_policy = "ignore")])`, grants: `grant("v1", "Secret", verbs = ["get", "mutate"])`},
		"mutate, all of a group":                 {hook: `hook(f, on = [k8s.mutate("apps/v1", "Deployment", failure_policy = "ignore")])`, grants: `grant("apps/v1", "*", verbs = ["mutate"])`},
		"resources":                              {hook: `hook(f, on = [k8s.mutate("apps/v1", resources = ["deployments/scale"], failure_policy = "ignore")])`, lacks: `grant("apps/v1", "Deployment", verbs = ["mutate"])`},
		"resources, shown":                       {hook: `hook(f, on = [k8s.mutate("networking.k8s.io/v1", resources = ["networkpolicies"], failure_policy = "ignore")])`, grants: `grant("networking.k8s.io/v1", "NetworkPolicy", verbs = ["mutate"])`},
		"all resources":                          {hook: `hook(f, on = [k8s.mutate("apps/v1", resources = ["*"], failure_policy = "ignore")])`, grants: `grant("apps/v1", "Deployment", verbs = ["mutate"])`, lacks: `grant("apps/v1", "*", verbs = ["mutate"])`},
		"rules for all":                          {hook: `hook(f, on = [k8s.mutate(rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}], failure_policy = "ignore")])`, grants: `grant("v1", "*", verbs = ["mutate"])`, lacks: `grant("*", "*", verbs = ["mutate"])`},
		"rules for all, shown":                   {hook: `hook(f, on = [k8s.mutate(rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}], failure_policy = "ignore")])`, grants: `grant("*", "*", verbs = ["mutate"])`},
		"validate":                               {hook: `hook(f, on = [k8s.validate("v1", "Secret", failure_policy = "ignore")])`},
		"convert":                                {hook: up, lacks: `grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"], names = ["lamps.example.org"])`},
		"convert, another name":                  {hook: up, grants: `grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"], names = ["desks.example.org"])`, lacks: `names = ["lamps.example.org"]`},
		"convert, shown":                         {hook: up, grants: `grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"], names = ["lamps.example.org"])`},
		"convert, its own":                       {hook: up, own: true},
		"cleanup":                                {hook: each("v1", "Namespace"), lacks: `grant("v1", "Namespace", verbs = ["finalize"])`},
		"cleanup, shown":                         {hook: each("v1", "Namespace"), grants: `grant("v1", "Namespace", verbs = ["finalize"])`},
		"cleanup, its own":                       {hook: each("example.org/v1", "Lamp"), own: true},
		"mutate, its own":                        {hook: `hook(f, on = [k8s.mutate("example.org/v1", resources = ["lamps"], failure_policy = "ignore")])`, own: true},
		"a group of Kubernetes":                  {hook: `hook(f, on = [k8s.mutate("apps/v1", "Deployment", failure_policy = "ignore")])`, more: map[string]string{"web/crds/a.yaml": crdOf("apps", "Deployment", "deployments")}, lacks: `grant("apps/v1", "Deployment", verbs = ["mutate"])`},
		"the core group":                         {hook: `hook(f, on = [k8s.mutate("v1", "Secret", failure_policy = "ignore")])`, more: map[string]string{"web/crds/a.yaml": crdOf("", "Secret", "secrets")}, lacks: `grant("v1", "Secret", verbs = ["mutate"])`},
		"another group of theirs":                {hook: each("rbac.authorization.k8s.io/v1", "ClusterRole"), more: map[string]string{"web/crds/a.yaml": crdOf("rbac.authorization.k8s.io", "ClusterRole", "clusterroles")}, lacks: `verbs = ["finalize"]`},
		"that of another module":                 {hook: each("example.org/v1", "Lamp"), own: true, more: map[string]string{"shop/module.star": "module()\n", "shop/crds/lamps.yaml": crd}, lacks: `grant("example.org/v1", "Lamp", verbs = ["finalize"])`},
		"convert, another module's":              {hook: up, own: true, more: map[string]string{"shop/module.star": "module()\n", "shop/crds/lamps.yaml": crd}, lacks: `verbs = ["convert"]`},
		"its own, which a later module has, too": {hook: each("example.org/v1", "Lamp"), own: true, more: map[string]string{"zoo/module.star": "module()\n", "zoo/crds/lamps.yaml": crd}},
		"for_each without cleanup":               {hook: strings.Replace(each("v1", "Namespace"), ", cleanup = f", "", 1)},
	} {
		files := map[string]string{"web/module.star": "module(grants = [" + tt.grants + "])\n", "web/hooks/a.star": f + tt.hook + "\n"}
		if tt.own {
			files["web/crds/lamps.yaml"] = crd
		}
		maps.Copy(files, tt.more)
		err := load(t, files).Modules["web"].Err
		switch {
		case tt.lacks == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.lacks != "" && (err == nil || !strings.Contains(err.Error(), "web/hooks/a.star:4:") || !strings.HasSuffix(err.Error(), tt.lacks) && !strings.Contains(err.Error(), tt.lacks)):
			t.Errorf("%s: %v, want %s", name, err, tt.lacks)
		}
	}
}

// Of a list with thousands of names that are not there the first ones are told, within a moment.
func TestProblemsOfALongListAreBounded(t *testing.T) {
	err := load(t, map[string]string{"web/module.star": "module(requires = [\"none-%d\" % i for i in range(5000)])\n"}).Modules["web"].Err
	if err == nil || strings.Count(err.Error(), "\n") != mostProblems || !strings.HasSuffix(err.Error(), errMoreProblems.Error()) {
		t.Errorf("%.300v", err)
	}
}
