package metrics

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsWithAnotherPrefix(t *testing.T) {
	reg := prometheus.NewRegistry()
	for name, v := range map[string]float64{"starling_leader": 1, "addons_leader": 2, "nodes": 3, "go_x": 4} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "H."})
		g.Set(v)
		reg.MustRegister(g)
	}
	families, err := Renamed(reg, "addons_").Gather()
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] += f.Metric[0].Gauge.GetValue()
	}
	if len(got) != 3 || got["addons_leader"] != 1 || got["nodes"] != 3 || got["go_x"] != 4 {
		t.Errorf("got %v", got)
	}
	if err == nil || !strings.Contains(err.Error(), "the metric addons_leader of a hook is left out") {
		t.Errorf("error %v", err)
	}
	if n, err := testutil.GatherAndCount(Renamed(reg, Prefix), "starling_leader", "addons_leader"); n != 2 || err != nil {
		t.Errorf("with the prefix that they have: %d, %v", n, err)
	}
}
