//go:build e2e

package release

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/runtime/effect"
)

func TestReleaseLife(t *testing.T) {
	t.Parallel()
	f := setup(t)
	blue := map[string]any{"color": "blue"}

	res := f.reconcile(f.target(blue, configMapTemplate))
	if res.Action != ActionInstalled || res.Revision != 1 {
		t.Errorf("first: %+v", res)
	}
	rel, err := f.store().Last("web")
	if err != nil {
		t.Fatal(err)
	}
	if rel.Labels[effect.InstanceLabel] != f.ns+".starling" || rel.Labels[effect.ModuleLabel] != "web" || rel.Labels[LabelInputs] == "" {
		t.Errorf("labels %v", rel.Labels)
	}
	ns, err := f.kube.CoreV1().Namespaces().Get(t.Context(), f.apps, metav1.GetOptions{})
	if err != nil || ns.Labels["app.kubernetes.io/managed-by"] != "starling" {
		t.Errorf("namespace %v, %v", ns.Labels, err)
	}

	before := f.requests.Load()
	res = f.reconcile(f.target(blue, configMapTemplate))
	if n := f.requests.Load() - before; n != 1 {
		t.Errorf("an unchanged release took %d requests, want 1", n)
	}
	if res.Action != ActionUnchanged || res.Reason != noRender || res.Revision != 1 {
		t.Errorf("unchanged: %+v", res)
	}

	// An input that the manifest does not show.
	more := map[string]any{"color": "blue", "unused": int64(1)}
	res = f.reconcile(f.target(more, configMapTemplate))
	if res.Action != ActionUnchanged || res.Reason == noRender || res.Revision != 1 {
		t.Errorf("unused value: %+v", res)
	}
	f.Manager = f.manager() // restart
	if res = f.reconcile(f.target(more, configMapTemplate)); res.Reason != noRender {
		t.Errorf("after a restart: %+v", res)
	}
	f.wantStatus("web", 1, helmrelease.StatusDeployed)

	res = f.reconcile(f.target(map[string]any{"color": "red"}, configMapTemplate))
	if res.Action != ActionUpgraded || res.Revision != 2 || f.configMap("web")["color"] != "red" {
		t.Errorf("red: %+v", res)
	}
	// No values at all must not bring back the old ones.
	if res = f.reconcile(f.target(nil, configMapTemplate)); res.Revision != 3 || f.configMap("web")["color"] != "" {
		t.Errorf("no values: %+v", res)
	}

	refs, err := f.Installed(t.Context())
	if diff := cmp.Diff([]Ref{{Module: "web", Name: "web", Namespace: f.apps}}, refs); diff != "" || err != nil {
		t.Errorf("records: %v %s", err, diff)
	}
	for range 2 {
		if done, err := f.Uninstall(t.Context(), refs[0], 0); !done || err != nil {
			t.Errorf("uninstall: %v, %v", done, err)
		}
	}
	if refs, _ = f.Installed(t.Context()); len(refs) != 0 {
		t.Errorf("records after uninstall: %v", refs)
	}
	if _, err := f.kube.CoreV1().ConfigMaps(f.apps).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap: %v", err)
	}
	if n := f.requests.Load(); f.reconcile(f.target(nil, configMapTemplate)).Revision != 1 || f.requests.Load() == n {
		t.Error("not installed again")
	}
}

func TestReleaseOfOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	plant := func(name string, labels map[string]string) {
		f.plant(name, helmrelease.StatusDeployed, labels)
	}
	plant("web", nil)
	plant("other", map[string]string{effect.InstanceLabel: "else.starling", effect.ModuleLabel: "web"})
	plant("sibling", map[string]string{effect.InstanceLabel: f.ns + ".starling", effect.ModuleLabel: "cache"})
	for name, want := range map[string]string{"web": "no starling", "other": "instance else.starling", "sibling": "module cache"} {
		target := f.target(nil, configMapTemplate)
		target.Name = name
		f.refused(target, want, "does not take it over")
		if done, err := f.Uninstall(t.Context(), target.Ref(), 0); done || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("uninstall %s: %v, %v", name, done, err)
		}
		f.wantStatus(name, 1, helmrelease.StatusDeployed)
	}
}

func TestReleasePending(t *testing.T) {
	t.Parallel()
	for _, status := range []helmrelease.Status{
		helmrelease.StatusPendingInstall, helmrelease.StatusPendingUpgrade, helmrelease.StatusPendingRollback,
		helmrelease.StatusFailed, helmrelease.StatusUninstalling, helmrelease.StatusUninstalled,
	} {
		t.Run(status.String(), func(t *testing.T) {
			f := setup(t)
			f.makeApps()
			f.plant("web", status, map[string]string{effect.InstanceLabel: f.ns + ".starling", effect.ModuleLabel: "web"})
			res := f.reconcile(f.target(map[string]any{"color": "blue"}, configMapTemplate))
			want := 2
			if status == helmrelease.StatusUninstalling { // the uninstall was finished first
				want = 1
			}
			f.wantStatus("web", want, helmrelease.StatusDeployed)
			if res.Revision != want || f.configMap("web")["color"] != "blue" {
				t.Errorf("%+v", res)
			}
		})
	}
}

func TestReleaseUnreadable(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	f.plant("web", helmrelease.StatusPendingInstall, map[string]string{effect.InstanceLabel: f.ns + ".starling", effect.ModuleLabel: "web"})
	s, err := f.kube.CoreV1().Secrets(f.apps).Get(t.Context(), helm.Key("web", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Data["release"] = []byte("bm90IGEgcmVsZWFzZQ==")
	if _, err = f.kube.CoreV1().Secrets(f.apps).Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.refused(f.target(nil, configMapTemplate), "cannot be read", "remove the Secret sh.helm.release.v1.web.v1")
}

func TestReleaseTimesOut(t *testing.T) {
	t.Parallel()
	f := setup(t)
	target := f.target(map[string]any{"replicas": int64(1)}, deploymentTemplate)
	target.Wait, target.Timeout = true, 10*time.Second
	f.refused(target, "timed out after 10s", "Deployment web in namespace", "is not ready: ") // its controller may be late, too
	f.wantStatus("web", 1, helmrelease.StatusFailed)
	target.Values = nil
	if res := f.reconcile(target); res.Action != ActionUpgraded || res.Revision != 2 {
		t.Errorf("after the timeout: %+v", res)
	}
	f.wantStatus("web", 2, helmrelease.StatusDeployed)
}

func TestReleaseStopped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	target := f.target(map[string]any{"replicas": int64(1)}, deploymentTemplate)
	target.Wait = true
	done := make(chan error, 1)
	go func() {
		_, err := f.Reconcile(context.Background(), target)
		done <- err
	}()
	eventually(t, "the release is pending", func() bool {
		last, err := f.latest(t.Context(), target.Ref())
		return err == nil && last.Status == helmrelease.StatusPendingInstall
	})
	start := time.Now()
	if err := f.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := <-done
	if !errors.Is(err, ErrFenced) {
		t.Errorf("the action that was stopped: %v", err)
	}
	t.Logf("stopped after %s: %v", time.Since(start), err)
	f.wantStatus("web", 1, helmrelease.StatusFailed)
	writes := f.writes.Load()
	if _, err := f.Reconcile(t.Context(), target); !errors.Is(err, ErrFenced) {
		t.Errorf("after the fence: %v", err)
	}
	if n := f.writes.Load() - writes; n != 0 {
		t.Errorf("%d writes behind the fence", n)
	}
	f.Manager = f.manager()
	target.Wait = false
	if res := f.reconcile(target); res.Revision != 1 { // the same try
		t.Errorf("after a restart: %+v", res)
	}
}

func TestReleaseStoppedInHook(t *testing.T) {
	t.Parallel()
	f := setup(t)
	target := f.target(nil, configMapTemplate, `apiVersion: v1
kind: Pod
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec: {nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: b}]}
`)
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Reconcile(ctx, target)
		done <- err
	}()
	eventually(t, "the hook is there", func() bool {
		_, err := f.kube.CoreV1().Pods(f.apps).Get(t.Context(), "migrate", metav1.GetOptions{})
		return err == nil
	})
	cancel(errors.New("switched off"))
	wantError(t, <-done, "switched off")
	f.wantStatus("web", 1, helmrelease.StatusFailed)
}

func TestReleaseHooks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	job := `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: "pre-install,post-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
`
	target := f.target(map[string]any{"color": "blue"}, configMapTemplate, job)
	f.reconcile(target)
	f.wantStatus("web", 1, helmrelease.StatusDeployed)
	target.Values = map[string]any{"color": "red"}
	f.reconcile(target)
	f.wantStatus("web", 2, helmrelease.StatusDeployed)
	if done, err := f.Uninstall(t.Context(), target.Ref(), 0); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

func TestReleaseLookup(t *testing.T) {
	t.Parallel()
	f := setup(t)
	template := `{{- $old := lookup "v1" "ConfigMap" .Release.Namespace "web" -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {password: "{{ if $old }}{{ $old.data.password }}{{ else }}{{ randAlphaNum 20 }}{{ end }}"}
`
	f.reconcile(f.target(nil, template))
	first := f.configMap("web")["password"]
	writes := f.writes.Load()
	for range 2 {
		res := f.reconcile(f.target(nil, template))
		if res.Action != ActionUnchanged || res.Reason == noRender || !f.lookedUp() {
			t.Errorf("%+v", res)
		}
	}
	if n := f.writes.Load() - writes; n != 0 || f.configMap("web")["password"] != first {
		t.Errorf("%d writes in a steady state", n)
	}
	if got, _ := f.Recheck(t.Context(), true); len(got) > 0 {
		t.Errorf("nothing has changed, and %q are told of", got)
	}
	patch := []byte(`{"data":{"password":"changed by hand"}}`)
	if _, err := f.kube.CoreV1().ConfigMaps(f.apps).Patch(t.Context(), "web", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"web"}, nil} {
		if got, _ := f.Recheck(t.Context(), true); !slices.Equal(got, want) {
			t.Errorf("what was looked up changed: %q are told of, want %q", got, want)
		}
	}
	if res := f.reconcile(f.target(nil, template)); res.Action != ActionUpgraded || res.Revision != 2 {
		t.Errorf("what was looked up changed: %+v", res)
	}
	f.refused(f.target(nil, `{{ lookup "no.such/v1" "Thing" "" "" }}`), "the cluster does not serve kind Thing of no.such/v1")
}

// Random values of a chart that looks things up make no revision by themselves, as at a restart.
func TestReleaseLookupAndChance(t *testing.T) {
	t.Parallel()
	f := setup(t)
	template := `{{- $old := lookup "v1" "ConfigMap" .Release.Namespace "web" -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {password: "{{ randAlphaNum 20 }}", color: {{ .Values.color }}}
`
	color := func(c string) Target {
		return f.target(map[string]any{"color": c, "global": map[string]any{}}, template)
	}
	f.reconcile(color("red"))
	for i := range 2 {
		f.Manager = f.manager()
		if res := f.reconcile(color("red")); res.Action != ActionUnchanged || res.Revision != 1 || !f.lookedUp() {
			t.Errorf("start %d: %+v", i, res)
		}
	}
	if res := f.reconcile(color("blue")); res.Action != ActionUpgraded || res.Revision != 2 {
		t.Errorf("other values: %+v", res)
	}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	if _, err := f.kube.CoreV1().ConfigMaps(f.apps).Patch(t.Context(), "web", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if res := f.reconcile(color("blue")); res.Action != ActionUpgraded || res.Revision != 3 {
		t.Errorf("another answer: %+v", res)
	}
}

// Helm says nothing of a field that the API server drops; the release does, after a restart too.
func TestReleaseUnknownFields(t *testing.T) {
	t.Parallel()
	f := setup(t)
	typo := configMapTemplate + "immutabel: true\n"
	want := []string{"web/templates/0.yaml:5: ConfigMap web has no field immutabel: the API server drops it (did you mean immutable?)"}
	has := func(after string, target Target, want []string) {
		t.Helper()
		if res := f.reconcile(target); !slices.Equal(res.Unknown, want) {
			t.Errorf("after %s: %q, want %q", after, res.Unknown, want)
		}
	}
	blue, red := map[string]any{"color": "blue"}, map[string]any{"color": "red"}
	has("an install", f.target(blue, typo), want)
	f.Manager = f.manager()
	has("a restart", f.target(blue, typo), want)
	has("an upgrade", f.target(red, typo), want)
	has("a correction", f.target(red, configMapTemplate), nil)
}

func TestReleaseErrors(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	if _, err := f.kube.CoreV1().ConfigMaps(f.apps).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.refused(f.target(nil, configMapTemplate), `ConfigMap "web"`, "is there already and belongs to no helm release")
	f.refused(f.target(nil, "apiVersion: x.example/v1\nkind: Thing\nmetadata: {name: a}\n"), "does not serve kind Thing of x.example/v1")
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: 'not a name'}\nstringData: {a: hunter2hunter2}\n"
	_, err := f.Reconcile(t.Context(), f.target(nil, secret))
	wantError(t, err, "not a name")
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a secret in %q", err)
	}
	t.Log(err)
	// After all that failed, a good chart goes on.
	target := f.target(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good}\n")
	f.reconcile(target)
}

// A release needs these rights: its Secrets and its objects in its namespace, the records
// in the operator's. No right to look at namespaces, none to list Secrets
// elsewhere.
// The error about a field that nobody can change says what to do, whatever words the API server has for it.
func TestWhatNobodyCanChangeReal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	const v = "{{ .Values.color }}"
	for name, text := range map[string]string{
		"clusterip": "apiVersion: v1\nkind: Service\nmetadata: {name: clusterip}\nspec: {clusterIP: " + `{{ ternary "10.0.0.77" "None" (eq .Values.color "blue") }}` + ", selector: {a: b}, ports: [{port: 80}]}\n",
		"claim":     "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: claim}\nspec: {accessModes: [ReadWriteOnce], storageClassName: " + v + ", resources: {requests: {storage: 1Gi}}}\n",
		"pod":       "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\nspec: {containers: [{name: a, image: a, workingDir: /" + v + "}]}\n",
		"binding":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: binding}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + v + "}\n",
		"frozen":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: frozen}\nimmutable: true\ndata: {color: " + v + "}\n",
		"set":       "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: set}\nspec: {serviceName: " + v + ", selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}\n",
		"job":       "apiVersion: batch/v1\nkind: Job\nmetadata: {name: job}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: " + v + "}]}}}\n",
		"type":      "apiVersion: v1\nkind: Secret\nmetadata: {name: type}\ntype: example.com/" + v + "\n",
	} {
		target := f.target(map[string]any{"color": "red"}, text)
		target.Name, target.Installs = name, []builtins.Grant{{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}}
		f.reconcile(target)
		target.Values = map[string]any{"color": "blue"}
		_, err := f.Reconcile(t.Context(), target)
		wantError(t, err, "web/templates/0.yaml:", "nobody can change it: write it as it was, or delete the ")
	}
}

func TestReleaseNarrowRights(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.makeApps()
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
	}
	kubeconfig := shared.ServiceAccountKubeconfig(t, f.ns, "starling", cluster.Access{Namespaced: map[string][]rbacv1.PolicyRule{
		f.ns: {rule("configmaps", "get"), rule("secrets", "list", "create", "patch", "delete")},
		f.apps: {
			rule("secrets", "get", "list", "create", "update", "patch", "delete"),
			rule("configmaps", "get", "create", "patch", "delete"),
		},
	}})
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	f.config = config
	f.Manager = f.manager()
	for i, values := range []map[string]any{{"color": "red"}, {"color": "blue"}, {"color": "blue", "unused": true}} {
		if res := f.reconcile(f.target(values, configMapTemplate)); res.Revision != min(i+1, 2) {
			t.Errorf("%d: %+v", i, res)
		}
	}
	f.refused(f.target(nil, deploymentTemplate), "create deployments.apps in namespace "+f.apps, "rights that Starling lacks")
	refs, err := f.Installed(t.Context())
	if err != nil || len(refs) != 1 {
		t.Fatalf("%v, %v", refs, err)
	}
	if done, err := f.Uninstall(t.Context(), refs[0], 0); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}

// makeApps makes the namespace of the releases.
func (f *fixture) makeApps() {
	f.t.Helper()
	_, err := f.kube.CoreV1().Namespaces().Create(f.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.apps}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// plant writes a revision 1 as some other process would have left it.
func (f *fixture) plant(name string, status helmrelease.Status, labels map[string]string) {
	f.t.Helper()
	rel := &helmrelease.Release{
		Name: name, Namespace: f.apps, Version: 1, Labels: labels,
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: name, Version: "1.0.0", APIVersion: "v2"}},
		Info:  &helmrelease.Info{Status: status},
	}
	if err := f.store().Create(rel); err != nil {
		f.t.Fatal(err)
	}
}
