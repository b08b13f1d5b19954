package release

import "testing"

func TestVersionOfAKind(t *testing.T) {
	served := []string{"apps/v1", "apps/v1/Deployment", "autoscaling/v1/HorizontalPodAutoscaler", "autoscaling/v2/HorizontalPodAutoscaler", "example.com/v1/Thing", "example.com/v1beta1/Thing",
		"networking.k8s.io/v1/Ingress", "v1", "v1/Pod"}
	for _, tt := range []struct{ apiVersion, kind, want string }{
		{"apps/v1beta1", "Deployment", "apps/v1"},
		{"v1", "Deployment", "apps/v1"},
		{"apps/v1", "Pod", "v1"},
		{"extensions/v1beta1", "Ingress", "networking.k8s.io/v1"},
		{"autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"},
		{"example.com/v2", "Thing", "example.com/v1"},
		{"other.com/v1", "Thing", ""}, // another one's kind of the same name
		{"other.com/v1", "Deployment", ""},
		{"policy/v1beta1", "PodSecurityPolicy", ""},
	} {
		if got := versionOf(served, tt.apiVersion, tt.kind); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.apiVersion, tt.kind, got, tt.want)
		}
	}
}
