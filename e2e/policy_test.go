package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/status"
)

// policyChart is a module whose release waits for a Pod, or a Job of a hook, that no node takes, as its values say.
func policyChart(name, options string) map[string]string {
	files := mirror(name, "module(enabled = True, wait = True, timeout = \"5m\""+options+")\n")
	files[name+"/values.yaml"] = "text: plain\nreplicas: 0\njob: false\n"
	files[name+"/openapi/config-values.yaml"] = "type: object\nproperties: {replicas: {type: integer}, job: {type: boolean}, text: {type: string}}\n"
	files[name+"/templates/web.yaml"] = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
{{- if .Values.job }}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name }}, annotations: {helm.sh/hook: "pre-install,pre-upgrade"}}
spec:
  template:
    spec: {restartPolicy: Never, nodeSelector: {there-is-no: such-node}, containers: [{name: a, image: a}]}
{{- end }}
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
	f.waitDescribed("pol-mend", 1, release.StatusFailed, "its inputs have changed, so nobody waits for it any more: Deployment pol-mend")

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
	f.configure(map[string]string{"polMend": "job: false\n"})
	f.waitDescribed("pol-mend", 5, release.StatusDeployed, "")
	f.waitState("pol-mend", status.ModuleReady)
}
