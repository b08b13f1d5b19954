//go:build e2e

package release

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
)

// A Namespace of a chart stays while others have objects in it, and while it is the release's own. All that the API
// server itself serves is looked at; what the release has made in it, and what the cluster fills it with, is no reason.
func TestNamespacesOfChartsReal(t *testing.T) {
	f := setup(t)
	far, empty := f.apps+"-far", f.apps+"-empty"
	t.Cleanup(func() {
		for _, ns := range []string{far, empty} {
			_ = f.kube.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{})
		}
	})
	web := f.target(nil, "")
	web.Adopt = true // it makes the release's namespace before
	web.Chart = chartOf("web", "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.apps+"}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: "+far+"}}\n"+
		"---\n{apiVersion: v1, kind: Namespace, metadata: {name: "+empty+"}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+empty+"}}\n"+
		"---\n{apiVersion: v1, kind: Service, metadata: {name: a, namespace: "+empty+"}, spec: {ports: [{port: 80}]}}\n")
	web.Installs = []builtins.Grant{{APIVersion: "v1", Kind: "Namespace"}, {APIVersion: "v1", Kind: "ConfigMap", Namespaces: []string{"*"}}, {APIVersion: "v1", Kind: "Service", Namespaces: []string{"*"}}}
	f.reconcile(web)
	for _, ns := range []string{empty, far} { // as the controller manager does
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-root-ca.crt"}}
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if _, err := f.kube.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if _, err := f.kube.CoreV1().ServiceAccounts(ns).Create(t.Context(), sa, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	if _, err := f.kube.CoreV1().ConfigMaps(far).Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Uninstall(t.Context(), web.Ref(), 0); !done || err != nil {
		t.Fatal(done, err)
	}
	for ns, stays := range map[string]bool{f.apps: true, far: true, empty: false} {
		live, err := f.kube.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		if is := err == nil && live.DeletionTimestamp == nil; is != stays {
			t.Errorf("%s is there: %t, %v", ns, is, err)
		}
	}
	web.Chart = chartOf("web", "{apiVersion: v1, kind: Namespace, metadata: {name: "+far+"}}\n")
	f.reconcile(web)
	web.Chart = chartOf("web", "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n")
	web.Chart.Digest = "2"
	f.reconcile(web)
	if live, err := f.kube.CoreV1().Namespaces().Get(t.Context(), far, metav1.GetOptions{}); err != nil || live.DeletionTimestamp != nil {
		t.Errorf("dropped, it is gone: %v", err)
	}
}

// The field manager of a hook's object says of which release it is, also when the release has gone meanwhile.
func TestHooksOfOthersReal(t *testing.T) {
	f := setup(t)
	target := func(module string) Target {
		hook := "{apiVersion: v1, kind: ConfigMap, metadata: {name: h, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}}\n"
		return Target{Input: chart.Input{Module: module, Name: module, Namespace: f.apps, Chart: chartOf(module, hook)}}
	}
	f.reconcile(target("one"))
	f.refused(target("two"), `ConfigMap "h" in namespace `+f.apps+" is there already and belongs to a hook of release "+f.apps+"/one")
	if done, err := f.Uninstall(t.Context(), target("one").Ref(), 0); !done || err != nil {
		t.Fatal(done, err)
	}
	f.reconcile(target("one"))
	maps := f.kube.CoreV1().ConfigMaps(f.apps)
	if err := maps.Delete(t.Context(), "h", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "h"}}
	if _, err := maps.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	again := target("one")
	again.Chart = chartOf("one", "{apiVersion: v1, kind: ConfigMap, metadata: {name: h, annotations: {helm.sh/hook: pre-upgrade}}}\n")
	again.Chart.Digest = "2"
	f.refused(again, "belongs to no helm release")
}
