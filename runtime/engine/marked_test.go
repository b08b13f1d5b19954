package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/effect"
)

// marker is what Options.Mark of a test tells.
type marker struct {
	refuse string // the name of what must not be evaluated
	seen   map[string]string
	open   int
}

func (m *marker) mark(what, digest string) (func(bool), error) {
	if what == m.refuse {
		return nil, errors.New("quarantined: 2 times in a row")
	}
	m.seen[what] = digest
	m.open++
	return func(bool) { m.open-- }, nil
}

// Code that the engine evaluates for one module is marked; quarantined code holds up
// that module, or leaves its last state in force; others go on.
func TestWhatTheEngineEvaluatesIsMarked(t *testing.T) {
	section := func(text string) Config {
		return Config{State: ConfigPresent, Data: map[string]string{"web": text, "shop": text}}
	}
	run := func(refuse string) (*world, *marker) {
		m := &marker{refuse: refuse, seen: map[string]string{}}
		w := newWorld(t, mod("web", isOn(), hk("a", onStartup(0))), mod("shop", isOn()))
		w.opts.Mark = m.mark
		w.hooks["web/a"] = func(RunHook) (effect.Effects, error) { return set("n", int64(5)), nil }
		w.start()
		w.in(section("replicas: 2"))
		w.advance(time.Minute)
		if m.open != 0 {
			t.Errorf("%d marks stay", m.open)
		}
		return w, m
	}

	w, m := run("")
	for _, what := range []string{"values of web", "values of shop", "section web of the ConfigMap", "section shop of the ConfigMap", "values of hook web/a"} {
		if m.seen[what] == "" {
			t.Errorf("%s is not marked; these are: %v", what, m.seen)
		}
	}
	w.state("web", status.ModuleReady, "")
	before := m.seen["section web of the ConfigMap"]
	w.in(section("replicas: 3"))
	if m.seen["section web of the ConfigMap"] == before {
		t.Error("another text has the same digest")
	}

	w, _ = run("section web of the ConfigMap")
	w.state("web", status.ModuleReady, "")
	if problems := w.module("web").Problems; !slices.ContainsFunc(problems, func(p string) bool {
		return strings.Contains(p, "section web of the ConfigMap: quarantined: 2 times in a row")
	}) {
		t.Errorf("the problems are %q", problems)
	}
	if web, shop := w.e.Values("web")["replicas"], w.e.Values("shop")["replicas"]; web != int64(1) || shop != int64(2) {
		t.Errorf("web has %v replicas, shop %v", web, shop)
	}

	w, _ = run("values of web")
	w.state("web", status.ModuleBroken, "values of web: quarantined: 2 times in a row")
	w.state("shop", status.ModuleReady, "")

	w, _ = run("values of hook web/a")
	w.state("web", status.ModuleFailed, "values of hook web/a: quarantined: 2 times in a row")
	w.state("shop", status.ModuleReady, "")
}
