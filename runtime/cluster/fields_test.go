package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
		rival := Rival(parse(t, "apiVersion: v1\nkind: ConfigMap\n"+text), live, "", "", "")
		if rival.Field != want || (rival.Parent == "shop/other") != (want != "") || rival.Yields {
			t.Errorf("%s: %+v", text, rival)
		}
	}
	if rival := Rival(parse(t, "data: {a: \"2\"}"), live, "", mark, ""); rival.Parent != "" {
		t.Errorf("a parent is its own rival: %+v", rival)
	}
}

// Of parents that share a field one may take it: that of the mark which sorts first. Nothing is taken with it
// that is not shared, or that somebody else has, too.
func TestRivalYields(t *testing.T) {
	marks := map[string]string{}
	for _, key := range []string{"shop/a", "shop/b", "shop/c"} {
		name, value := reconcile.Holder{Key: key, Controller: "c", Subresource: "status"}.Mark("d")
		marks[name] = value
	}
	order := slices.Sorted(maps.Keys(marks))
	object := func(entries string, fields ...string) map[string]any {
		text := "apiVersion: v1\nkind: Service\nmetadata:\n  annotations:\n"
		for i, name := range order {
			text += "    " + name + ": " + marks[name] + "\n"
			at := fmt.Sprintf("manager: m%d, operation: Apply, apiVersion: v1, ", i)
			entries += "  - {" + at + `fieldsV1: {"f:metadata": {"f:annotations": {"f:` + name + `": {}}}}}` + "\n"
			entries += "  - {" + at + `subresource: status, fieldsV1: {"f:status": {` + fields[i] + "}}}\n"
		}
		return parse(t, text+"  managedFields:\n"+entries+`status: {count: 1, own: 1, conditions: [{type: A, status: "1"}, {type: B, status: "1"}], set: [x]}`)
	}
	const n, own = `"f:count": {}`, `"f:own": {}`
	const item = `"f:conditions": {"k:{\"type\":\"B\"}": {".": {}, "f:type": {}, "f:status": {}}}, "f:set": {"v:\"x\"": {}}`
	all := object("", n, n, n)
	for name, c := range map[string]struct {
		live    map[string]any
		want    string
		yields  bool
		by      int // the parent that asks
		parents []int
	}{
		"the first":           {all, "{count: 2}", true, 0, []int{1, 2}},
		"the second":          {all, "{count: 2}", false, 1, []int{0}},
		"the last":            {all, "{count: 2}", false, 2, []int{0, 1}},
		"nothing else":        {all, "{count: 1, set: [y]}", false, 0, nil},
		"not shared":          {object("", n, n+", "+own, n), "{count: 2, own: 2}", false, 0, []int{1}},
		"one of its own":      {object("", n+", "+own, n, n), "{count: 2, own: 2}", true, 0, []int{1, 2}},
		"an item of a list":   {object("", item, own, item), "{conditions: [{type: B, status: \"2\"}], set: [x]}", true, 0, []int{2}},
		"the item of others":  {object("", n, own, item), "{conditions: [{type: B, status: \"2\"}]}", false, 0, []int{2}},
		"another item":        {object("", n, own, item), "{conditions: [{type: A, status: \"2\"}]}", false, 0, nil},
		"somebody shares it":  {object(`  - {manager: kubectl, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:count": {}}}}`+"\n", n, n, n), "{count: 2}", false, 0, []int{1, 2}},
		"somebody has others": {object(`  - {manager: kubectl, operation: Update, fieldsV1: {"f:spec": {}, "f:status": {"f:set": {"v:\"x\"": {}}}}}`+"\n", n, n, n), "{count: 2, set: [x]}", true, 0, []int{1, 2}},
	} {
		rival := Rival(parse(t, "apiVersion: v1\nkind: Service\nstatus: "+c.want), c.live, fmt.Sprintf("m%d", c.by), order[c.by], "status")
		is := rival.Parent == "" && c.parents == nil
		for _, at := range c.parents {
			is = is || strings.HasSuffix(marks[order[at]], " "+rival.Parent)
		}
		if !is || rival.Yields != c.yields {
			t.Errorf("%s: %+v", name, rival)
		}
	}
}
