package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/reads"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/generation"
)

// asking is a module with def enabled(), lists one whose chart reads which modules are on; a plain one does
// not.
func asking(m *generation.Module) *generation.Module {
	m.Enabled = &starlark.Builtin{}
	return lists(m)
}

func lists(m *generation.Module) *generation.Module {
	m.Reads = reads.Chart(map[string][]byte{"templates/a.yaml": []byte("{{ .Values.global.enabledModules }}")})
	m.ChartReads = m.Reads
	return m
}

func plain(m *generation.Module) *generation.Module {
	m.Reads = reads.Chart(nil)
	return m
}

func listOf(v map[string]any) string {
	global, _ := v["global"].(map[string]any)
	return fmt.Sprint(global["enabledModules"])
}

// enabled() sees the modules before its own one, hooks and charts see all; a change concerns those that
// read it, and a chart is never rendered with a part of it.
func TestEnabledModules(t *testing.T) {
	tree := func() []*generation.Module {
		return []*generation.Module{
			plain(mod("a", isOn())), lists(mod("b", isOn())), asking(mod("c", isOn())), asking(mod("d", isOn())), plain(mod("e", builtins.ModuleDecl{})),
		}
	}
	w := newWorld(t, tree()...)
	w.gen.Lists = true
	saw, fails := map[string][]string{}, false
	yes := func(name string) func(map[string]any) (builtins.Decision, error) {
		return func(v map[string]any) (builtins.Decision, error) {
			saw[name] = append(saw[name], listOf(v))
			if fails {
				return builtins.Decision{}, errBoom
			}
			return builtins.Decision{}, nil
		}
	}
	w.enabled["c"], w.enabled["d"] = yes("c"), yes("d")
	w.start()
	if got := saw["c"][0] + " " + saw["d"][0]; got != "[a b] [a b c]" {
		t.Errorf("enabled() saw %s", got)
	}
	w.wantReleased("a#1", "b#1", "c#1", "d#1")
	for _, r := range w.released {
		if !strings.HasPrefix(r, "a#") && !strings.Contains(r, "enabledModules:[a b c d]") {
			t.Errorf("released %s", r)
		}
	}
	w.released = nil
	w.in(Config{State: ConfigPresent, Data: map[string]string{"eEnabled": "true", "aEnabled": "false"}})
	w.wantReleased("e#1", "b#2", "c#2", "d#2")
	if got := listOf(w.e.Values("b")); got != "[b c d e]" {
		t.Errorf("b sees %s", got)
	}
	// Of what the user sets all see that.
	w.in(Config{State: ConfigPresent, Data: map[string]string{"global": "enabledModules: [mine]"}})
	if got := listOf(w.e.Values("b")); got != "[mine]" {
		t.Errorf("b sees %s", got)
	}
	w.in(Config{State: ConfigPresent})

	// After a restart nothing is rendered before the list is known: enabled() of c fails at first, and its
	// release is there.
	w.released, fails = nil, true
	w.start()
	for _, r := range w.released {
		if !strings.HasPrefix(r, "a#") { // which does not read it
			t.Errorf("released %s", r)
		}
	}
	w.state("b", status.ModuleReady, "")
	if got := listOf(w.e.Values("b")); got != "[a b c d]" {
		t.Errorf("b sees %s while enabled() fails", got)
	}
}

// A reload may have a module that runs read the list for the first time, and bring one that is not decided
// yet: the release of the reader waits until the list is known.
func TestEnabledModulesAfterAReload(t *testing.T) {
	hooked := func() *generation.Module { return mod("a", isOn(), code("1", hk("before", onBefore()))) }
	w := newWorld(t, plain(hooked()))
	w.start()
	w.released = nil
	var ask Evaluate
	w.told = func(a Action) {
		if a, is := a.(Evaluate); is {
			ask = a
		}
	}
	w.lists, w.holdEvaluate = true, true
	b := plain(mod("b", isOn()))
	b.Enabled = &starlark.Builtin{}
	w.reload(lists(hooked()), b)
	w.advance(time.Minute)
	w.wantReleased()
	w.state("a", status.ModuleReady, "")
	w.state("b", status.ModuleStarting, "asking enabled()")
	w.in(Evaluated{Op: ask.Op})
	slices.Sort(w.released)
	w.wantReleased("a#2", "b#1")
	if !strings.Contains(w.released[0], "enabledModules:[a b]") {
		t.Errorf("released %s", w.released[0])
	}
}

// A tree that does not mention the value does not have it.
func TestEnabledModulesUnlessMentioned(t *testing.T) {
	w := newWorld(t, mod("a", isOn()))
	w.start()
	if got := w.e.Values("a"); fmt.Sprint(got["global"]) != "map[]" {
		t.Errorf("got %v", got)
	}
}

// The list names modules in their order.
func TestEnabledModulesAreInOrder(t *testing.T) {
	late, app := 10, isOn()
	app.Requires = []string{"zoo"}
	w := newWorld(t, mod("late", builtins.ModuleDecl{Enabled: true, Weight: &late}), mod("app", app), mod("zoo", isOn()))
	w.gen.Lists = true
	w.start()
	if diff := cmp.Diff("[zoo app late]", listOf(w.e.Values("app"))); diff != "" {
		t.Error(diff)
	}
}
