//go:build e2e

package release

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"

	"github.com/starling-operator/starling/modules/chart"
)

// newRealDrift is a driftWorld on the real API server.
func newRealDrift(t *testing.T) (*driftWorld, *fixture) {
	f := setup(t)
	client, err := dynamic.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	w := &driftWorld{Manager: f.Manager, t: t, client: client, instance: f.ns + ".starling", apps: f.apps, group: f.ns + ".drift.example.com"}
	w.serve()
	eventually(t, "the kind is served", func() bool {
		resources, err := f.kube.Discovery().ServerResourcesForGroupVersion(w.group + "/v1")
		return err == nil && len(resources.APIResources) > 0
	})
	w.ResetDiscovery()
	return w, f
}

func TestDriftCasesReal(t *testing.T) {
	t.Parallel()
	w, _ := newRealDrift(t)
	testDriftCases(t, w)
}

func TestTheNamespaceOfARoleReal(t *testing.T) {
	t.Parallel()
	w, _ := newRealDrift(t)
	testNamespaceOfARole(t, w)
}

func TestATextForAPortReal(t *testing.T) {
	t.Parallel()
	w, _ := newRealDrift(t)
	testATextForAPort(t, w)
}

func TestDriftOverWritesReal(t *testing.T) {
	t.Parallel()
	w, _ := newRealDrift(t)
	testDriftOverWrites(t, w)
}

func TestDriftLeftReal(t *testing.T) {
	w, _ := newRealDrift(t)
	testDriftLeft(t, w)
}

func TestOthersWriteMeanwhileReal(t *testing.T) {
	t.Parallel()
	w, f := newRealDrift(t)
	m := &meeting{}
	f.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		m.next = next
		return m
	})
	w.Manager = f.manager()
	testMeanwhile(t, w, m)
}

func TestRepairOfADeletedKindReal(t *testing.T) {
	t.Parallel()
	w, f := newRealDrift(t)
	crds := w.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	testDeletedKind(t, w, f.manager, func() {
		eventually(t, "the kind is gone", func() bool {
			_, err := crds.Get(t.Context(), "gadgets.gone."+w.group, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
}

// A start of an unchanged release takes no request more, and an install one write of the records.
func TestDriftTakesNoRequests(t *testing.T) {
	t.Parallel()
	f := setup(t)
	target := f.target(map[string]any{"color": "red"}, configMapTemplate)
	f.reconcile(target)
	before := f.requests.Load()
	if res := f.reconcile(target); res.Action != ActionUnchanged || res.Objects.Digest == "" {
		t.Errorf("%+v", res)
	}
	if n := f.requests.Load() - before; n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Of a namespace that is deleted, a repair waits for the end; then the release is lost.
func TestRepairInADeletedNamespace(t *testing.T) {
	t.Parallel()
	w, f := newRealDrift(t)
	target := w.target("red")
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	o := &others{w, configMaps}
	o.merge(`{"metadata":{"finalizers":["example.com/wait"]}}`) // the namespace stays for a while
	if err := f.kube.CoreV1().Namespaces().Delete(t.Context(), f.apps, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	repair := func() Repair {
		out, err := w.Repair(t.Context(), RepairTarget{Target: target})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	eventually(t, "it waits for the namespace", func() bool { return repair().Waits == "namespace "+f.apps+" is being deleted" })
	if _, err := w.Reconcile(t.Context(), target); err != nil && !strings.Contains(err.Error(), "being deleted") && !strings.Contains(err.Error(), "being terminated") {
		t.Errorf("%v", err)
	}
	o.merge(`{"metadata":{"finalizers":null}}`)
	eventually(t, "the namespace has gone", func() bool {
		_, err := f.kube.CoreV1().Namespaces().Get(context.Background(), f.apps, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if out := repair(); !out.Lost || out.Waits != "" {
		t.Errorf("%+v", out)
	}
	if res, err := w.Reconcile(t.Context(), target); err != nil || res.Action != ActionInstalled {
		t.Errorf("%+v, %v", res, err)
	}
}

// While somebody's helm upgrades a release and waits for its objects, nothing that it has written or
// deleted is put right.
func TestNoRepairDuringAnUpgradeByHand(t *testing.T) {
	t.Parallel()
	w, f := newRealDrift(t)
	target := w.target("red")
	target.Chart = chartOf("web", driftChart, `{{ if eq .Values.color "red" }}{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}{{ end }}`)
	if _, err := w.Reconcile(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	ch, err := chart.Installable(target.Chart)
	if err != nil {
		t.Fatal(err)
	}
	flags, helm := genericclioptions.NewConfigFlags(false), new(action.Configuration)
	flags.KubeConfig, flags.Namespace = &shared.Kubeconfig, &f.apps
	if err := helm.Init(flags, f.apps, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	upgrade, ended := action.NewUpgrade(helm), make(chan error, 1)
	upgrade.Namespace, upgrade.Wait, upgrade.Timeout = f.apps, true, 5*time.Minute // its Pods never run
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, err := upgrade.RunWithContext(ctx, "web", ch, map[string]any{"color": "blue"})
		ended <- err
	}()
	extra := w.client.Resource(configMaps).Namespace(w.apps)
	gone := func() bool {
		_, err := extra.Get(t.Context(), "extra", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	eventually(t, "helm has deleted the object", gone)
	key := func(name string) Key { return Key{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.apps, Name: name} }
	repair := RepairTarget{Target: target, Only: []Key{key("web"), key("extra")}, Gone: []Key{key("extra")}}
	out, err := w.Repair(t.Context(), repair)
	if err != nil || out.Lost || !strings.Contains(out.Waits, "pending-upgrade") || !gone() || (&others{w, configMaps}).color() != "blue" {
		t.Errorf("%+v, %v", out, err)
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("helm has not waited")
	}
	if out, err := w.Repair(t.Context(), repair); err != nil || !out.Lost || !gone() {
		t.Errorf("afterwards: %+v, %v", out, err)
	}
}
