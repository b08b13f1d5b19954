package modules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
)

// A hook that fails is one Event, whichever words its error has then, until it has been well. So it is through a
// restart. A module that fails for it tells of it already.
func TestHooksThatFailAreOneEvent(t *testing.T) {
	hook := func(name, why string) status.Hook {
		return status.Hook{ID: "web/hooks/a.star:" + name, LastError: why, State: status.HookOK}
	}
	e := &entry{}
	object := Object{Name: "web", UID: "u", Label: "ops.starling"}
	at, told := noon, []string(nil)
	look := func(state status.ModuleState, reason string, hooks ...status.Hook) {
		t.Helper()
		at = at.Add(2 * time.Second)
		f := web(state, 2)
		f.Module.Reason, f.Hooks = reason, hooks
		w := &world{instance: own, objects: map[string]Object{"web": object}, facts: map[string]Facts{"web": f}, names: []string{"web"}, now: at}
		s, _ := w.step("web", e)
		if s.status == nil {
			return
		}
		_, object.Status = s.status.encode()
		e.status, e.failing = s.status, s.failing
		for _, ev := range s.events {
			if ev.Reason == HookFailed || ev.Reason == "Failed" {
				told = append(told, ev.Reason+" "+ev.Message)
			}
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(told, want) {
			t.Errorf("%s: %q, want %q", what, told, want)
		}
		told = nil
	}
	look(status.ModuleReady, "", hook("one", ""), hook("two", ""))
	expect("all is well")
	look(status.ModuleReady, "", hook("one", "boom"), hook("two", ""))
	expect("one fails", "HookFailed hook web/hooks/a.star:one: boom")
	for n := range 50 {
		look(status.ModuleReady, "", hook("one", strings.Repeat("boom", n+1)), hook("two", ""))
	}
	expect("it goes on")
	look(status.ModuleReady, "", hook("one", "boom"), hook("two", "no"))
	expect("another one, too", "HookFailed hook web/hooks/a.star:two: no")
	e = &entry{}
	look(status.ModuleReady, "", hook("one", "boom"), hook("two", "no"))
	expect("a restart")
	look(status.ModuleReady, "", hook("one", ""), hook("two", ""))
	look(status.ModuleReady, "", hook("one", "boom"), hook("two", ""))
	expect("it fails again", "HookFailed hook web/hooks/a.star:one: boom")
	look(status.ModuleFailed, "hook hooks/a.star:two: no", hook("one", "boom"), hook("two", "no"))
	expect("the module fails for it", "Failed hook hooks/a.star:two: no")
}
