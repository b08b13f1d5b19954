package sim

import (
	"strings"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/modules/tree"
)

// handling is a world with one module, whose hooks handle errors.
func handling(t *testing.T, hooks string) *World {
	t.Helper()
	read, err := tree.Read(fstest.MapFS{
		"web/module.star": {Data: []byte(`module(
    enabled = True,
    grants = [
        grant("v1", "ConfigMap", verbs = ["*"]),
        grant("v1", "Pod", verbs = ["*"]),
        grant("example.org/v1", "Gadget", verbs = ["get", "list"], namespaces = ["*"]),
    ],
    http = ["api.example.com", "other.example.com"],
)
`)},
		"web/hooks/a.star": {Data: []byte(hooks)},
	}, tree.Options{})
	return world(t, read, err)
}

// A read that the cluster does not let happen is answered by default=, and the run goes on.
func TestReadsHaveDefaults(t *testing.T) {
	w := handling(t, `
def reads(ctx):
    values.set("get", k8s.get("v1", "ConfigMap", "x", default = "unknown"))
    values.set("list", k8s.list("v1", "ConfigMap", ["web"], default = "unknown"))
    values.set("unserved", k8s.get("example.org/v1", "Gadget", "x", default = "unserved"))
    values.set("none", k8s.list("example.org/v1", "Gadget", default = []))

hook(reads, on = [startup])
`)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", nil)
	w.Store().FailNext("get", "ConfigMap", denied, 1)
	w.Store().FailNext("list", "ConfigMap", denied, 1)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err != nil {
		t.Fatal(err)
	}
	v := w.Values("web")
	if none, _ := v["none"].([]any); v["get"] != "unknown" || v["list"] != "unknown" || v["unserved"] != "unserved" || none == nil || len(none) > 0 {
		t.Errorf("values are %v", v)
	}
	w = handling(t, `
def reads(ctx):
    k8s.get("v1", "ConfigMap", "x")

hook(reads, on = [startup])
`)
	w.Store().FailNext("get", "ConfigMap", denied, 1)
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Runs[0].Failure(); err == nil || !strings.Contains(err.Error(), "k8s.get: ") {
		t.Errorf("without a default: %v", err)
	}
}
