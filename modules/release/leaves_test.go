package release

import (
	"strings"
	"testing"
)

// A revision that is refused before it begins takes nothing from the one that is deployed.
func TestARevisionThatDoesNotBeginLeavesAll(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	configMap := func(names ...string) (text string) {
		for _, name := range names {
			text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {color: ours}\n"
		}
		return text
	}
	target := func(names ...string) Target {
		target := w.target("red")
		target.Chart = chartOf("web", configMap(names...))
		return target
	}
	if _, err := w.Reconcile(t.Context(), target("kept", "other")); err != nil {
		t.Fatal(err)
	}
	(&others{w, configMaps}).make(nil)
	if _, err := w.Reconcile(t.Context(), target("other", "web")); err == nil || !strings.Contains(err.Error(), `ConfigMap "web"`) {
		t.Fatalf("somebody's object: %v", err)
	}
	uid := w.uid(configMaps, w.apps, "kept")
	if res, err := w.Reconcile(t.Context(), target("kept", "other")); err != nil || res.Action != ActionUnchanged {
		t.Fatalf("%+v, %v", res, err)
	}
	if !w.there(configMaps, w.apps, "kept") || w.uid(configMaps, w.apps, "kept") != uid {
		t.Error("an object of the revision that is deployed was deleted")
	}
	if _, err := w.Reconcile(t.Context(), target("other")); err != nil || w.there(configMaps, w.apps, "kept") {
		t.Errorf("%v; an object that leaves the chart is there still: %t", err, w.there(configMaps, w.apps, "kept"))
	}
}

// A try with chart and values of a revision that has failed is the same revision: failures leave something to roll
// back to.
func TestATryAgainIsTheSameRevision(t *testing.T) {
	w, _ := newSimulatedDrift(t)
	release := func(value string, want int, fails bool) {
		t.Helper()
		target := w.target("red")
		target.Chart = chartOf("web", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {value: "+value+", revision: \"{{ .Release.Revision }}\"}\n")
		_, err := w.Reconcile(t.Context(), target)
		last, lost := w.latest(t.Context(), target.Ref())
		if (err != nil) != fails || lost != nil || last.Number != want || (last.Status == "failed") != fails {
			t.Fatalf("%v; revision %d is %s, %v", err, last.Number, last.Status, lost)
		}
	}
	release(`"good"`, 1, false)
	for range 3 {
		release("1", 2, true)
	}
	release("2", 3, true)
	release("2", 3, true)
	release(`"better"`, 4, false)
	if got := (&others{w, configMaps}).get().Object["data"]; got.(map[string]any)["revision"] != "4" {
		t.Errorf("the object says %v", got)
	}
}
