package release

import (
	"strings"
	"testing"
)

const twoServices = `apiVersion: v1
kind: Service
metadata: {name: a}
spec:
  selector: {app: a}
  ports:
  - name: http
    port: 80
---
apiVersion: v1
kind: Service
metadata: {name: b}
spec:
  selector: {app: b}
  ports:
  - name: http
    port: 80
  - name: more
    port: "{{ .Values.port }}"
    protocol: TCP
`

// testATextForAPort has a chart give a port as a text: the error names the object that has it, its template and line.
func testATextForAPort(t *testing.T, w *driftWorld) {
	target := w.target("red")
	target.Chart, target.Values = chartOf("web", twoServices), map[string]any{"port": 1}
	const want = "web/templates/0.yaml:19: Service b: spec.ports[1].port must be "
	try := func() {
		t.Helper()
		_, err := w.Reconcile(t.Context(), target)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
	try()
	target.Chart = chartOf("web", strings.Replace(twoServices, `"{{ .Values.port }}"`, "1", 1))
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	target.Chart = chartOf("web", twoServices)
	try()
}

func TestATextForAPort(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	testATextForAPort(t, w)
}
