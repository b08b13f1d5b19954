package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// A pre-delete hook that never succeeds keeps the release: its objects stay, and it is as before when the module is on
// again. The annotation has it go without the hook, when the folder is gone, too.
func TestAHookKeepsTheRelease(t *testing.T) {
	t.Parallel()
	files := mirror("hk-web", on)
	files["hk-web/templates/clean.yaml"] = `apiVersion: batch/v1
kind: Job
metadata: {name: clean, annotations: {helm.sh/hook: pre-delete}}
spec:
  activeDeadlineSeconds: 1
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
`
	stuck := mirror("hk-stuck", on)
	stuck["hk-stuck/templates/clean.yaml"] = strings.NewReplacer("  activeDeadlineSeconds: 1\n", "", "name: clean", "name: stuck").Replace(files["hk-web/templates/clean.yaml"])
	f := withObjects(t, shared.Namespace(t), "starling", files, stuck, mirror("hk-other", on))
	f.start()
	f.waitCondition("hk-stuck", "Ready", "True")
	f.patchObject("hk-stuck", `{"spec":{"enabled":false}}`)
	f.waitCondition("hk-web", "Ready", "True")
	maps := shared.Client.CoreV1().ConfigMaps(f.ns)
	uid := func() types.UID {
		cm, err := maps.Get(t.Context(), "hk-web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return cm.UID
	}
	before := uid()

	f.patchObject("hk-web", `{"spec":{"enabled":false}}`)
	f.waitCondition("hk-web", "Ready", "False", "uninstall: ", "job clean failed: DeadlineExceeded; its objects stay", "(try ")
	if uid() != before {
		t.Error("its ConfigMap is another one")
	}
	f.patchObject("hk-web", `{"spec":{"enabled":true}}`)
	f.waitState("hk-web", status.ModuleReady)
	f.waitRevision(f.ns, "hk-web", 2)
	if uid() != before {
		t.Error("its ConfigMap is another one, once it is on again")
	}
	if err := maps.Delete(t.Context(), "hk-web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.eventually("the ConfigMap is back", func() error {
		_, err := maps.Get(t.Context(), "hk-web", metav1.GetOptions{})
		return err
	})

	f.eventually("the Job that never ends is there", func() error {
		_, err := shared.Client.BatchV1().Jobs(f.ns).Get(t.Context(), "stuck", metav1.GetOptions{})
		return err
	})
	f.patchObject("hk-stuck", `{"spec":{"enabled":true},"metadata":{"annotations":{"starling.dev/reconcile":"now"}}}`)
	f.waitState("hk-stuck", status.ModuleReady)
	f.waitRevision(f.ns, "hk-stuck", 2)

	f.write(map[string]string{"hk-web": ""})
	f.waitState("hk-web", status.ModuleFailed, "job clean failed: DeadlineExceeded")
	f.patchObject("hk-web", `{"metadata":{"annotations":{"starling.dev/reconcile":"uninstall-without-hooks"}}}`)
	f.eventually("it is gone", func() error {
		_, err := maps.Get(t.Context(), "hk-web", metav1.GetOptions{})
		if m, unknown := f.module("hk-web"); unknown == nil {
			return fmt.Errorf("it is %s, %s", m.State, m.Reason)
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("its ConfigMap is there: %w", err)
		}
		return nil
	})
}

// A Deployment that somebody scales while a hook of an upgrade runs is put right, by the upgrade when its objects come
// after the hook, and else by a repair. Both say who it was.
func TestScaledWhileAHookRuns(t *testing.T) {
	t.Parallel()
	chart := func(name, at string) map[string]string {
		files := mirror(name, "module(enabled = True, timeout = \"5m\")\n")
		files[name+"/templates/web.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}, annotations: {helm.sh/hook: ` + at + `}}
spec: {template: {spec: {restartPolicy: Never, nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}}}
`
		return files
	}
	f := withObjects(t, shared.Namespace(t), "starling", chart("hk-before", "pre-upgrade"), chart("hk-after", "post-upgrade"))
	f.start()
	names := []string{"hk-before", "hk-after"}
	for _, name := range names {
		f.waitState(name, status.ModuleReady)
	}
	f.configure(map[string]string{"hkBefore": "text: one", "hkAfter": "text: one"})
	for _, name := range names {
		f.eventually("a Pod of the Job is there", func() error {
			pods, err := shared.Client.CoreV1().Pods(f.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + name})
			if err != nil || len(pods.Items) != 1 {
				return fmt.Errorf("%d Pods, %w", len(pods.Items), err)
			}
			scale := []byte(`{"spec":{"replicas":3}}`)
			if _, err := shared.Client.AppsV1().Deployments(f.ns).Patch(t.Context(), name, types.MergePatchType, scale, metav1.PatchOptions{FieldManager: "kubectl"}, "scale"); err != nil {
				return err
			}
			done := []byte(`{"status":{"phase":"Succeeded"}}`)
			_, err = shared.Client.CoreV1().Pods(f.ns).Patch(t.Context(), pods.Items[0].Name, types.MergePatchType, done, metav1.PatchOptions{}, "status")
			return err
		})
		f.waitRevision(f.ns, name, 2)
		f.eventually("it is put right", func() error {
			d, err := shared.Client.AppsV1().Deployments(f.ns).Get(t.Context(), name, metav1.GetOptions{})
			if err == nil && *d.Spec.Replicas != 1 {
				err = fmt.Errorf("%s has %d replicas", name, *d.Spec.Replicas)
			}
			return err
		})
		f.eventually("the module says who has scaled it", func() error {
			o, err := f.object(name)
			if err != nil {
				return err
			}
			said, _, _ := unstructured.NestedString(o.Object, "status", "lastRepair", "message")
			return holds(said, []string{"Deployment " + f.ns + "/" + name + " was put right: kubectl had changed spec.replicas; module(ignore = [\"Deployment/" + name + " spec.replicas\"]) leaves it so"})
		})
		f.eventually("an Event says so", func() error { return holds(strings.Join(f.events(name), " "), []string{"Healed"}) })
	}
}
