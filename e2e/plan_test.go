package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/plan"
)

// A plan is made by somebody who may only read, and says what then happens; when it has
// happened, nothing is left to plan.
func TestPlan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{
		"web/module.star": `module(enabled = True, namespace = "$NS", grants = [grant("v1", "ConfigMap", verbs = ["apply", "delete"])],
    lookup = [grant("v1", "Node", names = ["fake-0"])])`,
		"web/hooks/a.star": `
def found(ctx):
    values.set("seen", sorted([o["name"] for o in ctx.snapshots["asked"]]))
    for o in ctx.snapshots["asked"]:
        k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-" + o["name"], "labels": {"made": "here"}}, "data": {"of": o["name"]}})

hook(found, on = [k8s.watch("v1", "ConfigMap", name = "asked", namespaces = ["$NS"], labels = {"asked": "yes"},
                            filter = lambda o: {"name": o.metadata.name})])

def follow(ctx):
    values.set("made", len(ctx.snapshots["made"]))

hook(follow, on = [k8s.watch("v1", "ConfigMap", name = "made", namespaces = ["$NS"], labels = {"made": "here"})])
`,
		"web/Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/values.yaml": "seen: []\nmade: 0\nword: start\n",
		"web/templates/all.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {seen: "{{ join "," .Values.seen }}", made: "{{ .Values.made }}", word: "{{ .Values.word }}", node: "{{ (lookup "v1" "Node" "" "fake-0").metadata.name }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.made }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`,
	}, least{
		Releases: map[string][]rbacv1.PolicyRule{"$NS": {
			allow("", "configmaps", "get", "list", "watch", "create", "patch", "delete"), allow("apps", "deployments", "get", "create", "patch", "delete"),
		}},
		Hooks: []rbacv1.PolicyRule{allow("", "nodes", "list", "get")},
	})
	f.touch("a", "x")
	patch(t, "configmaps", f.ns, "a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"asked": "yes"}}})
	reader := shared.ServiceAccountKubeconfig(t, f.ns, "reader", cluster.Access{Cluster: []rbacv1.PolicyRule{allow("*", "*", "get", "list", "watch")}})

	objects := func(p *plan.Plan) string {
		var out []string
		for _, o := range p.Objects {
			out = append(out, string(o.Action)+" "+o.Kind+" "+o.Name)
		}
		return strings.Join(out, ", ")
	}
	before := f.versions()
	p, code := f.plan(reader)
	if got, want := objects(p), "create ConfigMap of-a, create ConfigMap web, create Deployment web"; code != 2 || got != want {
		t.Fatalf("exit code %d: %s\nwant %s", code, got, want)
	}
	if now := f.versions(); now != before {
		t.Errorf("the plan has written: %s\nbefore %s", now, before)
	}
	planned := map[string]map[string]any{}
	for _, o := range p.Objects {
		planned[o.Kind+" "+o.Name] = o.Object
	}

	f.start()
	f.waitReady()
	f.nothingToPlan() // once hooks and chart have settled
	f.stop()
	for name, want := range planned {
		kind, name, _ := strings.Cut(name, " ")
		resource := map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments"}[kind]
		var got any
		if kind == "Deployment" {
			d, err := shared.Client.AppsV1().Deployments(f.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got = map[string]any{"replicas": *d.Spec.Replicas}
			want = map[string]any{"replicas": want["spec"].(map[string]any)["replicas"]}
		} else {
			data, err := configMap(t, f.ns, name)
			if err != nil {
				t.Fatal(err)
			}
			got, want = data, want["data"].(map[string]any)
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Errorf("%s %s is %s, and was planned as %s", resource, name, a, b)
		}
	}

	if p, code := f.plan(reader, "run", "--dry-run"); code != 0 || p != nil {
		t.Errorf("a dry run: exit code %d", code)
	}
	f.write(map[string]string{"web/values.yaml": "seen: []\nmade: 0\nword: other\n"})
	p, code = f.plan(reader)
	if code != 2 || objects(p) != "update ConfigMap web" || len(p.Objects[0].Fields) != 1 || p.Objects[0].Fields[0].Path != "data.word" {
		t.Errorf("exit code %d: %+v", code, p)
	}
	if why := p.Modules[0].Values; len(why) != 1 || why[0].Why == nil || why[0].Why.File != "web/values.yaml" || why[0].Why.Line != 3 {
		t.Errorf("the values: %+v", why)
	}
	if now := f.versions(); strings.Contains(now, "reader") {
		t.Error(now)
	}

	// A plan names changes of others in objects of the release, and does not count them.
	f.write(map[string]string{"web/values.yaml": "seen: []\nmade: 0\nword: start\n"})
	patch(t, "configmaps", f.ns, "web", map[string]any{"data": map[string]any{"word": "theirs"}})
	if err := shared.Client.AppsV1().Deployments(f.ns).Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p, code = f.plan(reader)
	if code != 2 || p.Changes() || len(p.Drift) != 2 || p.Drift[0].Action != plan.Missing || p.Drift[0].Kind != "Deployment" || p.Drift[1].Action != plan.Changed ||
		len(p.Drift[1].Fields) != 1 || p.Drift[1].Fields[0].Path != "data.word" || *p.Drift[1].Fields[0].Old != "start" || *p.Drift[1].Fields[0].New != "theirs" {
		text, _ := json.Marshal(p)
		t.Errorf("exit code %d: %s", code, text)
	}
}

// A ServiceAccount that has lost its Role in the namespace of one module plans the others,
// and says what it may not read.
func TestPlanWithoutARole(t *testing.T) {
	t.Parallel()
	lost, kept := shared.Namespace(t), shared.Namespace(t)
	chart := func(name, ns string) map[string]string {
		return map[string]string{
			name + "/module.star":        fmt.Sprintf("module(enabled = True, namespace = %q)\n", ns),
			name + "/Chart.yaml":         "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			name + "/values.yaml":        "word: start\n",
			name + "/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {word: \"{{ .Values.word }}\"}\n",
		}
	}
	rules := []rbacv1.PolicyRule{allow("", "configmaps", "get", "list", "watch", "create", "patch", "delete")}
	f := newFixture(t, trees(chart("lost", lost), chart("kept", kept)), least{Releases: map[string][]rbacv1.PolicyRule{lost: rules, kept: rules}})
	f.start()
	f.waitReady()
	f.stop()
	all := []rbacv1.PolicyRule{allow("*", "*", "get", "list", "watch")}
	reader := shared.ServiceAccountKubeconfig(t, f.ns, "reader", cluster.Access{Namespaced: map[string][]rbacv1.PolicyRule{f.ns: all, kept: all}})
	f.write(map[string]string{"kept/values.yaml": "word: other\n", "lost/values.yaml": "word: other\n"})
	_, code, err := f.tryPlan(reader, "plan")
	if code != 1 || err == nil {
		t.Fatalf("exit code %d: %v", code, err)
	}
	for _, want := range []string{"~ module kept: upgrade release kept in " + kept, "! module lost fails: ", "~ v1 ConfigMap " + kept + "/kept", "secrets is forbidden", "Something fails"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in\n%v", want, err)
		}
	}
}

// plan runs `starling plan`, or the command that is given, and returns its exit code.
func (f *fixture) plan(kubeconfig string, command ...string) (*plan.Plan, int) {
	f.t.Helper()
	p, code, err := f.tryPlan(kubeconfig, command...)
	if err != nil {
		f.t.Fatal(err)
	}
	return p, code
}

func (f *fixture) tryPlan(kubeconfig string, command ...string) (*plan.Plan, int, error) {
	f.t.Helper()
	args := append(command, "--modules", f.modules, "--kubeconfig", kubeconfig, "--namespace", f.ns, "--name", f.name)
	if len(command) == 0 {
		args = append([]string{"plan", "-o", "json"}, args...)
	}
	cmd := exec.CommandContext(f.t.Context(), program(), args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(f.t.TempDir()))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	code := cmd.ProcessState.ExitCode()
	if err != nil && code != 2 {
		return nil, code, fmt.Errorf("%v: %w\n%s%s", args, err, out, stderr.String())
	}
	if len(command) > 0 {
		return nil, code, nil
	}
	p := &plan.Plan{}
	if err := json.Unmarshal(out, p); err != nil {
		return nil, code, fmt.Errorf("%w: %s%s", err, out, stderr.String())
	}
	return p, code, nil
}

// nothingToPlan makes sure that a plan finds the cluster as the process has made it.
func (f *fixture) nothingToPlan() {
	f.t.Helper()
	f.eventually("nothing is left to plan", func() error {
		p, code, err := f.tryPlan(shared.Kubeconfig)
		if err == nil && code != 0 {
			text, _ := json.Marshal(p)
			err = fmt.Errorf("exit code %d: %s", code, text)
		}
		return err // of other tests' kinds and namespaces, too, which come and go
	})
}

// versions are the objects of the instance's namespace, with their versions.
func (f *fixture) versions() string {
	f.t.Helper()
	var out []string
	cms, err := shared.Client.CoreV1().ConfigMaps(f.ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, o := range cms.Items {
		out = append(out, o.Name+"="+o.ResourceVersion)
	}
	secrets, err := shared.Client.CoreV1().Secrets(f.ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, o := range secrets.Items {
		out = append(out, o.Name+"="+o.ResourceVersion)
	}
	return strings.Join(out, " ")
}
