package engine

import (
	"errors"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestTheFirstRunOfASubject(t *testing.T) {
	fail, succeed, renew := (*firstRun).fail, func(f *firstRun) { *f = hasSucceeded }, (*firstRun).renew
	for _, c := range []struct {
		name          string
		steps         []func(*firstRun)
		tried, passed bool
	}{
		{"nothing", nil, false, false},
		{"fails", []func(*firstRun){fail}, true, false},
		{"succeeds", []func(*firstRun){fail, succeed}, true, true},
		{"fails later", []func(*firstRun){succeed, fail}, true, true},
		{"has other code", []func(*firstRun){succeed, renew}, false, true},
		{"has other code twice", []func(*firstRun){succeed, renew, renew}, false, true},
		{"fails with other code", []func(*firstRun){succeed, renew, fail}, true, true},
		{"has failed with the code before", []func(*firstRun){fail, renew}, false, false},
	} {
		var f firstRun
		for _, step := range c.steps {
			step(&f)
		}
		if f.tried() != c.tried || f.passed() != c.passed {
			t.Errorf("%s: tried %t, passed %t", c.name, f.tried(), f.passed())
		}
	}
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
