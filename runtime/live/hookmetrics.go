package live

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/runtime/effect"
)

// hookMetrics holds what hooks have set. It is a collector of its own: names and
// labels are not known before they are set.
type hookMetrics struct {
	mu     sync.Mutex
	series map[string]*series
	forms  map[string]form
	// lines is how many lines of /metrics all series take.
	lines int
}

// form is what all series of one name have in common.
type form struct {
	kind    effect.MetricKind
	buckets []float64
}

// lines is how many lines of /metrics one series takes.
func (f form) lines() int {
	if f.kind == effect.MetricObserve {
		return len(f.buckets) + 3 // the last bucket, sum and count
	}
	return 1
}

// series is one combination of a name and its labels.
type series struct {
	name, module, hook, group string
	key                       string // the object of for_each that has set it last
	labels                    map[string]string
	// value of a gauge or counter, sum of a histogram.
	value float64
	// counts of a histogram, one a bucket and one for what is above all of them.
	counts []uint64
}

// maxLines bounds the lines of /metrics that hooks can make: each costs memory in
// every Prometheus that scrapes us.
const maxLines = 10_000

// newHookMetrics returns an empty collector.
func newHookMetrics() *hookMetrics {
	return &hookMetrics{series: map[string]*series{}, forms: map[string]form{}}
}

// publish changes the metrics of a hook, with for_each those of one object: groups
// expire first, whatever the order of the calls was. What cannot be is left out and
// reported.
func (m *hookMetrics) publish(module, hook, key string, changes []effect.Metric) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	expired := map[string]bool{}
	for _, c := range changes {
		if c.Kind == effect.MetricExpire {
			expired[c.Group] = true
		}
	}
	if len(expired) > 0 {
		m.drop(func(s *series) bool { return s.module == module && s.hook == hook && s.key == key && expired[s.group] })
	}
	var errs []error
	for _, c := range changes {
		if c.Kind == effect.MetricExpire {
			continue
		}
		if err := m.change(module, hook, key, c); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// histogramSuffixes are what the lines of a histogram have behind its name.
var histogramSuffixes = [...]string{"_bucket", "_sum", "_count"}

// meets returns a metric whose lines would have the name of lines of this one, or "".
func (m *hookMetrics) meets(name string, want form) string {
	for _, suffix := range histogramSuffixes {
		if _, taken := m.forms[name+suffix]; taken && want.kind == effect.MetricObserve {
			return name + suffix
		}
		if base, cut := strings.CutSuffix(name, suffix); cut && m.forms[base].kind == effect.MetricObserve {
			return base
		}
	}
	return ""
}

func (m *hookMetrics) change(module, hook, object string, c effect.Metric) error {
	want := form{kind: c.Kind, buckets: c.Buckets}
	if c.Kind == effect.MetricObserve && want.buckets == nil {
		want.buckets = prometheus.DefBuckets
	}
	if made, taken := m.forms[c.Name]; taken {
		if made.kind != want.kind {
			return fmt.Errorf("metric %s: metrics.%s, but it was made by metrics.%s; one name has one kind", c.Name, c.Kind, made.kind)
		}
		if !slices.Equal(made.buckets, want.buckets) {
			return fmt.Errorf("metric %s: other buckets than before; one name has the same in all calls", c.Name)
		}
	} else if other := m.meets(c.Name, want); other != "" {
		return fmt.Errorf("metric %s: a histogram shows as its name with _bucket, _sum and _count, so it cannot be there beside %s; take another name", c.Name, other)
	}
	labels := map[string]string{"module": module, "hook": hook}
	maps.Copy(labels, c.Labels)
	key := seriesKey(c.Name, labels)
	s := m.series[key]
	if s == nil {
		if m.lines+want.lines() > maxLines {
			return fmt.Errorf("metric %s: hooks may make %d series together; use labels with fewer values", c.Name, maxLines)
		}
		s = &series{name: c.Name, module: module, hook: hook, labels: labels}
		if c.Kind == effect.MetricObserve {
			s.counts = make([]uint64, len(want.buckets)+1)
		}
		m.series[key], m.forms[c.Name] = s, want
		m.lines += want.lines()
	}
	s.group, s.key = c.Group, object
	switch c.Kind {
	case effect.MetricSet:
		s.value = c.Value
	case effect.MetricAdd:
		s.value += c.Value
	case effect.MetricObserve:
		s.value += c.Value
		s.counts[sort.SearchFloat64s(want.buckets, c.Value)]++
	}
	return nil
}

// unpublish takes away what a hook has set, or for "" all hooks of the module; with a
// key only what is about that object.
func (m *hookMetrics) unpublish(module, hook, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(func(s *series) bool {
		return s.module == module && (hook == "" || s.hook == hook) && (key == "" || s.key == key)
	})
}

// drop takes series away. A name that has none left may become something else.
func (m *hookMetrics) drop(gone func(*series) bool) {
	maps.DeleteFunc(m.series, func(_ string, s *series) bool { return gone(s) })
	forms := map[string]form{}
	m.lines = 0
	for _, s := range m.series {
		forms[s.name] = m.forms[s.name]
		m.lines += m.forms[s.name].lines()
	}
	m.forms = forms
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
func (m *hookMetrics) Describe(chan<- *prometheus.Desc) {}

// Collect sends what hooks have set.
func (m *hookMetrics) Collect(out chan<- prometheus.Metric) {
	for _, metric := range m.collect() {
		out <- metric
	}
}

// collect makes the metrics under the lock, so that a scraper that reads slowly
// holds nobody up.
func (m *hookMetrics) collect() []prometheus.Metric {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]prometheus.Metric, 0, len(m.series))
	for _, key := range slices.Sorted(maps.Keys(m.series)) {
		s := m.series[key]
		desc := prometheus.NewDesc(s.name, "Set by hooks.", nil, s.labels)
		metric, err := m.metric(desc, s)
		if err != nil {
			metric = prometheus.NewInvalidMetric(desc, err)
		}
		out = append(out, metric)
	}
	return out
}

func (m *hookMetrics) metric(desc *prometheus.Desc, s *series) (prometheus.Metric, error) {
	form := m.forms[s.name]
	switch form.kind {
	case effect.MetricObserve:
		below := make(map[float64]uint64, len(form.buckets))
		var n uint64
		for i, count := range s.counts {
			n += count
			if i < len(form.buckets) {
				below[form.buckets[i]] = n
			}
		}
		return prometheus.NewConstHistogram(desc, n, s.value, below)
	case effect.MetricAdd:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.value)
	}
	return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.value)
}
