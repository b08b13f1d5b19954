package live

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics holds Starling's own metrics and those that hooks set.
type metrics struct {
	hooks    *hookMetrics
	runs     *prometheus.CounterVec
	failures *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	labels := []string{"module", "hook"}
	m := &metrics{
		hooks: newHookMetrics(),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "starling_hook_runs_total", Help: "Runs of a hook, failed ones included."}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "starling_hook_failures_total", Help: "Failed runs of a hook."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "starling_hook_run_seconds", Help: "Time that a run of a hook takes, commit aside.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}}, labels),
	}
	for _, c := range []prometheus.Collector{m.runs, m.failures, m.seconds, m.hooks} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) ran(module, hook string, took time.Duration, err error) {
	m.runs.WithLabelValues(module, hook).Inc()
	m.seconds.WithLabelValues(module, hook).Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues(module, hook).Inc()
	}
}
