package e2e

import (
	"bytes"
	"encoding/base64"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/starling-operator/starling/modules/status"
)

// noSecrets fails the test when said holds one of the texts, plain or in base64.
func noSecrets(t *testing.T, said []byte, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if bytes.Contains(said, []byte(text)) || bytes.Contains(said, []byte(base64.StdEncoding.EncodeToString([]byte(text)))) {
			t.Errorf("logs, status or metrics show %q", text)
		}
	}
}

// Values may be secret too. Whatever goes wrong with them, what they are stays out
// of logs and status: refused by a schema, by Helm, by the API server.
func TestValuesStayOutOfLogsAndStatus(t *testing.T) {
	t.Parallel()
	const inConfig, inHook, inSecret, inTemplate, inLabel = "hush-config-51", "hush-hook-52", "hush-secret-53", "hush-template-54", "hush label 55"
	role := mirrors
	role.Releases = map[string][]rbacv1.PolicyRule{"$NS": {renders("", "configmaps"), renders("", "secrets")}}
	f := newFixture(t, trees(mirror("refused", on), mirror("invalid", on), mirror("broken", on), mirror("writer", `
module(enabled = True, grants = [grant("v1", "Secret", verbs = ["apply"])])
`), mirror("labels", `
module(enabled = True, grants = [grant("v1", "Secret", verbs = ["create"]), grant("v1", "Secret", verbs = ["get"]), grant("v1", "ConfigMap", verbs = ["apply"])])
`), map[string]string{
		"labels/hooks/a.star": `
def make(ctx):
    k8s.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "labels"}, "stringData": {"text": "` + inLabel + `"}}, if_absent = True)

def write(ctx):
    text = base64.decode(k8s.get("v1", "Secret", "labels").data.text)
    metrics.set("labels", 1, labels = {"text": text})
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l"}, "data": {text: "x"}})

hook(make, on = [startup()])
hook(write, on = [startup(order = 1)])
`,
		"refused/openapi/config-values.yaml": "type: object\nproperties:\n  text: {type: string, pattern: '^[a-z]*$'}\n",
		"invalid/values.yaml":                "text: " + inSecret + "\n",
		"invalid/templates/cm.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: invalid, namespace: $NS}\n" +
			"data: {password: {{ .Values.text | quote }}}\n",
		"broken/values.yaml":       "text: " + inTemplate + "\n",
		"broken/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: broken}\ndata: {text: {{ .Values.text | atoi | required \"x\" }}{{ index .Values.text 99 }}}\n",
		"writer/hooks/a.star": `
def write(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "w"}, "data": {"password": "` + inHook + `"}})

hook(write, on = [startup()])
`,
	}), role)
	f.configure(map[string]string{"refused": "text: " + inConfig})
	f.start()
	f.waitState("invalid", status.ModuleFailed, "illegal base64 data at input byte")
	f.waitState("broken", status.ModuleFailed, "broken/templates/cm.yaml:4")
	f.waitState("writer", status.ModuleFailed, "writer/hooks/a.star:3", "illegal base64 data at input byte")
	f.waitState("labels", status.ModuleFailed, "labels/hooks/a.star:8", "***")
	f.waitState("refused", status.ModuleReady, "text")
	f.waitReady()

	said := []byte(f.said())
	for _, what := range []string{"modules", "hooks"} {
		out, err := f.process.Get(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, out...)
	}
	noSecrets(t, said, inConfig, inHook, inSecret, inTemplate, inLabel)
}
