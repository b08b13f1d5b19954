package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// A user's mistake on which a filter fails, and a restart: the set that the hook made stays
// as it is, the status says which object the hook waits for, and it goes on once that is
// mended.
func TestAFilterThatFailsAtTheFirstListDeletesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{
		"teams/module.star": `module(enabled = True, grants = [grant("v1", "ServiceAccount", verbs = ["write"])])`,
		"teams/hooks/a.star": `
def accounts(ctx):
    names = [n for team in ctx.snapshots["teams"] for n in team]
    k8s.apply_set("all", [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": n}} for n in names])

hook(accounts, on = [
    k8s.watch("v1", "ConfigMap", name = "teams", namespaces = ["$NS"], labels = "team",
              filter = lambda o: yaml.decode(o.data.names)),
])
`,
	}, least{HooksIn: map[string][]rbacv1.PolicyRule{"$NS": {
		watches("", "configmaps"), allow("", "serviceaccounts", "get", "create", "patch", "delete"),
	}}})
	team := func(name, names string) {
		shared.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {team: \"\"}}\ndata: {names: %q}\n", name, f.ns, names))
	}
	accounts := func() string {
		list, err := shared.Client.CoreV1().ServiceAccounts(f.ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, a := range list.Items {
			if strings.HasPrefix(a.Name, "team-") {
				out = append(out, a.Name)
			}
		}
		return strings.Join(out, " ")
	}
	waitAccounts := func(want string) {
		t.Helper()
		f.eventually("accounts "+want, func() error {
			if got := accounts(); got != want {
				return fmt.Errorf("they are %s", got)
			}
			return nil
		})
	}
	waitHook := func(state status.HookState, text string) {
		t.Helper()
		f.eventually("the hook is "+string(state), func() error {
			h, err := f.hook("teams/hooks/a.star:accounts")
			if err == nil && (h.State != state || !strings.Contains(h.LastError, text)) {
				err = fmt.Errorf("it is %s: %s", h.State, h.LastError)
			}
			return err
		})
	}
	team("one", "[team-a, team-b]")
	team("two", "[team-c]")
	f.start()
	waitAccounts("team-a team-b team-c")
	team("one", "[team-a, team-b")
	place := "ConfigMap " + f.ns + "/one"
	waitHook(status.HookFailed, place+": teams/hooks/a.star:8:")

	f.stop() // both: one that stands by may have a result from before
	f.start()
	waitHook(status.HookFailed, place+", and the hook does not run before that has a result or is gone: teams/hooks/a.star:8:")
	f.waitState("teams", status.ModuleFailed, place)
	team("two", "[]")
	team("three", "[team-d]")
	team("one", "[team-a]")
	waitAccounts("team-a team-d")
	waitHook(status.HookOK, "")
	if h, err := f.hook("teams/hooks/a.star:accounts"); err != nil || h.Runs != 1 {
		t.Errorf("%d runs since the restart, %v", h.Runs, err)
	}
}
