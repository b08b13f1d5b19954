package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestMetricsOfHooks(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := New()
	reg.MustRegister(m)
	publish := func(module, hook string, changes ...effect.Metric) []error {
		return m.Publish(module, hook, "", changes)
	}
	for range 2 {
		if errs := publish("web", "web/a", effect.Metric{Kind: effect.MetricSet, Name: "ready", Value: 3, Labels: map[string]string{"zone": "x"}},
			effect.Metric{Kind: effect.MetricAdd, Name: "seen_total", Value: 2}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	if errs := publish("web", "web/b", effect.Metric{Kind: effect.MetricAdd, Name: "ready", Value: 1}); len(errs) != 1 {
		t.Errorf("one name was a gauge and a counter: %v", errs)
	}
	want := `
# HELP ready Set by hooks.
# TYPE ready gauge
ready{hook="web/a",module="web",zone="x"} 3
# HELP seen_total Set by hooks.
# TYPE seen_total counter
seen_total{hook="web/a",module="web"} 4
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ready", "seen_total"); err != nil {
		t.Error(err)
	}
	m.Unpublish("web", "", "")
	if err := testutil.GatherAndCompare(reg, strings.NewReader(""), "ready", "seen_total"); err != nil {
		t.Error(err)
	}
	if errs := publish("db", "db/a", effect.Metric{Kind: effect.MetricAdd, Name: "ready", Value: 1}); len(errs) > 0 {
		t.Errorf("a name that is free again: %v", errs)
	}
}

func TestMetricsAreBounded(t *testing.T) {
	m := New()
	var errs []error
	for i := range maxLines + 1 {
		errs = m.Publish("web", "web/a", "", []effect.Metric{{Kind: effect.MetricSet, Name: "n", Labels: map[string]string{"i": strconv.Itoa(i)}}})
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "fewer values") {
		t.Errorf("got %v", errs)
	}
	one := []effect.Metric{{Kind: effect.MetricSet, Name: "n"}}
	if errs := m.Publish("db", "db/a", "", one); len(errs) > 0 {
		t.Errorf("another module has nothing left: %v", errs)
	}
	m.Unpublish("web", "", "")
	if errs := m.Publish("web", "web/a", "", one); len(errs) > 0 || m.all != 2 {
		t.Errorf("after it was switched off: %v, %d lines", errs, m.all)
	}
}

// Modules that together make all the series that there may be leave others some.
func TestAModuleHasRoomForAFewMetricsBesideOthers(t *testing.T) {
	m := New()
	for i := range maxAllLines {
		module := "web" + strconv.Itoa(i%6)
		m.Publish(module, module+"/a", "", []effect.Metric{{Kind: effect.MetricSet, Name: "n", Labels: map[string]string{"i": strconv.Itoa(i)}}})
	}
	for i := range fewLines + 1 {
		errs := m.Publish("db", "db/a", "", []effect.Metric{{Kind: effect.MetricSet, Name: "n", Labels: map[string]string{"i": strconv.Itoa(i)}}})
		if refused := len(errs) > 0; refused != (i == fewLines) {
			t.Fatalf("metric %d: %v", i+1, errs)
		}
	}
}

// A module that takes the name of another one's metric takes nothing from that one: both
// are shown, without a type where they differ.
func TestMetricsOfModulesThatShareAName(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New()
	reg.MustRegister(m)
	for _, c := range []struct {
		module string
		effect.Metric
	}{
		{"evil", effect.Metric{Kind: effect.MetricSet, Name: "seen_total", Value: 1}},
		{"evil", effect.Metric{Kind: effect.MetricSet, Name: "took_count", Value: 7}},
		{"evil", effect.Metric{Kind: effect.MetricObserve, Name: "size", Value: 1, Buckets: []float64{5}}},
		{"web", effect.Metric{Kind: effect.MetricAdd, Name: "seen_total", Value: 2}},
		{"web", effect.Metric{Kind: effect.MetricObserve, Name: "took", Value: 3, Buckets: []float64{2.5}}},
		{"web", effect.Metric{Kind: effect.MetricSet, Name: "size", Value: 4}},
		{"web", effect.Metric{Kind: effect.MetricSet, Name: "alone", Value: 5}},
	} {
		if errs := m.Publish(c.module, c.module+"/a", "", []effect.Metric{c.Metric}); len(errs) > 0 {
			t.Errorf("%s: %v", c.module, errs)
		}
	}
	want := `
# HELP alone Set by hooks.
# TYPE alone gauge
alone{hook="web/a",module="web"} 5
# HELP seen_total Set by hooks.
# TYPE seen_total untyped
seen_total{hook="evil/a",module="evil"} 1
seen_total{hook="web/a",module="web"} 2
# HELP size Set by hooks.
# TYPE size untyped
size{hook="web/a",module="web"} 4
# HELP size_bucket Set by hooks.
# TYPE size_bucket untyped
size_bucket{hook="evil/a",le="+Inf",module="evil"} 1
size_bucket{hook="evil/a",le="5",module="evil"} 1
# HELP size_count Set by hooks.
# TYPE size_count untyped
size_count{hook="evil/a",module="evil"} 1
# HELP size_sum Set by hooks.
# TYPE size_sum untyped
size_sum{hook="evil/a",module="evil"} 1
# HELP took_bucket Set by hooks.
# TYPE took_bucket untyped
took_bucket{hook="web/a",le="+Inf",module="web"} 1
took_bucket{hook="web/a",le="2.5",module="web"} 0
# HELP took_count Set by hooks.
# TYPE took_count untyped
took_count{hook="evil/a",module="evil"} 7
took_count{hook="web/a",module="web"} 1
# HELP took_sum Set by hooks.
# TYPE took_sum untyped
took_sum{hook="web/a",module="web"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	// The metric of the other hook has its type again once the name is its own.
	m.Unpublish("evil", "", "")
	want = `
# HELP seen_total Set by hooks.
# TYPE seen_total counter
seen_total{hook="web/a",module="web"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "seen_total"); err != nil {
		t.Error(err)
	}
}

func TestHistogramsOfHooks(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New()
	reg.MustRegister(m)
	took := func(v float64, buckets ...float64) effect.Metric {
		return effect.Metric{Kind: effect.MetricObserve, Name: "took", Value: v, Buckets: buckets}
	}
	if errs := m.Publish("web", "web/a", "", []effect.Metric{took(1, 1, 2), took(1.5, 1, 2), took(9, 1, 2)}); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, c := range []effect.Metric{took(1), {Kind: effect.MetricSet, Name: "took"}} {
		if errs := m.Publish("web", "web/a", "", []effect.Metric{c}); len(errs) != 1 {
			t.Errorf("%+v: another form was taken", c)
		}
	}
	want := `
# HELP took Set by hooks.
# TYPE took histogram
took_bucket{hook="web/a",module="web",le="1"} 1
took_bucket{hook="web/a",module="web",le="2"} 2
took_bucket{hook="web/a",module="web",le="+Inf"} 3
took_sum{hook="web/a",module="web"} 11.5
took_count{hook="web/a",module="web"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// Lines of two metrics with one name would have the whole page refused, or one of the
// two left out of it.
func TestHistogramsMeetNoOtherMetric(t *testing.T) {
	observe := effect.Metric{Kind: effect.MetricObserve, Name: "took", Value: 1}
	for _, name := range []string{"took_sum", "took_count", "took_bucket"} {
		set := effect.Metric{Kind: effect.MetricSet, Name: name, Value: 1}
		for _, changes := range [][]effect.Metric{{observe, set}, {set, observe}} {
			m := New()
			errs := m.Publish("web", "web/a", "", changes)
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), "take another name") {
				t.Errorf("%s and %s: got %v", changes[0].Name, changes[1].Name, errs)
			}
		}
	}
	if errs := New().Publish("web", "web/a", "", []effect.Metric{{Kind: effect.MetricSet, Name: "took"}, {Kind: effect.MetricSet, Name: "took_sum"}}); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestGroupsExpire(t *testing.T) {
	m := New()
	set := func(name, node string) effect.Metric {
		return effect.Metric{Kind: effect.MetricSet, Name: name, Group: "nodes", Labels: map[string]string{"node": node}}
	}
	expire := effect.Metric{Kind: effect.MetricExpire, Group: "nodes"}
	names := func() string {
		var out []string
		for _, s := range m.series {
			out = append(out, s.hook+":"+s.name+":"+s.labels["node"])
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	publish := func(hook string, changes ...effect.Metric) {
		t.Helper()
		if errs := m.Publish("web", hook, "", changes); len(errs) > 0 {
			t.Error(errs)
		}
	}
	publish("a", set("ready", "x"), set("ready", "y"), effect.Metric{Kind: effect.MetricAdd, Name: "seen_total", Value: 1})
	publish("b", set("ready", "x"))
	publish("a", set("ready", "y"), expire, set("ready", "z"))
	if got, want := names(), "a:ready:y a:ready:z a:seen_total: b:ready:x"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	publish("a", expire)
	publish("b", expire)
	publish("a", effect.Metric{Kind: effect.MetricAdd, Name: "ready", Value: 1}) // the name is free
	if got, want := names(), "a:ready: a:seen_total:"; got != want || m.all != 2 {
		t.Errorf("got %s (%d lines), want %s", got, m.all, want)
	}
}

// With for_each a hook measures many objects, each of which has its own groups, and
// takes its series with it.
func TestMetricsGoWithTheirObject(t *testing.T) {
	m := New()
	set := func(key, name string) {
		t.Helper()
		if errs := m.Publish("web", "web/a", key, []effect.Metric{{Kind: effect.MetricExpire, Group: "g"},
			{Kind: effect.MetricSet, Name: name, Group: "g", Labels: map[string]string{"of": key}}}); len(errs) > 0 {
			t.Error(errs)
		}
	}
	names := func() string {
		var out []string
		for _, s := range m.series {
			out = append(out, s.name+"/"+s.labels["of"])
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	set("a", "old")
	set("b", "ready")
	set("a", "ready")
	if got := names(); got != "ready/a ready/b" {
		t.Errorf("got %s", got)
	}
	m.Unpublish("web", "web/a", "a")
	m.Unpublish("web", "web/other", "b")
	if got := names(); got != "ready/b" {
		t.Errorf("got %s", got)
	}
}

// A series of one hook expires without a look at the series of all others.
func TestExpireCostsTheSameAmongMany(t *testing.T) {
	cost := func(hooks int) float64 {
		m := New()
		set := func(hook string) {
			changes := []effect.Metric{{Kind: effect.MetricExpire, Group: "g"}, {Kind: effect.MetricSet, Name: "x_" + hook, Value: 1, Group: "g"}}
			if errs := m.Publish("web", hook, "", changes); errs != nil {
				t.Fatal(errs)
			}
		}
		for i := range hooks {
			set(fmt.Sprintf("web%d", i))
		}
		return testing.AllocsPerRun(20, func() { set("web0") })
	}
	if few, many := cost(10), cost(5000); many > 2*few {
		t.Errorf("a run takes %v steps among 5,000 hooks, %v among 10", many, few)
	}
}
