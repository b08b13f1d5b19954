//go:build e2e

package release

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// keyedTemplate has lists in which a key comes and goes.
const keyedTemplate = `---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  ports:
  - {name: tcp, protocol: TCP, port: {{ .Values.port }}}
  {{- if .Values.more }}
  - {name: udp, protocol: UDP, port: {{ .Values.port }}}
  {{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: v, emptyDir: {}}]
      containers:
      - name: web
        image: "web:1"
        livenessProbe: {httpGet: {path: /, port: 80}}
        env:
        - {name: ONE, value: foo}
        - {name: TWO, value: bar}
        {{- if .Values.more }}
        - {name: ONE, value: baz}
        {{- end }}
        ports:
        - {name: tcp, protocol: TCP, containerPort: {{ .Values.port }}}
        {{- if .Values.more }}
        - {name: udp, protocol: UDP, containerPort: {{ .Values.port }}}
        {{- end }}
        volumeMounts:
        - {name: v, mountPath: /a}
        {{- if .Values.more }}
        - {name: v, mountPath: /b}
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
`

var (
	services  = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	budgets   = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
	ingresses = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"}
)

func (f *fixture) json(of schema.GroupVersionResource, name string, path ...string) string {
	f.t.Helper()
	live, err := f.dynamic.Resource(of).Namespace(f.apps).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	var v any = live.Object
	for _, key := range path {
		if list, is := v.([]any); is {
			v = list[0]
		}
		m, _ := v.(map[string]any)
		v = m[key]
	}
	text, err := json.Marshal(v)
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

// Elements of lists that share a part of their key come, move and go as the chart says, and come back.
func TestKeysThatListsHaveTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	container := []string{"spec", "template", "spec", "containers"}
	expect := func(step string, port int, more bool) {
		t.Helper()
		one, both := fmt.Sprintf(`{"containerPort":%d,"name":"tcp","protocol":"TCP"}`, port), ""
		service := fmt.Sprintf(`{"name":"tcp","port":%d,"protocol":"TCP","targetPort":%[1]d}`, port)
		env, mounts := `{"name":"ONE","value":"foo"},{"name":"TWO","value":"bar"}`, `{"mountPath":"/a","name":"v"}`
		if more {
			both = fmt.Sprintf(`,{"containerPort":%d,"name":"udp","protocol":"UDP"}`, port)
			service += fmt.Sprintf(`,{"name":"udp","port":%d,"protocol":"UDP","targetPort":%[1]d}`, port)
			env, mounts = `{"name":"TWO","value":"bar"},{"name":"ONE","value":"baz"}`, mounts+`,{"mountPath":"/b","name":"v"}`
		}
		for what, is := range map[string][2]string{
			"ports of the Service": {f.json(services, "web", "spec", "ports"), "[" + service + "]"},
			"ports":                {f.json(deployments, "web", append(container, "ports")...), "[" + one + both + "]"},
			"env":                  {f.json(deployments, "web", append(container, "env")...), "[" + env + "]"},
			"mounts":               {f.json(deployments, "web", append(container, "volumeMounts")...), "[" + mounts + "]"},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %s are %s, want %s", step, what, is[0], is[1])
			}
		}
	}
	target := func(port int, more bool) Target {
		return f.target(map[string]any{"port": int64(port), "more": more}, keyedTemplate)
	}
	f.reconcile(target(53, true))
	expect("installed", 53, true)
	f.reconcile(target(53, false))
	expect("gone", 53, false)
	f.reconcile(target(53, true))
	expect("come", 53, true)
	f.reconcile(target(5353, true))
	expect("moved", 5353, true)
	for of, patch := range map[schema.GroupVersionResource]string{
		services:    `{"spec":{"ports":[{"name":"tcp","protocol":"TCP","port":5353}]}}`,
		deployments: `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"web:9"}]}}}}`,
	} {
		if _, err := f.dynamic.Resource(of).Namespace(f.apps).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := f.Repair(t.Context(), RepairTarget{Target: named(target(5353, true).Ref())})
	if err != nil || len(out.Written) != 2 || out.Objects.Digest == "" {
		t.Errorf("%+v, %v", out, err)
	}
	expect("put right", 5353, true)
	if image := f.json(deployments, "web", append(container, "image")...); image != `"web:1"` {
		t.Errorf("the image is %s", image)
	}
}

// A field that somebody has put in the place of one that excludes it is put right, and the next upgrade works.
func TestFieldsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	meets := &meeting{}
	f.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		meets.next = next
		return meets
	})
	f.Manager = f.manager()
	target := func(port int) Target {
		return f.target(map[string]any{"port": int64(port), "more": false}, keyedTemplate)
	}
	f.reconcile(target(53))
	container := []string{"spec", "template", "spec", "containers"}
	edits := []struct {
		of    schema.GroupVersionResource
		patch string
		path  []string
	}{
		{budgets, `{"spec":{"minAvailable":null,"maxUnavailable":1}}`, []string{"spec"}},
		{deployments, `{"spec":{"template":{"spec":{"containers":[{"name":"web","livenessProbe":{"httpGet":null,"tcpSocket":{"port":80}}}]}}}}`, append(container, "livenessProbe")},
		{deployments, `{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"ONE","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}}}`, append(container, "env")},
		{ingresses, `{"spec":{"defaultBackend":{"service":null,"resource":{"apiGroup":"example.org","kind":"Bucket","name":"b"}}}}`, []string{"spec"}},
	}
	for i, edit := range edits {
		before := f.json(edit.of, "web", edit.path...)
		if _, err := f.dynamic.Resource(edit.of).Namespace(f.apps).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(edit.patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
			t.Fatal(err)
		}
		if f.json(edit.of, "web", edit.path...) == before {
			t.Fatalf("edit %d changes nothing", i)
		}
		object := f.dynamic.Resource(edit.of).Namespace(f.apps)
		once := &encounter{object: "/" + edit.of.Resource + "/web", most: 1, form: types.MergePatchType, others: func() {
			// As a controller writes its status between the apply that is refused and the write of the whole object.
			if _, err := object.Patch(t.Context(), "web", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"seen":"%d"}}}`, i), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}}
		meets.with.Store(once)
		if i%2 == 0 {
			f.reconcile(target(54 + i))
		}
		out, err := f.Repair(t.Context(), RepairTarget{Target: named(target(53).Ref())})
		if err != nil || out.Objects.Digest == "" || i%2 == 1 && len(out.Written) != 1 {
			t.Errorf("edit %d: %+v, %v", i, out, err)
		}
		if now := f.json(edit.of, "web", edit.path...); now != before || once.met.Load() == 0 {
			t.Errorf("edit %d: %s, want %s; %d writes of the whole object", i, now, before, once.met.Load())
		}
	}
}

// movingTemplate has an object that becomes a hook, and one whose kind is served in another version.
const movingTemplate = `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  {{- if .Values.hook }}
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-2"}
  {{- end }}
data: {hook: "{{ .Values.hook }}"}
{{- if .Values.version }}
---
apiVersion: {{ .Values.group }}/{{ .Values.version }}
kind: Thing
metadata: {name: a}
{{- end }}
`

// An object that becomes a hook, and comes back, stays the same one.
func TestAnObjectThatBecomesAHook(t *testing.T) {
	t.Parallel()
	f := setup(t)
	uid := func() string { return f.json(configMaps, "settings", "metadata", "uid") }
	step := func(hook bool) {
		t.Helper()
		f.reconcile(f.target(map[string]any{"hook": hook}, movingTemplate))
		if data := f.configMap("settings"); data["hook"] != fmt.Sprint(hook) {
			t.Errorf("the object says %v", data)
		}
	}
	step(false)
	was := uid()
	for _, hook := range []bool{true, false} {
		step(hook)
		if now := uid(); now != was {
			t.Errorf("hook: %t: it is another one", hook)
		}
	}
	if done, err := f.Uninstall(t.Context(), f.target(nil).Ref(), 0); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
	if _, err := f.dynamic.Resource(configMaps).Namespace(f.apps).Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the uninstall: %v", err)
	}
}

// An object that a revision holds in a version which is served no more is upgraded, and one whose kind is gone holds
// up neither upgrade nor uninstall.
func TestVersionsAndKindsThatGo(t *testing.T) {
	t.Parallel()
	f := setup(t)
	group := f.ns + ".example"
	things := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
	crds := f.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	define := func(alpha bool) {
		t.Helper()
		version := func(name string, served, stored bool) string {
			return fmt.Sprintf(`{"name":%q,"served":%t,"storage":%t,"schema":{"openAPIV3Schema":{"type":"object"}}}`, name, served, stored)
		}
		text := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.%s"},"spec":{"group":%[1]q,"scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[%s,%s]}}`,
			group, version("v1alpha1", alpha, alpha), version("v1", !alpha, !alpha))
		force := true
		if _, err := crds.Patch(t.Context(), "things."+group, types.ApplyPatchType, []byte(text), metav1.PatchOptions{FieldManager: "somebody", Force: &force}); err != nil {
			t.Fatal(err)
		}
	}
	target := func(version string) Target {
		target := f.target(map[string]any{"hook": false, "group": group, "version": version}, movingTemplate)
		target.Installs[0].APIVersion = group + "/" + version
		return target
	}
	served := func(version string) {
		t.Helper()
		eventually(t, version+" is served", func() bool {
			f.ResetDiscovery()
			_, err := f.dynamic.Resource(things.GroupResource().WithVersion(version)).Namespace("default").List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
	}
	define(true)
	served("v1alpha1")
	eventually(t, "it is installed", func() bool {
		_, err := f.Reconcile(t.Context(), target("v1alpha1"))
		return err == nil
	})
	was := f.json(things.GroupResource().WithVersion("v1alpha1"), "a", "metadata", "uid")
	define(false)
	served("v1")
	eventually(t, "v1alpha1 is gone", func() bool {
		_, err := f.dynamic.Resource(things.GroupResource().WithVersion("v1alpha1")).Namespace(f.apps).Get(t.Context(), "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	f.Manager = f.manager()
	f.reconcile(target("v1"))
	if now := f.json(things, "a", "metadata", "uid"); now != was {
		t.Error("it is another object")
	}
	if err := crds.Delete(t.Context(), "things."+group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is gone", func() bool {
		_, err := f.dynamic.Resource(things).Namespace(f.apps).List(t.Context(), metav1.ListOptions{})
		return apierrors.IsNotFound(err)
	})
	f.Manager = f.manager()
	if done, err := f.Uninstall(t.Context(), target("v1").Ref(), 0); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
}
