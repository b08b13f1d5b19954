package check

import (
	"slices"
	"testing"
)

func TestPlainSecrets(t *testing.T) {
	obj := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"token": "blue"}},
		"data":     map[string]any{"DB_PASSWORD": "x", "passwordFile": "/run/x", "api-key": "x", "url": "x", "token": ""},
		"spec": map[string]any{"env": []any{
			map[string]any{"name": "AUTH_TOKEN", "value": "x"},
			map[string]any{"name": "AUTH_TOKEN", "value": "$(OTHER)"},
			map[string]any{"name": "PASSWORD", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "db", "key": "password"}}},
			map[string]any{"name": "SECRET_PATH", "value": "x"},
		}},
		"secretRef": map[string]any{"secret": "name"},
	}
	want := []string{"data.DB_PASSWORD", "data.api-key", "spec.env[0] AUTH_TOKEN"}
	if got := plainSecrets("", obj); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestOtherForms(t *testing.T) {
	want := map[string]any{"metadata": map[string]any{"name": "a", "uid": "x", "creationTimestamp": nil}, "spec": map[string]any{"cpu": "1000m", "n": int64(1), "list": []any{"a", "1.0"}, "gone": "x"}}
	live := map[string]any{"metadata": map[string]any{"name": "a", "uid": "y", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": map[string]any{"cpu": "1", "n": int64(1), "list": []any{"a", "1"}, "more": "x"}}
	if got := otherForms("", want, live); !slices.Equal(got, []string{`metadata.uid as "y", not "x"`, `spec.cpu as "1", not "1000m"`, `spec.list[1] as "1", not "1.0"`}) {
		t.Errorf("%q", got)
	}
}
