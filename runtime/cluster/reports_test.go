package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A kind reports when the schema of its status says so, and its status is a subresource.
func TestKindsThatReport(t *testing.T) {
	kind := func(name, status string) string {
		return `"` + name + `": {"x-kubernetes-group-version-kind": [{"group": "example.org", "kind": "` + name + `", "version": "v1"}], "properties": {"status": ` + status + `}}`
	}
	patch := func(name, at string) string {
		return `"/apis/example.org/v1/` + name + `/{name}` + at + `": {"patch": {"x-kubernetes-group-version-kind": {"group": "example.org", "kind": "` + name + `", "version": "v1"}}}`
	}
	doc := `{"components": {"schemas": {` + strings.Join([]string{
		kind("Conditions", `{"properties": {"conditions": {}}}`), kind("Observed", `{"properties": {"observedGeneration": {}}}`),
		kind("Phase", `{"properties": {"phase": {}}}`), kind("None", `{}`), kind("Whole", `{"properties": {"conditions": {}}}`),
		`"other": {"x-kubernetes-group-version-kind": [{"group": "example.org", "kind": "Other", "version": "v2"}], "properties": {"status": {"properties": {"conditions": {}}}}}`,
	}, ",") + `}}, "paths": {` + strings.Join([]string{
		patch("Conditions", "/status"), patch("Observed", "/status"), patch("Phase", "/status"), patch("None", "/status"), patch("Whole", ""), patch("Other", "/status"),
	}, ",") + `}}`
	got := slices.Sorted(maps.Keys(reporting([]byte(doc), schema.GroupVersion{Group: "example.org", Version: "v1"})))
	if !slices.Equal(got, []string{"Conditions", "Observed"}) {
		t.Error(got)
	}
	if got := reporting([]byte("<html>"), schema.GroupVersion{Group: "example.org", Version: "v1"}); len(got) > 0 {
		t.Error(got)
	}
}
