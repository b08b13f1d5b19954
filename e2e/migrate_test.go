package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/starling-operator/starling/modules/status"
)

// oldTree is that of an addon-operator: two modules with releases that it has installed, of which one gets a
// value from a hook, one that reviews requests, one that the user has switched off, and one that the user has
// paused.
var oldTree = map[string]string{
	"values.yaml":                     "global: {zone: north}\n",
	"010-web/Chart.yaml":              "name: web\nversion: 0.2.0\n",
	"010-web/values.yaml":             "web: {text: default}\nwebEnabled: true\n",
	"010-web/templates/config.yaml":   oldTemplate("web", ".Values.web.text"),
	"020-feed/values.yaml":            "feed: {}\n",
	"020-feed/templates/config.yaml":  oldTemplate("feed", ".Values.feed.text"),
	"020-feed/hooks/discover.sh":      "#!/bin/bash\nif [[ $1 == --config ]]; then\n  cat <<EOF\nconfigVersion: v1\nkubernetes:\n- name: source\n  kind: cm\n  namespace: {nameSelector: {matchNames: [$NS]}}\n  labelSelector: {matchLabels: {e2e: $NS}}\n  jqFilter: '.data.text'\nEOF\nfi\ntouch $NS-was-run\n",
	"030-guard/hooks/guard.sh":        "#!/bin/bash\nif [[ $1 == --config ]]; then\n  cat <<EOF\nconfigVersion: v1\nkubernetesValidating:\n- name: guard.example.com\n  namespace: {labelSelector: {matchLabels: {e2e: $NS}}}\n  labelSelector: {matchLabels: {guarded: 'yes'}}\n  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps], scope: Namespaced}]\nEOF\nfi\ntouch $NS-was-run\n",
	"040-batch/values.yaml":           "batchEnabled: true\n",
	"040-batch/templates/job.yaml":    oldTemplate("batch", ".Values.global.zone"),
	"050-quiet/values.yaml":           "quiet: {text: of a new version}\nquietEnabled: true\n",
	"050-quiet/templates/config.yaml": oldTemplate("quiet", ".Values.quiet.text"),
}

func oldTemplate(name, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-config, labels: {guarded: '" + map[bool]string{true: "yes", false: "no"}[name == "feed"] + "'}}\ndata:\n  zone: {{ .Values.global.zone }}\n  text: {{ " + text + " | quote }}\n"
}

// A tree of addon-operator is brought over, and Starling takes its releases over where they are: no
// object is deleted or made anew, and the release of a module whose hook is not written stays
// untouched until it is. The old webhook configuration stands in the way of what it covers until it is
// deleted, and of nothing else.
func TestATreeOfAddonOperatorIsTakenOver(t *testing.T) {
	t.Parallel()
	role := webhookRole(mirrors)
	role.HooksIn["$NS"] = append(role.HooksIn["$NS"], rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"addon-operator-webhooks"}, Verbs: []string{"get"},
	})
	f := (&fixture{t: t, ns: shared.Namespace(t)}).beside("addon-operator", nil, role)
	other := f.labelled() // the guard covers it
	f.touch("source", "from a hook")
	for name, values := range map[string]map[string]any{
		"web":   {"web": map[string]any{"text": "from the user"}},
		"feed":  {"feed": map[string]any{"text": "from a hook"}},
		"quiet": {"quiet": map[string]any{"text": "of an old version"}},
	} {
		values["global"] = map[string]any{"zone": "north"}
		install := action.NewInstall(helm(f.ns))
		install.ReleaseName, install.Namespace = name, f.ns
		if _, err := install.RunWithContext(t.Context(), &chart.Chart{
			Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV1, Name: name, Version: "0.2.0"},
			Templates: []*chart.File{{Name: "templates/config.yaml", Data: []byte(oldTemplate(name, ".Values."+name+".text"))}},
		}, values); err != nil {
			t.Fatal(err)
		}
	}
	f.configure(map[string]string{"global": "zone: north\n", "web": "text: from the user\n", "feedEnabled": "true", "guardEnabled": "true", "batchEnabled": "false",
		"quietMaintenance": "NoResourceReconciliation"})
	oldWebhook := f.oldWebhook("yes", other)
	uids := func() (out [6]types.UID) {
		for i, name := range []string{"web", "feed", "quiet"} {
			cm, err := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), name+"-config", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			secret, err := shared.Client.CoreV1().Secrets(f.ns).Get(t.Context(), "sh.helm.release.v1."+name+".v1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			out[2*i], out[2*i+1] = cm.UID, secret.UID
		}
		return out
	}
	before, deleted := uids(), f.countDeletes()

	old := t.TempDir()
	for name, text := range oldTree {
		path := filepath.Join(old, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "$NS", f.ns)), mode); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), program(), "new", "--from-addon-operator", old, "--modules", f.modules).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.start(webhookArgs(t)...)
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 2) // its objects have Starling's label now
	f.waitData("web-config", map[string]string{"zone": "north", "text": "from the user"})
	f.waitState("feed", status.ModuleWaiting, "not yet written")
	f.waitRevision(f.ns, "feed", 1)
	f.waitState("guard", status.ModuleWaiting, "not yet written")
	f.waitState("batch", status.ModuleOff)
	f.waitState("quiet", status.ModulePaused)
	f.waitRevision(f.ns, "quiet", 1)

	// The hooks are written. Nobody answers for the old webhook, which covers the object of feed.
	f.edit("020-feed/hooks/discover.star", `fail("not yet written: 020-feed/hooks/discover.sh", permanent = True)`, `values.set("text", ctx.snapshots["source"][0])`)
	f.edit("020-feed/module.star", `return waiting("not yet written: its hooks")`, "return True")
	f.edit("030-guard/hooks/guard.star", `fail("not yet written: 030-guard/hooks/guard.sh", permanent = True)`, `return deny("not here")`)
	f.edit("030-guard/module.star", `return waiting("not yet written: hooks that answer the API server")`, "return True")
	f.waitState("guard", status.ModuleReady)
	f.waitState("feed", status.ModuleFailed, "guard.example.com")
	if err := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), oldWebhook, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitState("feed", status.ModuleReady)
	f.waitData("feed-config", map[string]string{"zone": "north", "text": "from a hook"})
	f.eventually("the new hook answers", func() error {
		guarded := newConfigMap("some", nil)
		guarded.Labels = map[string]string{"guarded": "yes"}
		_, err := shared.Client.CoreV1().ConfigMaps(other).Create(t.Context(), guarded, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "not here") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if after := uids(); after != before {
		t.Errorf("objects were made anew: %v, then %v", before, after)
	}
	if names := deleted(); len(names) > 0 {
		t.Errorf("these were deleted: %q", names)
	}
	if _, err := os.Stat(f.ns + "-was-run"); err == nil {
		t.Error("the old hook was run")
	}
}

// edit replaces a text in a file of the tree, as people do.
func (f *fixture) edit(name, from, to string) {
	f.t.Helper()
	text, err := os.ReadFile(filepath.Join(f.modules, name))
	if err != nil || !strings.Contains(string(text), from) {
		f.t.Fatalf("%s holds no %q: %s (%v)", name, from, text, err)
	}
	f.write(map[string]string{name: strings.Replace(string(text), from, to, 1)})
}

// oldWebhook is the configuration that addon-operator has left, whose server is gone: it reviews ConfigMaps
// that are guarded in f's namespace, and in another one.
func (f *fixture) oldWebhook(guarded, other string) (name string) {
	f.t.Helper()
	name = "shell-operator-hooks-hooks" // no other test has one of this name
	fail, none, url := admissionv1.Fail, admissionv1.SideEffectClassNone, "https://127.0.0.1:1/hooks"
	namespaced := admissionv1.NamespacedScope
	webhooks := shared.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := webhooks.Create(f.t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "guard.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: []string{f.ns, other}},
			}},
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": guarded}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &namespaced},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { // deleted by the test, as a rule
		_ = webhooks.Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	f.eventually("the old webhook is in force", func() error {
		cm := newConfigMap("blocked", nil)
		cm.Labels = map[string]string{"guarded": guarded}
		_, err := shared.Client.CoreV1().ConfigMaps(f.ns).Create(f.t.Context(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "guard.example.com") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	return name
}

// countDeletes returns a function that names all ConfigMaps and releases of f's namespace that have been
// deleted since.
func (f *fixture) countDeletes() func() []string {
	f.t.Helper()
	ctx, core := f.t.Context(), shared.Client.CoreV1()
	cms, err1 := core.ConfigMaps(f.ns).List(ctx, metav1.ListOptions{Limit: 1})
	secrets, err2 := core.Secrets(f.ns).List(ctx, metav1.ListOptions{Limit: 1})
	if err := cmp.Or(err1, err2); err != nil {
		f.t.Fatal(err)
	}
	return func() (names []string) {
		f.t.Helper()
		const marker = "the-end"
		_, err1 := core.ConfigMaps(f.ns).Create(ctx, newConfigMap(marker, nil), metav1.CreateOptions{})
		_, err2 := core.Secrets(f.ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: marker}}, metav1.CreateOptions{})
		ofCMs, err3 := core.ConfigMaps(f.ns).Watch(ctx, metav1.ListOptions{ResourceVersion: cms.ResourceVersion})
		ofSecrets, err4 := core.Secrets(f.ns).Watch(ctx, metav1.ListOptions{ResourceVersion: secrets.ResourceVersion})
		if err := cmp.Or(err1, err2, err3, err4); err != nil {
			f.t.Fatal(err)
		}
		for _, events := range []watch.Interface{ofCMs, ofSecrets} {
			ended := false
			for e := range events.ResultChan() {
				o, is := e.Object.(metav1.Object)
				if !is {
					f.t.Fatalf("a watch ended with %v", e.Object)
				}
				if ended = o.GetName() == marker; ended {
					break
				}
				if _, isSecret := o.(*corev1.Secret); e.Type == watch.Deleted && (!isSecret || strings.HasPrefix(o.GetName(), "sh.helm.release.")) {
					names = append(names, o.GetName())
				}
			}
			events.Stop()
			if !ended {
				f.t.Fatal("a watch ended early")
			}
		}
		return names
	}
}
