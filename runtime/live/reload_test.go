package live

import (
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

func TestDeploymentOfAPod(t *testing.T) {
	for pod, want := range map[string]string{
		"starling-6d4b75cb6d-hwt4s": "starling", "my-starling-6d4b75cb6d-hwt4s": "my-starling",
		"starling-0": "", "starling": "", "": "", "-a-b": "",
	} {
		if got := deploymentOf(pod); got != want {
			t.Errorf("%s: got %q, want %q", pod, got, want)
		}
	}
}

func TestDifferenceOfGenerations(t *testing.T) {
	module := func(name string) *generation.Module { return &generation.Module{Name: name} }
	same, global := module("same"), module("global")
	gen := func(global *generation.Module, all ...*generation.Module) *generation.Generation {
		g := &generation.Generation{Global: global, Modules: map[string]*generation.Module{}}
		for _, m := range all {
			g.Modules[m.Name] = m
			g.Names = append(g.Names, m.Name)
		}
		return g
	}
	before := gen(global, same, module("edited"), module("gone"))
	if got := difference(before, before); got != "" {
		t.Errorf("got %q", got)
	}
	after := gen(module("global"), same, module("edited"), module("new"))
	if got := difference(before, after); got != "changed: global, edited; new: new; gone: gone" {
		t.Errorf("got %q", got)
	}
}

// The series of a hook go with it, those of others stay.
func TestMetricsOfGoneHooks(t *testing.T) {
	m, reg := newTestMetrics(t)
	for _, hook := range []string{"web/a", "web/b"} {
		m.runs.WithLabelValues("web", hook).Inc()
		m.seconds.WithLabelValues("web", hook).Observe(1)
		m.limits.WithLabelValues("web", hook, "time").Inc()
		if errs := m.hooks.publish("web", hook, "", []effect.Metric{{Kind: effect.MetricSet, Name: "x", Value: 1}}); errs != nil {
			t.Fatal(errs)
		}
	}
	m.runs.WithLabelValues("shop", "shop/a").Inc()
	count := func() (series int) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				for _, l := range metric.GetLabel() {
					if l.GetName() == "hook" {
						series++
					}
				}
			}
		}
		return series
	}
	if got := count(); got != 9 {
		t.Fatalf("%d series", got)
	}
	m.gone("web", "web/a")
	if got := count(); got != 5 {
		t.Errorf("%d series are left", got)
	}
	m.gone("web", "")
	if got := count(); got != 1 {
		t.Errorf("%d series are left", got)
	}
}

// Hooks are marked as those of the tree that they run from; what runs keeps its mark.
func TestMarksFollowTheTree(t *testing.T) {
	dir := t.TempDir()
	m, err := openMarks(dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	begin := func(hook string) {
		t.Helper()
		if err := m.begin(hook); err != nil {
			t.Fatal(err)
		}
	}
	begin("web/rests")
	if err := m.end("web/rests", true); err != nil {
		t.Fatal(err)
	}
	begin("web/runs")
	if err := m.use("two"); err != nil {
		t.Fatal(err)
	}
	begin("web/rests")
	if err := m.end("web/runs", false); err != nil {
		t.Fatal(err)
	}
	begin("web/runs")
	// Killed now, and once more.
	for range 2 {
		if m, err = openMarks(dir, "two"); err != nil {
			t.Fatal(err)
		}
		begin("web/rests")
		begin("web/runs")
	}
	if m, err = openMarks(dir, "one"); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"web/rests", "web/runs"} {
		if m.quarantined(hook) != "" {
			t.Errorf("%s is quarantined in a tree in which it did nothing", hook)
		}
		if m.quarantinedIn("two", hook) == "" {
			t.Errorf("%s is not quarantined", hook)
		}
	}
}

func TestEventMessagesAreTextThatFits(t *testing.T) {
	for _, text := range []string{"short", strings.Repeat("x", maxEventMessage), strings.Repeat("ü", maxEventMessage), "x" + strings.Repeat("ü", maxEventMessage)} {
		if got := eventMessage(text); len(got) > maxEventMessage || !utf8.ValidString(got) || len(text) <= maxEventMessage && got != text {
			t.Errorf("got %d bytes of %d: %q", len(got), len(text), got)
		}
	}
}

// What becomes of the tree is told by who follows it, beside the engine.
func TestAReloadMayFailAsTheEngineBegins(t *testing.T) {
	metrics, err := NewMetrics(prometheus.NewRegistry(), "v0")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tree.Read(fstest.MapFS{"web/templates/a.yaml": {}}, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{
		o:      Options{Log: zerolog.Nop()},
		engine: engine.New(engine.Options{Jitter: func() float64 { return 0 }}), metrics: metrics,
		timer: time.NewTimer(time.Hour), look: time.NewTimer(time.Hour), requests: newRequests(),
	}
	d.generation.Store(generation.Load(t.Context(), generation.Options{Tree: read, Number: 1}))
	var told sync.WaitGroup
	told.Go(func() { d.tellOfReload("Normal", "Reloaded", "") })
	d.handle(engine.Start{})
	told.Wait()
}
