package e2e

import (
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/modules/status"
)

// deploy/chart promises what deploy/starling.yaml does: Helm installs it under the restricted Pod
// Security standard, Starling does the quickstart with the rights that it gives and no other, and
// what runs stays when the release goes. The API server takes the pod of each source of modules.
//
// It is no parallel test: its namespaces have fixed names.
func TestInstallChart(t *testing.T) {
	const ns = "starling-system"
	ownNamespaces(t, ns, "hello")
	shared.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+ns+", labels: {pod-security.kubernetes.io/enforce: restricted}}\n")
	chart, err := loader.LoadDir("../deploy/chart")
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(helm(ns))
	install.ReleaseName, install.Namespace = "starling", ns
	installed, err := install.Run(chart, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteAll(t, manifests(t, installed.Manifest)) })
	d := waitAvailable(t, ns, "starling")
	if err := restricted(t, ns); err != nil {
		t.Error(err)
	}

	f := &fixture{t: t, ns: ns, name: "starling", kube: shared.TokenKubeconfig(t, ns, "starling"), objects: true, single: "it is in the place of one Pod"}
	newVolume(f, "..data", mountedFiles(t, d))
	t.Setenv("POD_NAME", podOf(t, d)) // as the Deployment does
	waitRights(t, f.kube)
	if err := mayNot(t, f.kube); err != nil {
		t.Error(err)
	}
	f.start()
	f.waitReady()
	f.waitState("hello", status.ModuleReady)
	f.waitHello([]string{"fake-0"}, "Hello from Starling")
	if strings.Contains(f.process.Output(), "forbidden") {
		t.Errorf("something was not allowed:\n%s", f.process.Output())
	}

	for name, values := range map[string]map[string]any{
		"image":        {"modules": map[string]any{"from": "image"}},
		"two replicas": {"modules": map[string]any{"from": "image"}, "replicas": 2, "state": map[string]any{"claim": ""}},
		"image volume": {"modules": map[string]any{"from": "image", "image": map[string]any{"mount": "registry.example.com/modules:v1"}}},
		"ConfigMaps": {"modules": map[string]any{"from": "configMaps", "configMaps": []any{
			map[string]any{"name": "addons-note", "items": []any{map[string]any{"key": "module.star", "path": "note/module.star"}}},
		}}},
		"git": {"modules": map[string]any{"from": "git", "git": map[string]any{"repository": "https://example.com/addons.git", "secret": "git"}}},
	} {
		other := map[string]any{"replicas": 1, "webhooks": map[string]any{"certSecret": "certs"}, "state": map[string]any{"claim": "kept"}}
		maps.Copy(other, values)
		render := action.NewInstall(helm(ns))
		render.ReleaseName, render.Namespace, render.DryRun = "other", ns, true
		rendered, err := render.Run(chart, other)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		objects := manifests(t, rendered.Manifest)
		for i := range objects {
			o := &objects[i]
			r, err := shared.Resource(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}); err != nil {
				t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
			if o.GetKind() != "Deployment" {
				continue
			}
			// The standard holds for pods. That of the release is there, with its ServiceAccount and its class.
			spec, _, err := unstructured.NestedMap(o.Object, "spec", "template", "spec")
			if err != nil {
				t.Fatal(err)
			}
			spec["serviceAccountName"], spec["priorityClassName"] = "starling", ns+".starling"
			pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "other", "namespace": ns}, "spec": spec}}
			if r, err = shared.Resource(pod); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s: its pod: %v", name, err)
			}
		}
	}

	// The release goes; what runs stays.
	if code := f.process.Stop(); code != 0 {
		t.Errorf("stopped with exit code %d", code)
	}
	runs := waitAvailable(t, "hello", "hello")
	if _, err := action.NewUninstall(helm(ns)).Run("starling"); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Client.AppsV1().Deployments(ns).Get(t.Context(), "starling", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment is still there (%v)", err)
	}
	if stays := waitAvailable(t, "hello", "hello"); stays.UID != runs.UID || stays.Generation != runs.Generation {
		t.Errorf("what runs was touched: generation %d, then %d", runs.Generation, stays.Generation)
	}
}
