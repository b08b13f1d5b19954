package drift

import (
	"encoding/json"
	"slices"
	"testing"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/engine"
)

type engineObject = engine.DriftObject

const metadata = `{
  "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
  "metadata": {
    "name": "web", "namespace": "shop", "resourceVersion": "812", "deletionTimestamp": "2026-01-02T00:00:00Z",
    "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
    "managedFields": [
      {"manager": "starling", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
       "fieldsV1": {"f:spec": {"f:paused": {}}}},
      {"manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:01Z", "fieldsType": "FieldsV1",
       "fieldsV1": {"f:spec": {"f:replicas": {}}}},
      {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:02Z", "fieldsType": "FieldsV1",
       "subresource": "status", "fieldsV1": {"f:status": {"f:replicas": {}, "f:conditions": {".": {}}}}}
    ]
  }
}`

func nothing(name, string) ([]owned.Path, bool) { return nil, false }

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func TestStateOfMetadata(t *testing.T) {
	s := read(decode(t, metadata), false, "starling", nothing)
	if s.version != 812 || s.release.Value() != (name{"shop", "web"}) || !s.known || !s.deleting || s.finished || !slices.Equal(s.managers(), []string{"kubectl-edit"}) {
		t.Errorf("%+v", s)
	}
	if job := read(decode(t, metadata), true, "starling", nothing); !job.finished {
		t.Error("a Job with conditions has not finished")
	}
	if other := read(decode(t, metadata), false, "helm", nothing); other.known {
		t.Error("fields of somebody else are owned")
	}
	if same, err := starlark.Equal(s, read(decode(t, metadata), false, "starling", nothing)); !same || err != nil {
		t.Errorf("equal: %v, %v", same, err)
	}
	changed := decode(t, metadata)
	changed["metadata"].(map[string]any)["managedFields"] = []any{}
	if same, err := starlark.Equal(s, read(changed, false, "starling", nothing)); same || err != nil {
		t.Errorf("equal: %v, %v", same, err)
	}
}

// Metadata of any form are read.
func FuzzRead(f *testing.F) {
	f.Add(metadata)
	f.Add(`{"metadata": {"managedFields": [1, {"fieldsV1": {"f:spec": 3}, "manager": "starling"}], "annotations": 4, "resourceVersion": -1}}`)
	f.Add(`{"metadata": []}`)
	f.Fuzz(func(t *testing.T, text string) {
		var obj map[string]any
		if json.Unmarshal([]byte(text), &obj) != nil {
			return
		}
		s := read(obj, true, "starling", nothing)
		if same, err := starlark.Equal(s, read(obj, true, "starling", nothing)); !same || err != nil {
			t.Errorf("it is read in two ways: %v, %v", same, err)
		}
	})
}
