//go:build e2e

package release

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const keysChart = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        env: [{name: ONE, value: foo}, {name: TWO, value: bar}{{ if .Values.twice }}, {name: ONE, value: baz}{{ end }}]
        ports: [{{ range .Values.ports }}{name: {{ lower . }}, protocol: {{ . }}, containerPort: {{ $.Values.number }}},{{ end }}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{{ range .Values.ports }}{name: {{ lower . }}, protocol: {{ . }}, port: {{ $.Values.number }}, targetPort: {{ lower . }}},{{ end }}]
`

// After each step variables and ports are those of the chart: by upgrades, and by repairs of what others have done.
func TestKeysOfListsReal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	deployments, services := f.kube.AppsV1().Deployments(f.apps), f.kube.CoreV1().Services(f.apps)
	now := func() string {
		deployment, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		service, err := services.Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		of := deployment.Spec.Template.Spec.Containers[0]
		out := []string{of.Image}
		for _, e := range of.Env {
			out = append(out, e.Name+"="+e.Value)
		}
		for _, p := range of.Ports {
			out = append(out, fmt.Sprintf("%d/%s", p.ContainerPort, p.Protocol))
		}
		for _, p := range service.Spec.Ports {
			out = append(out, fmt.Sprintf("%d/%s=%s", p.Port, p.Protocol, p.TargetPort.String()))
		}
		return strings.Join(out, " ")
	}
	values := func(twice bool, number int, ports ...any) map[string]any {
		return map[string]any{"twice": twice, "number": number, "ports": ports}
	}
	for _, step := range []struct {
		values map[string]any
		want   string
	}{
		{values(true, 53, "TCP"), "web:1 TWO=bar ONE=baz 53/TCP 53/TCP=tcp"},
		{values(true, 53, "TCP", "UDP"), "web:1 TWO=bar ONE=baz 53/TCP 53/UDP 53/TCP=tcp 53/UDP=udp"},
		{values(false, 53, "TCP", "UDP"), "web:1 ONE=foo TWO=bar 53/TCP 53/UDP 53/TCP=tcp 53/UDP=udp"},
		{values(true, 5353, "TCP", "UDP"), "web:1 TWO=bar ONE=baz 5353/TCP 5353/UDP 5353/TCP=tcp 5353/UDP=udp"},
		{values(false, 5353, "UDP"), "web:1 ONE=foo TWO=bar 5353/UDP 5353/UDP=udp"},
		{values(true, 53, "TCP", "UDP"), "web:1 TWO=bar ONE=baz 53/TCP 53/UDP 53/TCP=tcp 53/UDP=udp"},
	} {
		res := f.reconcile(f.target(step.values, keysChart))
		if got := now(); got != step.want {
			t.Errorf("%v gives\n%s, want\n%s", step.values, got, step.want)
		}
		if warns := strings.Contains(strings.Join(res.Unknown, "; "), "has name ONE twice"); warns != (step.values["twice"] == true) {
			t.Errorf("%v: warnings %q", step.values, res.Unknown)
		}
	}
	want := now()
	const edit = `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "theirs:1", "env": [{"name": "ONE", "value": "x"}, {"name": "ONE", "value": "y"}]}]}}}}`
	if _, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(edit), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Patch(t.Context(), "web", types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/ports/1"}]`), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Repair(t.Context(), RepairTarget{Target: named(f.target(nil).Ref())}); err != nil || now() != want {
		t.Errorf("a repair gives\n%s, want\n%s (%v)", now(), want, err)
	}
}

// Objects without a name are refused before anything of a release is there.
func TestNamesAreMissingReal(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.refused(f.target(map[string]any{"color": "red"}, configMapTemplate, "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: run-\n"),
		"web/templates/1.yaml:4: Job has metadata.generateName and no metadata.name")
	if _, err := f.kube.CoreV1().Namespaces().Get(t.Context(), f.apps, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace of the release: %v", err)
	}
}
