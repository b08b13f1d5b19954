package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// policyChart is a module whose release waits for a Pod, or a Job of a hook, that no node takes, as its values say.
func policyChart(name, options string) map[string]string {
	files := mirror(name, "module(enabled = True, wait = True, timeout = \"5m\""+options+")\n")
	files[name+"/values.yaml"] = "text: plain\nreplicas: 0\njob: false\ndeadline: 0\n"
	files[name+"/openapi/config-values.yaml"] = "type: object\nproperties: {replicas: {type: integer}, job: {type: boolean}, deadline: {type: integer}, text: {type: string}}\n"
	files[name+"/templates/web.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}, annotations: {helm.sh/hook: "{{ if .Values.job }}pre-install,pre-upgrade{{ else }}post-delete{{ end }}"}}
spec:
  backoffLimit: 0
  {{- with .Values.deadline }}
  activeDeadlineSeconds: {{ . }}
  {{- end }}
  template:
    spec: {restartPolicy: Never, nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
`
	return files
}

// waitDescribed waits for a revision with a status, and a description that contains a text.
func (f *fixture) waitDescribed(name string, revision int, want release.Status, text string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("revision %d of %s is %s", revision, name, want), func() error {
		all, err := history(f.ns, name)
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.Version == revision && r.Info.Status == want && strings.Contains(r.Info.Description, text) {
				return nil
			}
		}
		last := all[len(all)-1]
		return fmt.Errorf("the last one is revision %d, %s: %s", last.Version, last.Info.Status, last.Info.Description)
	})
}

// New values, and another chart, end at once what a release waits for: an object, or the Job of a hook.
func TestAMendEndsAWait(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", policyChart("pol-mend", ""))
	f.configure(map[string]string{"polMend": "replicas: 1\n"})
	f.start()
	f.waitPending("pol-mend", 1, release.StatusPendingInstall)
	f.configure(map[string]string{"polMend": "replicas: 0\n"})
	f.waitDescribed("pol-mend", 2, release.StatusDeployed, "")
	f.waitDescribed("pol-mend", 1, release.StatusSuperseded, "its inputs have changed, so nobody waits for it any more: Deployment pol-mend")

	job := func() (uid types.UID) {
		f.eventually("the Job is there", func() error {
			job, err := shared.Client.BatchV1().Jobs(f.ns).Get(t.Context(), "pol-mend", metav1.GetOptions{})
			if err == nil {
				uid = job.UID
			}
			return err
		})
		return uid
	}
	f.configure(map[string]string{"polMend": "job: true\n"})
	f.waitPending("pol-mend", 3, release.StatusPendingUpgrade)
	before := job()
	f.write(map[string]string{"pol-mend/templates/cm.yaml": ""})
	f.waitPending("pol-mend", 4, release.StatusPendingUpgrade)
	f.eventually("the Job is made anew", func() error {
		if job() == before {
			return errors.New("it is the same one")
		}
		return nil
	})
	f.waitDescribed("pol-mend", 3, release.StatusFailed, "failed pre-upgrade: pol-mend/templates/web.yaml: its inputs have changed, so nobody waits for it any more: Job pol-mend has not finished")
	f.configure(map[string]string{"polMend": "job: false\n"})
	f.waitDescribed("pol-mend", 5, release.StatusDeployed, "")
	f.waitState("pol-mend", status.ModuleReady)
}

// A revision that fails is rolled back, once: not again by a restart, nor by a process that is killed on the way. The
// annotation, and other values, try again.
func TestARollback(t *testing.T) {
	t.Parallel()
	f := withObjects(t, shared.Namespace(t), "starling", policyChart("pol-back", ", on_failure = \"rollback\""))
	f.start()
	f.waitDescribed("pol-back", 1, release.StatusDeployed, "Install complete")
	f.configure(map[string]string{"polBack": "job: true\ndeadline: 1\ntext: other\n"})
	f.waitPending("pol-back", 2, release.StatusPendingUpgrade)
	f.eventually("its hook has failed", func() error {
		return holds(f.process.Output(), []string{"job pol-back failed: DeadlineExceeded"})
	})
	f.process.Kill() // before the rollback, or in it
	f.freeLease()
	f.start()
	f.waitDescribed("pol-back", 3, release.StatusDeployed, "Rollback to 1")
	f.waitDescribed("pol-back", 2, release.StatusFailed, "job pol-back failed: DeadlineExceeded")
	f.waitDescribed("pol-back", 1, release.StatusSuperseded, "")
	f.waitCondition("pol-back", "Ready", "False", "revision 2 is rolled back to revision 1: ", "job pol-back failed: DeadlineExceeded")
	f.waitData("pol-back", map[string]string{"text": "plain"})
	f.process.Stop()
	f.start()
	f.waitCondition("pol-back", "Ready", "False", "revision 2 is rolled back to revision 1: ")

	f.patchObject("pol-back", `{"metadata":{"annotations":{"starling.dev/reconcile":"again"}}}`)
	f.waitDescribed("pol-back", 5, release.StatusDeployed, "Rollback to 3")
	f.configure(map[string]string{"polBack": "text: other\n"})
	f.waitDescribed("pol-back", 6, release.StatusDeployed, "Upgrade complete")
	f.waitCondition("pol-back", "Ready", "True")
	f.waitData("pol-back", map[string]string{"text": "other"})
}

// A test of the chart that fails lets the revision fail, which is rolled back. The helm command shows how tests went,
// and runs them by hand.
func TestTestsOfAChart(t *testing.T) {
	t.Parallel()
	files := policyChart("pol-test", ", test = True, on_failure = \"rollback\"")
	files["pol-test/templates/test.yaml"] = `apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}-test, annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: hook-succeeded}}
spec:
  completions: {{ if .Values.deadline }}1{{ else }}0{{ end }}
  backoffLimit: 0
  {{- with .Values.deadline }}
  activeDeadlineSeconds: {{ . }}
  {{- end }}
  template:
    spec: {restartPolicy: Never, nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
`
	f := withObjects(t, shared.Namespace(t), "starling", files)
	f.start()
	phase := func(revision int, want release.HookPhase) {
		t.Helper()
		rel, err := helm(f.ns).Releases.Get("pol-test", revision)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range rel.Hooks {
			if slices.Contains(h.Events, release.HookTest) && h.LastRun.Phase != want {
				t.Errorf("the test of revision %d is %s", revision, h.LastRun.Phase)
			}
		}
	}
	f.waitDescribed("pol-test", 1, release.StatusDeployed, "Install complete")
	phase(1, release.HookPhaseSucceeded)
	if _, err := action.NewReleaseTesting(helm(f.ns)).Run("pol-test"); err != nil {
		t.Errorf("helm test: %v", err)
	}
	f.configure(map[string]string{"polTest": "deadline: 1\ntext: other\n"})
	f.waitDescribed("pol-test", 3, release.StatusDeployed, "Rollback to 1")
	f.waitDescribed("pol-test", 2, release.StatusFailed, "failed test: pol-test/templates/test.yaml: job pol-test-test failed: DeadlineExceeded")
	phase(2, release.HookPhaseFailed)
	f.waitCondition("pol-test", "Ready", "False", "revision 2 is rolled back to revision 1: ")
	f.waitData("pol-test", map[string]string{"text": "plain"})
	f.configure(map[string]string{"polTest": "text: other\n"})
	f.waitDescribed("pol-test", 4, release.StatusDeployed, "Upgrade complete")
	phase(4, release.HookPhaseSucceeded)
}
