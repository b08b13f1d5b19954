package generation

import (
	"strings"
	"testing"
)

// A kind of the module whose objects are parents must have a status, and the error shows the YAML that would do.
func TestParentsNeedAStatus(t *testing.T) {
	const head = `apiVersion: v1
kind: ConfigMap
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: apps.example.org}
spec:
  group: example.org
  names: {kind: App, plural: apps}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: true, storage: false}
  - name: v1
    served: true
    storage: true
`
	const generation, all = "observedGeneration: {type: integer}, ", "type: {}, status: {}, reason: {}, message: {}, lastTransitionTime: {}"
	keyed := func(fields string) string {
		return "conditions: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [type], items: {type: object, properties: {" + fields + "}}}"
	}
	of := func(fields string) string {
		return head + "    subresources: {status: {}}\n    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {" + fields + "}}}}}\n"
	}
	for name, c := range map[string]struct {
		definition, status string
		writes             bool
		want               string
	}{
		"none":               {"", "", false, ""},
		"none, but a status": {"", ", status = f", true, ""},
		"no subresource":     {head + "    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n", "", true, "version v1 has no subresource status; add to that version:\n    subresources:\n      status: {}\n"},
		"no schema":          {head + "    subresources: {status: {}}\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}\n", "", true, "controller apps writes the status of example.org/v1 App, and "},
		"no conditions":      {of("observedGeneration: {type: integer}"), ", status = f", true, "lastTransitionTime: {type: string, format: date-time}"},
		"no generation":      {of("conditions: {type: array}"), "", true, "version v1 has no status.observedGeneration, which"},
		"atomic conditions":  {of(generation + "conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}"), "", true, "has status.conditions without x-kubernetes-list-type: map by type"},
		"another key":        {of(generation + strings.ReplaceAll(keyed(all), "keys: [type]", "keys: [type, status]")), "", true, "has status.conditions without x-kubernetes-list-type: map by type"},
		"no reason":          {of(generation + keyed(strings.ReplaceAll(all, "reason: {}, ", ""))), "", true, "has no reason in the items of status.conditions"},
		"conditions":         {of(generation + keyed(all)), "", true, ""},
		"all in conditions":  {of(generation + keyed("type: {}, status: {}}, x-kubernetes-preserve-unknown-fields: true, description: {")), "", true, ""},
		"all fields":         {head + "    subresources: {status: {}}\n    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n", "", true, "has no schema of status.conditions"},
		"all of the status":  {head + "    subresources: {status: {}}\n    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n", "", true, "has no schema of status.conditions"},
		"another kind":       {strings.ReplaceAll(head, "kind: App,", "kind: Other,"), "", false, ""},
		"another version":    {strings.ReplaceAll(head, "name: v1\n", "name: v2\n"), "", false, ""},
	} {
		files := map[string]string{
			"web/module.star":  "module()\n",
			"web/hooks/a.star": "def f(ctx, o):\n    return {}\n\ncontroller(\"apps\", k8s.watch(\"example.org/v1\", \"App\"), f, owns = [owns(\"v1\", \"ConfigMap\")]" + c.status + ")\n",
		}
		if c.definition != "" {
			files["web/crds/apps.yaml"] = c.definition
		}
		m := load(t, files).Modules["web"]
		got := ""
		if m.Err != nil {
			got = m.Err.Error()
		}
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.want != "" && !strings.Contains(got, "web/crds/apps.yaml") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if len(m.Hooks) != 1 || m.Hooks[0].WritesStatus != c.writes {
			t.Errorf("%s: hooks %+v", name, m.Hooks)
		}
	}
}

// A kind that module.star declares has a status by itself.
func TestDeclaredParentsHaveAStatus(t *testing.T) {
	for args, want := range map[string]string{"": "", ", status = False": "and in web/module.star:2 version v1 has no subresource status; leave status = False,"} {
		m := load(t, map[string]string{
			"web/module.star":  "module()\ncrd(\"example.org/v1\", \"App\", {\"a\": \"string\"}" + args + ")\n",
			"web/hooks/a.star": "def f(ctx, o):\n    return []\n\ncontroller(\"apps\", k8s.watch(\"example.org/v1\", \"App\"), f, owns = [owns(\"v1\", \"ConfigMap\")])\n",
		}).Modules["web"]
		if want == "" && m.Err != nil || want != "" && (m.Err == nil || !strings.Contains(m.Err.Error(), want)) {
			t.Errorf("%q: %v, want %q", args, m.Err, want)
		}
	}
}

// One controller writes the status of an object: two would write over each other for ever.
func TestAStatusHasOneWriter(t *testing.T) {
	for second, want := range map[string]string{
		`k8s.watch("example.org/v1", "App")`:                 "web/hooks/a.star:5: controllers apps and more would both write the status of each App: make them one,",
		`k8s.watch("example.org/v1", "App", labels = "a=b")`: "",
		`k8s.watch("v1", "Namespace")`:                       "",
	} {
		m := load(t, map[string]string{
			"web/module.star": "module()\ncrd(\"example.org/v1\", \"App\", {\"a\": \"string\"})\n",
			"web/hooks/a.star": "def f(ctx, o):\n    return []\n\ncontroller(\"apps\", k8s.watch(\"example.org/v1\", \"App\"), f, owns = [owns(\"v1\", \"ConfigMap\")])\n" +
				"controller(\"more\", " + second + ", f, owns = [owns(\"v1\", \"Secret\")])\n",
		}).Modules["web"]
		if want == "" && m.Err != nil || want != "" && (m.Err == nil || !strings.Contains(m.Err.Error(), want)) {
			t.Errorf("%s: %v, want %q", second, m.Err, want)
		}
	}
}
