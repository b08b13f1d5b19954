package engine

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
)

// A parent that is being deleted stays until nothing is left to be done about its children, and people
// are told for what it waits.
func TestAParentGoesAfterItsChildren(t *testing.T) {
	h := eachHook("a", false)
	h.Controller = &builtins.ControllerDecl{}
	h.Bindings = append(h.Bindings, onWatch("children-service"))
	w := newWorld(t, mod("web", isOn(), h))
	w.objects["x"] = Object{Name: "x"}
	told := func() string {
		in, err := w.e.Explain("web")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(in.Notes, "\n")
	}
	child := func(typ string) {
		w.in(WatchChanged{ID: "web/a#children-service", Events: []builtins.Event{{Type: typ, Binding: "children-service", Name: "x"}}})
	}
	w.waits = "wait Ingress x: web is not ready"
	w.start()
	if !w.objects["x"].Held {
		t.Fatal("no finalizer")
	}
	if got := told(); got != "controller web/a: x: wait Ingress x: web is not ready" {
		t.Errorf("told %q", got)
	}
	w.waits = ""
	w.runs = nil
	child("modified")
	w.ran("web/a[x] modified")
	if got := told(); got != "" {
		t.Errorf("told %q", got)
	}
	w.waits = "wait Service x: it is being deleted"
	w.happens("deleted", "x")
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; !there {
		t.Error("gone before its children")
	}
	w.waits = ""
	child("deleted")
	w.ran("web/a[x] cleanup")
	if _, there := w.objects["x"]; there {
		t.Error("still held")
	}
}
