package effect

import (
	"strings"
	"testing"
)

func TestInstanceOwns(t *testing.T) {
	own := Instance{Namespace: "ops", Name: "starling"}
	for _, tt := range []struct {
		apiVersion, kind, namespace, name string
		want                              bool
	}{
		{"v1", "ConfigMap", "ops", "starling", true},
		{"v1", "ConfigMap", "ops", "starling-releases", true},
		{"v1", "ConfigMap", "ops", "starling-modules", false},
		{"v1", "ConfigMap", "web", "starling", false},
		{"v1", "Secret", "ops", "starling-kept-web", true},
		{"v1", "Secret", "ops", "starling-kept-web.2", true},
		{"v1", "Secret", "ops", "starling-set-0123", true},
		{"v1", "Secret", "ops", "starling-webhooks", true},
		{"v1", "Secret", "ops", "starling-records", true},
		{"v1", "Secret", "ops", "starling", false},
		{"v1", "Secret", "ops", "starlings-kept-web", false},
		{"v1", "Secret", "web", "starling-kept-web", false},
		{"v1", "Secret", "web", "sh.helm.release.v1.web.v1", true},
		{"coordination.k8s.io/v1", "Lease", "ops", "starling", true},
		{"coordination.k8s.io/v1beta1", "Lease", "ops", "starling", true},
		{"coordination.k8s.io/v1", "Lease", "ops", "other", false},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "ops.starling.web.pods.check.validate", true},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "", "other", false},
		{"example.com/v1", "Secret", "ops", "starling-kept-web", false},
		{"v1", "Pod", "ops", "starling", false},
	} {
		ref := Ref{APIVersion: tt.apiVersion, Kind: tt.kind, Namespace: tt.namespace, Name: tt.name}
		if got := own.Owns(ref); got != tt.want {
			t.Errorf("%s %s: got %v", tt.apiVersion, ref, got)
		}
		metadata := map[string]any{"namespace": tt.namespace, "name": tt.name}
		if got := own.OwnsObject(tt.apiVersion, tt.kind, map[string]any{"metadata": metadata}); got != tt.want {
			t.Errorf("%s %s as an object: got %v", tt.apiVersion, ref, got)
		}
		if (Instance{}).Owns(ref) {
			t.Errorf("%s %s belongs to nobody", tt.apiVersion, ref)
		}
	}
	labelled := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "web", "labels": map[string]any{InstanceLabel: "ops.other"}}}
	if !own.OwnsObject("v1", "Secret", labelled) || own.OwnsObject("v1", "Pod", labelled) {
		t.Error("the label of another instance counts for Secrets, and for Pods it does not")
	}
	token := func(namespace string) map[string]any {
		return map[string]any{"type": "kubernetes.io/service-account-token", "metadata": map[string]any{"name": "x", "namespace": namespace}}
	}
	named := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ops", "annotations": map[string]any{serviceAccount: "starling"}}}
	if !own.OwnsObject("v1", "Secret", token("ops")) || !own.OwnsObject("v1", "Secret", named) || own.OwnsObject("v1", "Secret", token("web")) || own.OwnsObject("v1", "ConfigMap", named) {
		t.Error("tokens of ServiceAccounts count in the operator's namespace alone")
	}
	if own.Label() != "ops.starling" {
		t.Error(own.Label())
	}
	long := Instance{Namespace: strings.Repeat("n", 40), Name: strings.Repeat("s", 40)}
	if len(long.Label()) != 63 || long.Label() == (Instance{Namespace: long.Namespace, Name: long.Name + "t"}).Label() {
		t.Error(long.Label())
	}
}

func TestNamesThatAnotherInstanceMayHave(t *testing.T) {
	for _, tt := range []struct {
		apiVersion, kind, name string
		want                   bool
	}{
		{"v1", "ConfigMap", "second-releases", true},
		{"v1", "ConfigMap", "releases", false},
		{"v1", "Secret", "second-kept-web", true},
		{"v1", "Secret", "second-set-0123", true},
		{"v1", "Secret", "second-releases-1", true},
		{"v1", "Secret", "second-webhooks", true},
		{"v1", "Secret", "second-records", true},
		{"v1", "Secret", "second-marks", true},
		{"v1", "Secret", "second", false},
		{"coordination.k8s.io/v1", "Lease", "second", true},
		{"admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "x", true},
		{"example.com/v1", "Lease", "second", false},
		{"v1", "Pod", "second-kept-web", false},
	} {
		if got := MayBeOthers(Ref{APIVersion: tt.apiVersion, Kind: tt.kind, Name: tt.name}) != ""; got != tt.want {
			t.Errorf("%s %s: %v", tt.kind, tt.name, got)
		}
	}
}
