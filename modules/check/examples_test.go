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
