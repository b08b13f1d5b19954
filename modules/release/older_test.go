package release

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/runtime/lane"
)

// A process with an older module tree takes no release back to its chart, nor a definition to its own, while the newer
// tree may come back. A release of the chart that both have goes on. Once the older tree counts, so does its chart.
func TestAnOlderTreeTakesNoReleaseBack(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	until := ""
	w.o.Older = func() string { return until }
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {of: DATA, n: \"{{ .Values.n }}\"}\n"
	chart := func(of string) Target {
		c := chartOf("web", strings.Replace(text, "DATA", of, 1))
		c.Digest = of
		return Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: c, Values: map[string]any{"n": 1}}}
	}
	reconcile := func(of string, n int, action string) {
		t.Helper()
		target := chart(of)
		target.Values["n"] = n
		res, err := w.Reconcile(t.Context(), target)
		held := lane.AwaitedBy(err) == lane.AwaitsTree && strings.Contains(err.Error(), "release web in namespace apps has the chart of a newer module tree, and stays as it is until noon")
		if (action == "held") != held || !held && (err != nil || res.Action != action) {
			t.Fatalf("chart %s, n = %d: %s, %v; want %s", of, n, res.Action, err, action)
		}
	}
	reconcile("old", 1, ActionInstalled)
	reconcile("new", 1, ActionUpgraded)
	until = "noon"
	reconcile("old", 1, "held")
	reconcile("old", 2, "held")
	reconcile("new", 2, ActionUpgraded) // whoever has this chart
	until = ""
	reconcile("old", 2, ActionUpgraded)

	// A chart that renders to the same counts by the record.
	same := chart("old")
	same.Chart.Digest, same.Values["n"] = "same", 2
	if res, err := w.Reconcile(t.Context(), same); err != nil || res.Action != ActionUnchanged {
		t.Fatal(res, err)
	}
	until = "noon"
	reconcile("old", 3, "held")
	until = ""
	reconcile("old", 3, ActionUpgraded)

	if err := w.bring(w.Manager, "web", false, thing("a")); err != nil {
		t.Fatal(err)
	}
	if err := w.bring(w.Manager, "web", false, thing("a", "b")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ until, fields string }{{"noon", "a b"}, {"", "a"}} {
		until = step.until
		if err := w.bring(w.Manager, "web", false, thing("a")); err != nil || w.fields() != step.fields {
			t.Errorf("until %q: there is %q (%v)", step.until, w.fields(), err)
		}
	}
	if !w.there(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "apps", "a") {
		t.Error("the object is gone")
	}
}

// A release says that it awaits a kind: an object of its chart has it, or a template asks for one. The words alone say
// nothing.
func TestAReleaseSaysThatItAwaitsAKind(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	for text, want := range map[string]lane.Awaited{
		"apiVersion: x.example/v1\nkind: Thing\nmetadata: {name: a}\n":         lane.AwaitsKind,
		"{{ lookup \"x.example/v1\" \"Thing\" \"\" \"\" }}":                    lane.AwaitsKind,
		"{{ fail \"the cluster does not serve kind Thing of x.example/v1\" }}": "",
	} {
		_, err := w.Reconcile(t.Context(), Target{Input: chart.Input{Module: "web", Name: "web", Namespace: "apps", Chart: chartOf("web", text), Installs: []builtins.Grant{{APIVersion: "x.example/v1", Kind: "Thing"}}}})
		if err == nil || !strings.Contains(err.Error(), "the cluster does not serve kind Thing of x.example/v1") || lane.AwaitedBy(err) != want {
			t.Errorf("%s: %v (%q)", text, err, lane.AwaitedBy(err))
		}
	}
}
