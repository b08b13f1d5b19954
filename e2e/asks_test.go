package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/modules/status"
)

// A chart that asks what the cluster serves is rendered again once somebody has brought the kind, and once it is gone;
// one that does not ask stays at its revision, whatever a render of it would give.
func TestChartsThatAsk(t *testing.T) {
	t.Parallel()
	asks := mirror("web", on)
	asks["web/templates/cm.yaml"] = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: {{ .Release.Namespace }}}
data: {lamps: {{ .Capabilities.APIVersions.Has "$NS.example.com/v1/Lamp" | quote }}}
`
	other := mirror("other", on)
	other["other/templates/cm.yaml"] = `
apiVersion: v1
kind: ConfigMap
metadata: {name: other, namespace: {{ .Release.Namespace }}}
data: {random: {{ randAlphaNum 12 | quote }}}
`
	f := lampFixture(t, trees(asks, other, mirror("light", `module(enabled = True, installs = [grant("$NS.example.com/v1", "Lamp")])`), map[string]string{
		"light/templates/lamp.yml": `
{{- range .Capabilities.APIVersions }}{{ if eq . "$NS.example.com/v1/Lamp" }}
apiVersion: $NS.example.com/v1
kind: Lamp
metadata: {name: desk, namespace: {{ $.Release.Namespace }}}
spec: {color: red}
{{ end }}{{ end }}
`,
	}))
	f.start()
	f.waitState("light", status.ModuleReady)
	f.waitData("web", map[string]string{"lamps": "false"})
	f.waitRevision(f.ns, "other", 1)

	shared.Apply(t, strings.ReplaceAll(lamps("color"), "$NS", f.ns))
	f.waitData("web", map[string]string{"lamps": "true"})
	f.eventually("the lamp is there", func() error {
		_, err := f.lamp("desk")
		return err
	})
	f.waitRevision(f.ns, "light", 2)

	if err := shared.Dynamic.Resource(definitions).Delete(context.Background(), "lamps."+f.ns+".example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitData("web", map[string]string{"lamps": "false"})
	f.waitRevision(f.ns, "web", 3)
	f.waitRevision(f.ns, "light", 3)
	f.restart()
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 3)
	f.waitRevision(f.ns, "other", 1)
}
