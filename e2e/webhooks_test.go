package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/modules/status"
)

// guard is a module whose hooks review the ConfigMaps of the namespaces that are
// labelled for this test.
const guard = `
def check(ctx):
    r = ctx.request
    if r.object.get("data.broken"):
        fail("the hook is broken")
    if r.object.get("data.warn"):
        warn("careful with " + r.name)
    if r.object.get("data.deny"):
        return deny("%s of %s by %s: no" % (r.operation, r.name, r.user.name), code = 422)

def complete(ctx):
    o = dict(ctx.request.object)
    if o["metadata"]["name"] == "kube-root-ca.crt":
        return None
    o["metadata"].setdefault("labels", {})["seen/by"] = "starling"
    o.setdefault("data", {})["operation"] = ctx.request.operation
    return o

def lenient(ctx):
    fail("always broken")

where = {"namespace_labels": {"e2e": "$NS"}}
hook(check, on = [k8s.validate("v1", "ConfigMap", failure_policy = "fail",
                               match_conditions = {"not-spared": "object.metadata.name != 'spared'"}, **where)])
hook(complete, on = [k8s.mutate("v1", resources = ["configmaps"], failure_policy = "fail", **where)])
hook(lenient, on = [k8s.validate("v1", "ConfigMap", ["CREATE"], failure_policy = "ignore", **where)])
`

// webhookRole is what an instance needs for webhooks.
func webhookRole(l least) least {
	configurations := rbacv1.PolicyRule{
		APIGroups: []string{"admissionregistration.k8s.io"},
		Resources: []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"},
		Verbs:     []string{"list", "watch", "create", "patch", "delete"},
	}
	l.Hooks = append(l.Hooks, configurations)
	all := map[string][]rbacv1.PolicyRule{}
	maps.Copy(all, l.HooksIn)
	l.HooksIn = all
	l.HooksIn["$NS"] = append(slices.Clip(l.HooksIn["$NS"]), rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"starling-webhooks"}, Verbs: []string{"get"},
	})
	return l
}

// webhookArgs are the flags of a starling on this machine. The port stays the same when it
// is started again.
func webhookArgs(t *testing.T) []string {
	t.Helper()
	address := cluster.Address()
	return []string{"--webhook-address=" + address, "--webhook-url=https://" + address}
}

// labelled makes a namespace that the guard covers.
func (f *fixture) labelled() string {
	f.t.Helper()
	ns := shared.Namespace(f.t)
	patch(f.t, "namespaces", "", ns, map[string]any{"metadata": map[string]any{"labels": map[string]any{"e2e": f.ns}}})
	return ns
}

// warned is a client that keeps the warnings of its answers.
func warned(t *testing.T) (*kubernetes.Clientset, *warnings) {
	t.Helper()
	w := &warnings{}
	config := rest.CopyConfig(shared.Config)
	config.WarningHandler = w
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, w
}

type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { w.texts = append(w.texts, text) }

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

// configurations are the webhook configurations of the instance, as "name version".
func (f *fixture) configurations() (all []string) {
	f.t.Helper()
	o := metav1.ListOptions{LabelSelector: "starling.dev/instance=" + f.ns + ".starling"}
	validating, err1 := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(f.t.Context(), o)
	mutating, err2 := shared.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(f.t.Context(), o)
	if err := errors.Join(err1, err2); err != nil {
		f.t.Fatal(err)
	}
	for _, c := range validating.Items {
		all = append(all, c.Name+" "+c.ResourceVersion)
	}
	for _, c := range mutating.Items {
		all = append(all, c.Name+" "+c.ResourceVersion)
	}
	return all
}

// waitConfigurations waits until there are so many of them, and returns them.
func (f *fixture) waitConfigurations(n int) (all []string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%d webhook configurations", n), func() error {
		if all = f.configurations(); len(all) != n {
			return fmt.Errorf("there are %v", all)
		}
		return nil
	})
	return all
}

// refused waits until a ConfigMap is refused with a text. The API server learns of
// new webhooks a moment after they were written.
func (f *fixture) refused(ns string, cm *corev1.ConfigMap, text string) {
	f.t.Helper()
	f.eventually("ConfigMap "+cm.Name+" is refused", func() error {
		_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(f.t.Context(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%v, want %q", err, text)
		}
		return nil
	})
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(probe(), map[string]string{"web/module.star": on, "web/hooks/guard.star": guard}), webhookRole(mirrors))
	ns := f.labelled()
	patch(t, "namespaces", "", f.ns, map[string]any{"metadata": map[string]any{"labels": map[string]any{"e2e": f.ns}}})
	args := webhookArgs(t)
	f.start(args...)
	f.waitReady()
	first := f.waitConfigurations(3)
	denied := newConfigMap("bad", map[string]string{"deny": "yes"})
	f.refused(ns, denied, `admission webhook "validate.guard.check.web.starling.dev" denied the request: CREATE of bad by `)
	_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), denied, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("%v, want code 422", err)
	}

	// It warns, and patches; the API server learns of each kind of webhook by itself.
	f.eventually("ConfigMaps are completed", func() error {
		cm, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), newConfigMap("first", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && cm.Labels["seen/by"] != "starling" {
			err = fmt.Errorf("the labels are %v", cm.Labels)
		}
		return err
	})
	client, w := warned(t)
	cm, err := client.CoreV1().ConfigMaps(ns).Create(t.Context(), newConfigMap("good", map[string]string{"warn": "yes"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cm.Labels["seen/by"] != "starling" || cm.Data["operation"] != "CREATE" || strings.Join(w.texts, ";") != "careful with good" {
		t.Errorf("labels %v, data %v, warnings %v", cm.Labels, cm.Data, w.texts)
	}
	cm.Data["x"] = "y"
	if cm, err = client.CoreV1().ConfigMaps(ns).Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil || cm.Data["operation"] != "UPDATE" {
		t.Errorf("%v %v", cm, err)
	}

	// Failure policies: one hook that breaks refuses, one is ignored.
	_, err = shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), newConfigMap("broken", map[string]string{"broken": "yes"}), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "the hook is broken") {
		t.Errorf("%v", err)
	}
	f.eventually("the log tells of the broken hooks", func() error {
		return holds(f.process.Output(), []string{"always broken", "the hook is broken"})
	})

	// Match conditions; other namespaces; kube-system and our own one, whatever their labels.
	for in, name := range map[string]string{ns: "spared", shared.Namespace(t): "elsewhere", f.ns: "own"} {
		if _, err := shared.Client.CoreV1().ConfigMaps(in).Create(t.Context(), newConfigMap(name, map[string]string{"deny": "yes"}), metav1.CreateOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	patch(t, "namespaces", "", "kube-system", map[string]any{"metadata": map[string]any{"labels": map[string]any{"e2e": f.ns}}})
	if _, err := shared.Client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), newConfigMap(f.ns, map[string]string{"deny": "yes"}),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("kube-system: %v", err)
	}

	// Metrics.
	_, page, err := f.http("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`starling_webhook_requests_total{hook="web/hooks/guard.star:check",module="web",result="denied"}`,
		`starling_webhook_requests_total{hook="web/hooks/guard.star:complete",module="web",result="changed"}`,
		`starling_webhook_requests_total{hook="web/hooks/guard.star:lenient",module="web",result="error"}`,
		`starling_webhook_seconds_count{hook="web/hooks/guard.star:check",module="web"}`, "starling_webhook_certificate_expires 1.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("/metrics does not show %s", want)
		}
	}

	// A restart writes nothing.
	if code := f.process.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	f.start(args...)
	f.waitReady()
	f.probe()
	if again := f.waitConfigurations(3); strings.Join(again, ";") != strings.Join(first, ";") {
		t.Errorf("a restart has written: %v, was %v", again, first)
	}
	f.refused(ns, denied, "denied the request")

	// A changed or deleted object is put right.
	name, _, _ := strings.Cut(first[0], " ")
	validating := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	// Other tests have namespaces, too: it must not cover them meanwhile.
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		c, err := validating.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		c.Webhooks[0].ClientConfig.CABundle, c.Webhooks[0].NamespaceSelector = nil, &metav1.LabelSelector{MatchLabels: map[string]string{"e2e": "nowhere"}}
		_, err = validating.Update(t.Context(), c, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the configuration is put right", func() error {
		c, err := validating.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && (c.Webhooks[0].ClientConfig.CABundle == nil || len(c.Webhooks[0].NamespaceSelector.MatchExpressions) == 0) {
			err = errors.New("it is not yet")
		}
		return err
	})
	if err := validating.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitConfigurations(3)

	// A module that does not load keeps its webhooks, one that is off has none.
	f.stop()
	f.write(map[string]string{"web/hooks/guard.star": "hook(\n"})
	f.start(args...)
	f.waitReady()
	f.probe()
	f.waitConfigurations(3)
	f.stop()
	f.write(map[string]string{"web/hooks/guard.star": guard})
	f.start(args...)
	f.refused(ns, denied, "denied the request")
	f.configure(map[string]string{"webEnabled": "false"})
	f.waitConfigurations(0)
	f.eventually("nobody is asked any more", func() error {
		_, err := shared.Client.CoreV1().ConfigMaps(ns).Create(t.Context(), denied, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	f.configure(map[string]string{})
	f.waitConfigurations(3)

	// Webhooks that are no longer in the tree are removed.
	f.stop()
	f.write(map[string]string{"web": ""})
	f.start(args...)
	f.waitReady()
	f.waitConfigurations(0)
}

// Outside of a cluster, and without --webhook-url, the API server asks nobody: hooks that
// wait for it say why.
func TestHooksThatNobodyAsksSayWhy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]string{
		"web/module.star": "module(enabled = True)\n",
		"web/hooks/a.star": `def review(_ctx):
    return None

hook(review, on = [k8s.validate("v1", "ConfigMap", failure_policy = "ignore")])
`,
	})
	f.start()
	f.eventually("the reason", func() error {
		h, err := f.hook("web/hooks/a.star:review")
		if err == nil && (h.State != status.HookWaiting || !strings.Contains(h.Reason, "give --webhook-url https://HOST:PORT")) {
			err = fmt.Errorf("the hook is %s: %s", h.State, h.Reason)
		}
		return err
	})
}
