package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/record"
)

// docs/monitoring.md promises: with a kubeconfig that may list pods and exec in them, and nothing else, the commands
// that ask a starling ask the pods of deploy/starling.yaml: the one that leads what it alone knows, all of them for
// runs and logs. A run that a pod has recorded is replayed on this machine.
//
// The way is the real one: through the API server to a kubelet, whose place a server of this machine takes, to a
// command beside the process of the pod. It is no parallel test: its namespaces have fixed names.
func TestPodsAreAskedFromOutside(t *testing.T) {
	const ns = "starling-system"
	ownNamespaces(t, ns, "hello")
	cordoned(t)
	kube, objects := applyDeploy(t, ns)
	shared.Pods(t, cluster.PodsOptions{Node: "asked", Kubeconfig: kube})
	t.Cleanup(func() { endPods(t, ns, objects) })
	waitAvailable(t, ns, "starling")
	waitAvailable(t, "hello", "hello")

	person := shared.ServiceAccountKubeconfig(t, shared.Namespace(t), "person", cluster.Access{Namespaced: map[string][]rbacv1.PolicyRule{ns: {
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}},
	}}})
	ask := func(args ...string) (code int, stdout, stderr string) {
		t.Helper()
		began := time.Now()
		code, stdout, stderr = cluster.Command(t, append(args, "--kubeconfig", person)...)
		t.Logf("starling %s took %s", strings.Join(args, " "), time.Since(began).Round(time.Millisecond))
		return code, stdout, stderr
	}
	shows := func(want string, args ...string) string {
		t.Helper()
		code, stdout, stderr := ask(args...)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("starling %s: %d, %q, %s; want %q", strings.Join(args, " "), code, stdout, stderr, want)
		}
		return stdout
	}
	replicas := func() (leader, standby status.Replica) {
		t.Helper()
		cluster.Eventually(t, soon, "one of two leads", func() error {
			var of []status.Replica
			code, stdout, stderr := ask("get", "replicas", "-o", "json")
			if err := json.Unmarshal([]byte(stdout), &of); err != nil {
				return fmt.Errorf("%d, %s: %w", code, stderr, err)
			}
			i := slices.IndexFunc(of, func(r status.Replica) bool { return r.Leader })
			if len(of) != 2 || i < 0 || !of[0].Ready || !of[1].Ready {
				return fmt.Errorf("they are %+v", of)
			}
			leader, standby = of[i], of[1-i]
			return nil
		})
		return leader, standby
	}
	leader, standby := replicas()
	if leader.Node != "asked" || leader.Version == "" || standby.Holder == "" {
		t.Errorf("the replicas are %+v and %+v", leader, standby)
	}
	shows(leader.Name+" leader yes", "get", "replicas")
	shows(standby.Name+" standby yes", "get", "replicas")
	shows("hello ready", "get", "modules")
	shows("- name: asked", "get", "snapshots", "global", "-o", "yaml", "--pod", standby.Name)
	shows("global.readyNodes 2 hook global/cluster.star:count_nodes", "explain", "values", "global", "global.readyNodes")
	shows(`"pod":"`+standby.Name+`"`, "logs", "-o", "json")
	shows(`"pod":"`+leader.Name+`"`, "logs", "-o", "json")
	shows("pod="+leader.Name, "describe", "module", "hello") // its log is that of all pods, too
	shows("info", "log-level", "--pod", standby.Name)
	if _, _, stderr := ask("get", "modules", "--pod", standby.Name); !strings.Contains(stderr, "note: this starling stands by: it waits for the lease, which ") {
		t.Errorf("a pod that stands by says %q", stderr)
	}

	var runs []record.Header
	cluster.Eventually(t, soon, "a run is recorded", func() error {
		code, stdout, stderr := ask("get", "runs", "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &runs); err != nil || len(runs) == 0 {
			return fmt.Errorf("%d, %q, %s", code, stdout, stderr)
		}
		return nil
	})
	old := runs[0].ID
	shows("# the same as recorded", "replay", old)
	shows("values.set global.readyNodes = ", "replay", old)

	// The pod with that run ends, and another one leads.
	if err := shared.Client.CoreV1().Pods(ns).Delete(t.Context(), leader.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitReplaced(t, ns, leader.Name)
	if now, _ := replicas(); now.Name == leader.Name {
		t.Errorf("%s leads still", now.Name)
	}
	cluster.Eventually(t, soon, "runs of the new leader are recorded", func() error {
		code, stdout, stderr := ask("get", "runs", "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &runs); err != nil || len(runs) == 0 {
			return fmt.Errorf("%d, %q, %s", code, stdout, stderr)
		}
		return nil
	})
	shows("# the same as recorded", "replay", runs[0].ID)

	for said, args := range map[string][]string{
		"no run " + old + " is kept in ":                 {"replay", old}, // it went with the folder of its pod
		`starling starling-system/starling has no pod "`: {"get", "modules", "--pod", leader.Name},
		"there are those of starling-system/starling":    {"get", "modules", "--name", "other"},
		"give one of both":                               {"get", "modules", "--state-dir", "/state"},
	} {
		if code, _, stderr := ask(append(args, "-n", ns)...); code != 1 || !strings.Contains(stderr, said) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("starling %s: %d, %q; want %q", strings.Join(args, " "), code, stderr, said)
		}
	}
	reader := shared.ServiceAccountKubeconfig(t, shared.Namespace(t), "reader", cluster.Access{Namespaced: map[string][]rbacv1.PolicyRule{ns: {
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}}})
	code, _, stderr := cluster.Command(t, "get", "modules", "-n", ns, "--kubeconfig", reader)
	if code != 1 || !strings.Contains(stderr, "not allowed to ") || !strings.Contains(stderr, "pods/exec") {
		t.Errorf("without the right to exec: %d, %q", code, stderr)
	}
}
