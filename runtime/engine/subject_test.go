package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// remembers is the state of a hook without for_each.
func (w *world) remembers(hook string) map[string]any {
	module, _, _ := strings.Cut(hook, "/")
	return w.e.module(module).byKey[hook].subjects.At("").Memory().State
}

// A run that somebody asks for fails or mends the object that it is about, as it does a hook
// without for_each.
func TestARunThatIsAskedForIsAboutItsObject(t *testing.T) {
	hook := eachHook("a", false)
	hook.Fn = noFunction{}
	w := newWorld(t, mod("web", isOn(), hook))
	w.objects["x"], w.objects["y"] = Object{Name: "x"}, Object{Name: "y"}
	w.start()
	var err error
	w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return effect.Effects{}, err }
	err = errors.New("boom")
	w.in(Requested{ID: 1, Hook: "web/a", Key: "x"})
	if got := w.e.Failures(); len(got) != 1 || got[0].Key != "x" || got[0].Reason != "boom" {
		t.Errorf("failures %+v", got)
	}
	err = nil
	w.in(Requested{ID: 2, Hook: "web/a", Key: "x"})
	if got := w.e.Failures(); len(got) != 0 {
		t.Errorf("failures %+v", got)
	}
}
