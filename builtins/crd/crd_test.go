package crd

import "testing"

func TestPlural(t *testing.T) {
	for kind, want := range map[string]string{
		"Application": "applications", "Policy": "policies", "Gateway": "gateways", "Ingress": "ingresses", "Box": "boxes", "Branch": "branches",
	} {
		if got := Plural(kind); got != want {
			t.Errorf("%s: %s", kind, got)
		}
	}
}
