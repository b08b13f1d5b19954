package live

import (
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestMetricsOfHooks(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg)
	if err != nil {
		t.Fatal(err)
	}
	publish := func(module, hook string, changes ...effect.Metric) []error {
		return m.publish(module, hook, changes)
	}
	for range 2 {
		if errs := publish("web", "web/a", effect.Metric{Kind: effect.MetricSet, Name: "ready", Value: 3, Labels: map[string]string{"zone": "x"}},
			effect.Metric{Kind: effect.MetricAdd, Name: "seen_total", Value: 2}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	if errs := publish("db", "db/a", effect.Metric{Kind: effect.MetricAdd, Name: "ready", Value: 1}); len(errs) != 1 {
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
	m.unpublish("web")
	if err := testutil.GatherAndCompare(reg, strings.NewReader(""), "ready", "seen_total"); err != nil {
		t.Error(err)
	}
	if errs := publish("db", "db/a", effect.Metric{Kind: effect.MetricAdd, Name: "ready", Value: 1}); len(errs) > 0 {
		t.Errorf("a name that is free again: %v", errs)
	}
}

func TestMetricsAreBounded(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for i := range maxSeries + 1 {
		errs = m.publish("web", "web/a", []effect.Metric{{Kind: effect.MetricSet, Name: "n", Labels: map[string]string{"i": strconv.Itoa(i)}}})
	}
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "fewer values") {
		t.Errorf("got %v", errs)
	}
}

func TestFieldManager(t *testing.T) {
	if got := fieldManager("web/hooks/a.star:f"); got != "starling/web/hooks/a.star:f" {
		t.Error(got)
	}
	long := fieldManager(strings.Repeat("x", 300))
	if len(long) > 128 || long == fieldManager(strings.Repeat("x", 301)) {
		t.Error(long)
	}
}
