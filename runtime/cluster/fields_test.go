package cluster

import (
	"testing"

	"github.com/starling-operator/starling/runtime/reconcile"
)

// A field that another parent has is told with its name, when it has another value.
func TestRival(t *testing.T) {
	other := reconcile.Holder{Key: "shop/other", Controller: "c"}
	mark, value := other.Mark("d")
	live := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: x
  labels: {team: red, app: x}
  annotations: {`+mark+`: `+value+`}
  managedFields:
  - {manager: them, operation: Apply, apiVersion: v1, fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}}}
  - manager: other
    operation: Apply
    apiVersion: v1
    fieldsV1: {"f:metadata": {"f:annotations": {"f:`+mark+`": {}}, "f:labels": {"f:team": {}}}, "f:data": {"f:a": {}, "f:list": {}}}
data: {a: "1", b: "2"}
`)
	for text, want := range map[string]string{
		`data: {b: "3"}`:                                "",
		`data: {a: "1", c: "3"}`:                        "",
		`data: {a: "2"}`:                                ".data.a",
		`metadata: {name: x, labels: {team: blue}}`:     ".metadata.labels.team",
		`metadata: {name: x, labels: {app: y}}`:         "", // the API server tells of those who are no parents
		`metadata: {name: x, annotations: {note: "1"}}`: "",
	} {
		parent, field := Rival(parse(t, "apiVersion: v1\nkind: ConfigMap\n"+text), live, "", "")
		if field != want || (parent == "shop/other") != (want != "") {
			t.Errorf("%s: %q has %q", text, parent, field)
		}
	}
	if parent, _ := Rival(parse(t, "data: {a: \"2\"}"), live, mark, ""); parent != "" {
		t.Errorf("a parent is its own rival: %q", parent)
	}
}
