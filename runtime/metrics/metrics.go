// Package metrics holds what hooks measure: of a process, or of a simulated one.
package metrics

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/runtime/effect"
)

// Hooks holds what hooks have set. It is a separate collector: names and
// labels are not known before they are set. It is safe for concurrent use.
type Hooks struct {
	mu     sync.Mutex
	series map[string]*series
	// hooks are the same series, by who has set them.
	hooks map[hookName]map[string]*series
	forms map[metricName]form
	uses  map[metricName]int // how many series each form has
	// lines is how many lines of /metrics the series of each module take, all those of
	// all together.
	lines map[string]int
	all   int
}

type hookName struct{ module, hook string }

// metricName is a name as a module uses it. Another module may use it for another kind
// of metric: so none can take a name from another.
type metricName struct{ module, name string }

// form is what all series of one name of a module have in common.
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

// maxLines bounds the lines of /metrics that the hooks of one module can make, maxAllLines
// those of all, the first fewLines of each module aside: each costs memory in every Prometheus that scrapes us.
const (
	maxLines    = 10_000
	maxAllLines = 50_000
	fewLines    = 100
)

// Labels that all series have.
const moduleLabel, hookLabel = "module", "hook"

// New returns an empty collector.
func New() *Hooks {
	return &Hooks{
		series: map[string]*series{}, hooks: map[hookName]map[string]*series{},
		forms: map[metricName]form{}, uses: map[metricName]int{}, lines: map[string]int{},
	}
}

// Publish changes the metrics of a hook, with for_each those of one object: groups
// expire first, whatever the order of the calls was. A metric that cannot be is left out and
// reported.
func (m *Hooks) Publish(module, hook, key string, changes []effect.Metric) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	expired := map[string]bool{}
	for _, c := range changes {
		if c.Kind == effect.MetricExpire {
			expired[c.Group] = true
		}
	}
	if len(expired) > 0 {
		m.drop(hookName{module, hook}, func(s *series) bool { return s.key == key && expired[s.group] })
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

// collision returns a metric of the module whose lines would have the name of lines of this
// one, or "".
func (m *Hooks) collision(at metricName, want form) string {
	for _, suffix := range histogramSuffixes {
		if _, taken := m.forms[metricName{at.module, at.name + suffix}]; taken && want.kind == effect.MetricObserve {
			return at.name + suffix
		}
		if base, cut := strings.CutSuffix(at.name, suffix); cut && m.forms[metricName{at.module, base}].kind == effect.MetricObserve {
			return base
		}
	}
	return ""
}

func (m *Hooks) change(module, hook, object string, c effect.Metric) error {
	want := form{kind: c.Kind, buckets: c.Buckets}
	if c.Kind == effect.MetricObserve && want.buckets == nil {
		want.buckets = prometheus.DefBuckets
	}
	at := metricName{module, c.Name}
	if made, taken := m.forms[at]; taken {
		if made.kind != want.kind {
			return fmt.Errorf("metric %s: metrics.%s, but it was made by metrics.%s; in a module one name has one kind", c.Name, c.Kind, made.kind)
		}
		if !slices.Equal(made.buckets, want.buckets) {
			return fmt.Errorf("metric %s: other buckets than before; in a module one name has the same in all calls", c.Name)
		}
	} else if other := m.collision(at, want); other != "" {
		return fmt.Errorf("metric %s: a histogram shows as its name with _bucket, _sum and _count, so it cannot be there beside %s; take another name", c.Name, other)
	}
	labels := map[string]string{moduleLabel: module, hookLabel: hook}
	maps.Copy(labels, c.Labels)
	key := seriesKey(c.Name, labels)
	s := m.series[key]
	if s == nil {
		switch lines := want.lines(); {
		case m.lines[module]+lines > maxLines:
			return fmt.Errorf("metric %s: the hooks of a module may make %d series together; use labels with fewer values", c.Name, maxLines)
		case m.all+lines > maxAllLines && m.lines[module]+lines > fewLines:
			return fmt.Errorf("metric %s: all hooks may make %d series together; use labels with fewer values", c.Name, maxAllLines)
		}
		s = &series{name: c.Name, module: module, hook: hook, labels: labels}
		if c.Kind == effect.MetricObserve {
			s.counts = make([]uint64, len(want.buckets)+1)
		}
		m.series[key], m.forms[at] = s, want
		m.uses[at]++
		own := hookName{module, hook}
		if m.hooks[own] == nil {
			m.hooks[own] = map[string]*series{}
		}
		m.hooks[own][key] = s
		m.lines[module] += want.lines()
		m.all += want.lines()
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

// Unpublish takes away what a hook has set, or for "" all hooks of the module; with a
// key only what is about that object.
func (m *Hooks) Unpublish(module, hook, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := func(s *series) bool { return key == "" || s.key == key }
	if hook != "" {
		m.drop(hookName{module, hook}, gone)
		return
	}
	for own := range m.hooks {
		if own.module == module {
			m.drop(own, gone)
		}
	}
}

// Clear takes all away.
func (m *Hooks) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for own := range m.hooks {
		m.drop(own, func(*series) bool { return true })
	}
}

// drop takes series of a hook away. A name that has none left may become something else.
func (m *Hooks) drop(own hookName, gone func(*series) bool) {
	for key, s := range m.hooks[own] {
		if !gone(s) {
			continue
		}
		delete(m.series, key)
		delete(m.hooks[own], key)
		at := metricName{s.module, s.name}
		lines := m.forms[at].lines()
		m.all -= lines
		if m.lines[s.module] -= lines; m.lines[s.module] == 0 {
			delete(m.lines, s.module)
		}
		if m.uses[at]--; m.uses[at] == 0 {
			delete(m.uses, at)
			delete(m.forms, at)
		}
	}
	if len(m.hooks[own]) == 0 {
		delete(m.hooks, own)
	}
}

// Values are all series by [Key]; of a histogram the sum of what was observed.
func (m *Hooks) Values() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]float64{}
	for _, s := range m.series {
		labels := maps.Clone(s.labels)
		delete(labels, moduleLabel)
		delete(labels, hookLabel)
		out[Key(s.hook, s.name, labels)] = s.value
	}
	return out
}

// Key names one series of a hook for people: "web/hooks/a.star:f ready{pool=a}".
func Key(hook, name string, labels map[string]string) string {
	pairs := make([]string, 0, len(labels))
	for k, v := range labels {
		pairs = append(pairs, k+"="+v)
	}
	slices.Sort(pairs)
	return fmt.Sprintf("%s %s{%s}", hook, name, strings.Join(pairs, ","))
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
func (m *Hooks) Describe(chan<- *prometheus.Desc) {}

// Collect sends what hooks have set.
func (m *Hooks) Collect(out chan<- prometheus.Metric) {
	for _, metric := range m.collect() {
		out <- metric
	}
}

// collect makes the metrics under the lock, so that a scraper that reads slowly
// holds nobody up.
func (m *Hooks) collect() []prometheus.Metric {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]prometheus.Metric, 0, len(m.series))
	shared := m.shared()
	for _, key := range slices.Sorted(maps.Keys(m.series)) {
		s := m.series[key]
		out = append(out, expose(s, m.forms[metricName{s.module, s.name}], shared[s.name])...)
	}
	return out
}

// shared are the names that modules use for different kinds of metrics, and those that meet
// the lines of another module's histogram. A name on /metrics has one type, so they are
// shown without one.
func (m *Hooks) shared() map[string]bool {
	kinds := map[string]effect.MetricKind{}
	shared := map[string]bool{}
	for at, form := range m.forms {
		if kind, seen := kinds[at.name]; seen && kind != form.kind {
			shared[at.name] = true
		}
		if kinds[at.name] != effect.MetricObserve { // which has most lines to meet
			kinds[at.name] = form.kind
		}
	}
	for name := range kinds {
		for _, suffix := range histogramSuffixes {
			if base, cut := strings.CutSuffix(name, suffix); cut && kinds[base] == effect.MetricObserve {
				shared[name], shared[base] = true, true
			}
		}
	}
	return shared
}

// expose makes the metric of a series; one of a shared name has no type, and a histogram
// is then the lines that it consists of.
func expose(s *series, form form, shared bool) []prometheus.Metric {
	one := func(name string, kind prometheus.ValueType, value float64, labels map[string]string) prometheus.Metric {
		return constant(prometheus.NewConstMetric(describe(name, labels), kind, value))
	}
	kind := prometheus.GaugeValue
	if form.kind == effect.MetricAdd {
		kind = prometheus.CounterValue
	}
	if shared {
		kind = prometheus.UntypedValue
	}
	if form.kind != effect.MetricObserve {
		return []prometheus.Metric{one(s.name, kind, s.value, s.labels)}
	}
	var out []prometheus.Metric
	below := make(map[float64]uint64, len(form.buckets))
	var n uint64
	for i, count := range s.counts {
		n += count
		le := "+Inf"
		if i < len(form.buckets) {
			below[form.buckets[i]] = n
			le = strconv.FormatFloat(form.buckets[i], 'g', -1, 64)
		}
		if shared {
			labels := maps.Clone(s.labels)
			labels["le"] = le
			out = append(out, one(s.name+"_bucket", kind, float64(n), labels))
		}
	}
	if shared {
		return append(out, one(s.name+"_sum", kind, s.value, s.labels), one(s.name+"_count", kind, float64(n), s.labels))
	}
	return []prometheus.Metric{constant(prometheus.NewConstHistogram(describe(s.name, s.labels), n, s.value, below))}
}

func describe(name string, labels map[string]string) *prometheus.Desc {
	return prometheus.NewDesc(name, "Set by hooks.", nil, labels)
}

// constant is a metric, or the error with which it could not be made.
func constant(metric prometheus.Metric, err error) prometheus.Metric {
	if err != nil {
		return prometheus.NewInvalidMetric(prometheus.NewDesc("starling_hook_metric", "Set by hooks.", nil, nil), err)
	}
	return metric
}
