package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	f.waitCondition("hk-web", "Ready", "False", "uninstall: ", "job clean failed: DeadlineExceeded; its objects stay", "(try 1)")
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
