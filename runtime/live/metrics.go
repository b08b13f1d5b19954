package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/runtime/effect"
)

// metrics holds Starling's own metrics and those that hooks set. It collects the
// latter itself: their names and labels are not known before they are set.
type metrics struct {
	runs     *prometheus.CounterVec
	failures *prometheus.CounterVec
	seconds  *prometheus.HistogramVec

	mu     sync.Mutex
	series map[string]*series
	kinds  map[string]effect.MetricKind
}

// series is one line of /metrics.
type series struct {
	name, module string
	kind         effect.MetricKind
	labels       map[string]string
	value        float64
}

// maxSeries bounds the series that hooks can make: each costs memory in every
// Prometheus that scrapes us.
const maxSeries = 10_000

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	labels := []string{"module", "hook"}
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "starling_hook_runs_total", Help: "Runs of a hook, failed ones included."}, labels),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "starling_hook_failures_total", Help: "Failed runs of a hook."}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "starling_hook_run_seconds", Help: "Time that a run of a hook takes, commit aside.",
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}}, labels),
		series: map[string]*series{},
		kinds:  map[string]effect.MetricKind{},
	}
	for _, c := range []prometheus.Collector{m.runs, m.failures, m.seconds, m} {
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

// publish changes the metrics of a hook. What cannot be is left out and reported.
func (m *metrics) publish(module, hook string, changes []effect.Metric) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, c := range changes {
		if err := m.change(module, hook, c); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (m *metrics) change(module, hook string, c effect.Metric) error {
	if kind, taken := m.kinds[c.Name]; taken && kind != c.Kind {
		return fmt.Errorf("metric %s: metrics.%s, but it was made by metrics.%s; one name has one kind", c.Name, c.Kind, kind)
	}
	labels := map[string]string{"module": module, "hook": hook}
	maps.Copy(labels, c.Labels)
	key := seriesKey(c.Name, labels)
	s := m.series[key]
	if s == nil {
		if len(m.series) >= maxSeries {
			return fmt.Errorf("metric %s: hooks may make %d series together; use labels with fewer values", c.Name, maxSeries)
		}
		s = &series{name: c.Name, module: module, kind: c.Kind, labels: labels}
		m.series[key], m.kinds[c.Name] = s, c.Kind
	}
	if c.Kind == effect.MetricAdd {
		s.value += c.Value
	} else {
		s.value = c.Value
	}
	return nil
}

// unpublish takes away what the module's hooks have set.
func (m *metrics) unpublish(module string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.series, func(_ string, s *series) bool { return s.module == module })
	clear(m.kinds)
	for _, s := range m.series {
		m.kinds[s.name] = s.kind
	}
}

func seriesKey(name string, labels map[string]string) string {
	var b strings.Builder
	b.WriteString(name)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "\x00%s\x00%s", k, labels[k])
	}
	return b.String()
}

// Describe sends nothing: the metrics are not known beforehand.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends what hooks have set.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	all := make([]series, 0, len(m.series))
	for _, s := range m.series {
		all = append(all, *s)
	}
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b series) int {
		return cmp.Compare(seriesKey(a.name, a.labels), seriesKey(b.name, b.labels))
	})
	for _, s := range all {
		kind := prometheus.GaugeValue
		if s.kind == effect.MetricAdd {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(s.name, "Set by hooks.", nil, s.labels)
		metric, err := prometheus.NewConstMetric(desc, kind, s.value)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out <- metric
	}
}
