package rbac

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/modules/tree"
)

// Hooks that make roles and bindings need rights beside those on these objects: nobody gives rights that he lacks.
func TestGivenRights(t *testing.T) {
	const (
		bindings = `grant("rbac.authorization.k8s.io/v1", "RoleBinding", verbs = ["apply"])`
		roles    = `grant("rbac.authorization.k8s.io/v1", "Role", verbs = ["apply"])`
		bound    = "# bindings that hooks of web make\n- apiGroups: [rbac.authorization.k8s.io]\n  resources: [clusterroles]\n  resourceNames: [admin]\n  verbs: [bind]\n"
		held     = "# roles that hooks of web make, which give it\n- apiGroups: [\"\"]\n  resources: [pods]\n  verbs: [get, list]\n"
	)
	for name, tt := range map[string]struct{ grant, code, want, lacks string }{
		"bound": {grant: bindings, code: `k8s.apply({"kind": "RoleBinding", "roleRef": {"kind": "ClusterRole", "name": "admin"}})`, want: bound},
		"bound by a name that is computed": {grant: bindings, code: `k8s.apply({"roleRef": {"kind": "ClusterRole", "name": ctx.key}})`,
			lacks: "hooks of web make rolebindings, and the code does not name the role: write a grant with verbs = [\"bind\"] and its name"},
		"bound by a name that a grant says": {grant: bindings + `, grant("rbac.authorization.k8s.io/v1", "ClusterRole", verbs = ["bind"], names = ["admin"])`,
			code: `k8s.apply({"kind": "RoleBinding", "roleRef": {"kind": "ClusterRole", "name": ctx.key}})`, want: "  resourceNames: [admin]\n  verbs: [bind]\n"},
		"bound elsewhere": {grant: bindings, code: `k8s.apply({"roleRef": ctx.object})`, lacks: "hooks of web make rolebindings"},
		"not bound":       {grant: roles, code: `k8s.apply({"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]})`, want: held},
		"rules that are computed": {grant: roles, code: `k8s.apply({"kind": "Role", "rules": ctx.object["rules"]})`,
			lacks: "hooks of web make roles, and the code does not write out the rules: Starling must have these rights itself, or the verb escalate on roles"},
		"only read": {grant: `grant("rbac.authorization.k8s.io/v1", "RoleBinding", verbs = ["get"])`, code: `k8s.get("rbac.authorization.k8s.io/v1", "RoleBinding", "a")`},
	} {
		t.Run(name, func(t *testing.T) {
			read, err := tree.Read(fstest.MapFS{
				"web/module.star":  {Data: []byte("module(namespace = \"web\", grants = [" + tt.grant + "])\n")},
				"web/hooks/a.star": {Data: []byte("def f(ctx):\n    " + tt.code + "\n\nhook(f, on = [startup])\n")},
			}, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(print(t, Options{Tree: read}), "\n#   ", " ") // lines of notes are broken
			if !strings.Contains(got, tt.want) || !strings.Contains(got, tt.lacks) || tt.lacks == "" && strings.Contains(got, "hooks of web make r") {
				t.Errorf("got %s", got)
			}
			if strings.Contains(got, "[bind]") != strings.Contains(tt.want, "[bind]") || strings.Contains(got, "which give it") != (tt.want == held) {
				t.Errorf("got %s", got)
			}
		})
	}
}
