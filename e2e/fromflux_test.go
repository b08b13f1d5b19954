package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// fluxRelease is a HelmRelease whose records are kept in another namespace than its objects.
const fluxRelease = `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: web, namespace: $RECORDS}
spec:
  interval: 10m
  targetNamespace: $NS
  releaseName: web
  chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}
  driftDetection: {mode: enabled}
  values: {text: from the HelmRelease}
`

const fluxTemplate = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {app: web}
data: {text: {{ .Values.text }}}
`

// originLabels puts the labels of helm-controller on objects, and not on the templates of their Pods.
type originLabels struct{ of string }

func (o originLabels) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	return bytes.NewBufferString(strings.ReplaceAll(in.String(), "\n  labels: {", "\n  labels: {helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: "+o.of+", ")), nil
}

// docs/from-flux.md promises: a release that Flux has made is taken over as it is, in the steps of the page. The
// module waits until its chart and its records are there; then there is one more revision, the Deployment has the
// generation that it had, and nothing is deleted. Older versions of Flux write objects as Helm 3 does, newer ones
// apply them.
func TestAHelmReleaseIsTakenOver(t *testing.T) {
	for _, test := range []struct {
		name, manager string
		operation     metav1.ManagedFieldsOperationType
	}{
		{"written", "helm-controller", metav1.ManagedFieldsOperationUpdate},
		{"applied", "helm-controller", metav1.ManagedFieldsOperationApply},
		{"another", "terraform-provider-helm_v3.1.0_x5", metav1.ManagedFieldsOperationUpdate}, // one with Helm in its process
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			takesHelmReleaseOver(t, test.manager, test.operation)
		})
	}
}

func takesHelmReleaseOver(t *testing.T, manager string, operation metav1.ManagedFieldsOperationType) {
	f := &fixture{t: t, ns: shared.Namespace(t), name: "starling", modules: t.TempDir()}
	records := shared.Namespace(t)
	config := helm(f.ns)
	config.Releases = storage.Init(driver.NewSecrets(shared.Client.CoreV1().Secrets(records)))
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.PostRenderer = "web", f.ns, originLabels{records}
	if _, err := install.RunWithContext(t.Context(), &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: "1.0.0"},
		Templates: []*chart.File{{Name: "templates/all.yaml", Data: []byte(fluxTemplate)}},
	}, map[string]any{"text": "from the HelmRelease"}); err != nil {
		t.Fatal(err)
	}
	deployment := func() metav1.ObjectMeta {
		d, err := shared.Client.AppsV1().Deployments(f.ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d.ObjectMeta
	}
	by := func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		for i, e := range entries {
			if e.Subresource == "" && e.Manager == "e2e.test" { // as Helm names itself here
				entries[i].Manager, entries[i].Operation = manager, operation
			}
		}
		return entries
	}
	f.eventually("the objects are Flux's", func() error {
		d, err1 := shared.Client.AppsV1().Deployments(f.ns).Get(t.Context(), "web", metav1.GetOptions{})
		cm, err2 := shared.Client.CoreV1().ConfigMaps(f.ns).Get(t.Context(), "web", metav1.GetOptions{})
		if err := cmp.Or(err1, err2); err != nil {
			return err
		}
		if d.Status.ObservedGeneration == 0 {
			return errors.New("nobody has seen the Deployment yet")
		}
		d.ManagedFields, cm.ManagedFields = by(d.ManagedFields), by(cm.ManagedFields)
		_, err1 = shared.Client.AppsV1().Deployments(f.ns).Update(t.Context(), d, metav1.UpdateOptions{})
		_, err2 = shared.Client.CoreV1().ConfigMaps(f.ns).Update(t.Context(), cm, metav1.UpdateOptions{})
		return cmp.Or(err1, err2)
	})
	before, deleted := deployment(), f.countDeletes()

	// The module is made, and waits for what is missing.
	cmd := exec.CommandContext(t.Context(), program(), "new", "--from-flux", "-", "--modules", f.modules)
	cmd.Stdin = strings.NewReader(strings.NewReplacer("$NS", f.ns, "$RECORDS", records).Replace(fluxRelease))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Flux keeps the records of the release in namespace "+records) {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Remove(f.modules + "/MIGRATION.md"); err != nil {
		t.Fatal(err)
	}
	f.write(map[string]string{"web/chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/chart/templates/all.yaml": fluxTemplate})
	f.grantPrinted()
	f.start()
	f.waitState("web", status.ModuleWaiting, "not yet: its chart")
	if now := deployment(); now.Labels["starling.dev/released-by"] != "" {
		t.Errorf("the Deployment has changed while its module waits: %v, then %v", before, now)
	}

	// The records are copied, and the line is taken away.
	secret, err := shared.Client.CoreV1().Secrets(records).Get(t.Context(), "sh.helm.release.v1.web.v1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Namespace: f.ns, Labels: secret.Labels}, Type: secret.Type, Data: secret.Data}
	if _, err := shared.Client.CoreV1().Secrets(f.ns).Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.edit("web/module.star", `return waiting("not yet: its chart")`, "return True")
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 2)
	f.waitData("web", map[string]string{"text": "from the HelmRelease"})
	now := deployment()
	if now.UID != before.UID || now.Generation != before.Generation {
		t.Errorf("the Deployment is another one: generation %d of %s, then %d of %s", before.Generation, before.UID, now.Generation, now.UID)
	}
	if now.Labels["helm.toolkit.fluxcd.io/name"] != "" || now.Labels["app"] != "web" {
		t.Errorf("the labels of Flux stay: %v", now.Labels)
	}
	if names := deleted(); len(names) > 0 {
		t.Errorf("these were deleted: %q", names)
	}
	f.stop()
}
