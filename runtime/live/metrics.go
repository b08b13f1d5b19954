package live

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/metrics"
	"github.com/starling-operator/starling/runtime/script"
)

// Metrics holds Starling's own metrics and those that hooks set. The former are in
// docs/monitoring.md. Labels are names of the tree (module, hook, queue, binding) or of
// small fixed sets, so that nothing grows without bound.
type Metrics struct {
	hooks *metrics.Hooks
	state *stateMetrics
	// own are the collectors of Starling's own metrics.
	own []prometheus.Collector

	leader     prometheus.Gauge
	generation prometheus.Gauge

	reloads      *prometheus.CounterVec
	reloadFailed prometheus.Gauge

	runs     *prometheus.CounterVec
	failures *prometheus.CounterVec
	allowed  *prometheus.CounterVec
	retries  *prometheus.CounterVec
	steps    *prometheus.CounterVec
	limits   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	latency  *prometheus.HistogramVec

	answers     *prometheus.CounterVec
	answering   *prometheus.HistogramVec
	certificate prometheus.Gauge

	watchErrors *prometheus.CounterVec
	requests    *prometheus.CounterVec
	requesting  *prometheus.HistogramVec
	converging  prometheus.Gauge
	convergence prometheus.Histogram
	releases    *prometheus.CounterVec
	pending     *prometheus.GaugeVec
	messages    *prometheus.CounterVec
	received    *prometheus.CounterVec
	records     *prometheus.CounterVec
	spans       *prometheus.CounterVec
	logs        *logBudgets
	releasing   *prometheus.HistogramVec

	// busySince is when the first module began with what they are at now; zero: all are at
	// rest. It is the engine's goroutine's.
	busySince time.Time

	mu sync.Mutex
	// arrived is when the first change came that a hook has not run for yet.
	arrived map[string]time.Time
	// usage is what the runs of hooks have taken, for `starling top`: the metrics are not made to be read.
	usage map[string]status.Usage
}

// NewMetrics registers the metrics. Version is that of the binary.
func NewMetrics(reg prometheus.Registerer, version string) (*Metrics, error) {
	m := &Metrics{hooks: metrics.New(), state: newStateMetrics(), usage: map[string]status.Usage{}, arrived: map[string]time.Time{}}
	ofHook := []string{"module", "hook"}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.own = append(m.own, v)
		return v
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		m.own = append(m.own, v)
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		v := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
		m.own = append(m.own, v)
		return v
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "starling_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	build.Set(1)
	m.own = append(m.own, build, m.state)
	m.leader = gauge("starling_leader", "1 while this process holds the Lease and may write.")
	m.generation = gauge("starling_generation", "Number of the module tree in force, from 1; 0 before the first.")
	m.reloads = counter("starling_reloads_total", "Changes of the module tree: accepted, held because some modules cannot be used, refused because there is no module in it, or unreadable as a whole.", "result")
	m.reloadFailed = gauge("starling_reload_failed", "1 while the module tree is not as the one in force, because some of it or all of it cannot be used.")
	m.runs = counter("starling_hook_runs_total", "Runs of a hook, failed ones included.", ofHook...)
	m.failures = counter("starling_hook_failures_total", "Failed runs of a hook.", ofHook...)
	m.allowed = counter("starling_hook_allowed_failures_total", "Those of the failed runs that allow_failure= lets pass.", ofHook...)
	m.retries = counter("starling_hook_retries_total", "Runs that repeat a failed one.", ofHook...)
	m.steps = counter("starling_hook_steps_total", "Steps of Starlark that the runs of a hook have taken.", ofHook...)
	m.limits = counter("starling_hook_limits_total", "Runs that were ended by a limit: steps, time, memory or effects.", "module", "hook", "limit")
	m.seconds = histogram("starling_hook_run_seconds", "Time that a run of a hook takes, commit aside.",
		[]float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}, ofHook...)
	m.latency = histogram("starling_event_to_run_seconds", "Time from the first change of an object, as the watch saw it, to the run of the hook that it brings about.",
		[]float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100}, "module")
	m.answers = counter("starling_webhook_requests_total", "Requests of the API server that a hook has answered: allowed, denied, changed, converted, or error.", "module", "hook", "result")
	m.answering = histogram("starling_webhook_seconds", "Time from such a request to its answer.",
		[]float64{.001, .002, .005, .01, .02, .05, .1, .3, 1, 3, 10, 30}, ofHook...)
	m.certificate = gauge("starling_webhook_certificate_expires", "When the certificate that webhooks are served with ends, in seconds since 1970; 0 while there is none.")
	m.watchErrors = counter("starling_watch_errors_total", "Errors of the watches of a hook, those of filters included.", ofHook...)
	m.requests = counter("starling_api_requests_total", "Requests to the API server, by verb (get, watch, post, put, patch, delete) and status code; error when there was no answer.", "verb", "code")
	m.requesting = histogram("starling_api_request_seconds", "Time from a request to the API server to the beginning of its answer, by verb.",
		[]float64{.001, .003, .01, .03, .1, .3, 1, 3, 10, 30}, "verb")
	m.converging = gauge("starling_converging", "1 while some module is at work: on its way to what the tree, the values and the cluster ask of it.")
	m.convergence = prometheus.NewHistogram(prometheus.HistogramOpts{Name: "starling_convergence_seconds", Help: "Time from the first module that begins to work until all are at rest, failed ones included.",
		Buckets: []float64{.03, .1, .3, 1, 3, 10, 30, 100, 300, 1000}})
	m.own = append(m.own, m.convergence)
	m.releases = counter("starling_release_actions_total", "Results of releases: installed, upgraded, rolled back, unchanged, uninstalled, failed and so on.", "module", "action")
	m.pending = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "starling_messages_pending", Help: "Messages of http.send that wait, or are under way."}, []string{"module"})
	m.own = append(m.own, m.pending)
	m.messages = counter("starling_messages_total", "Messages of http.send that are done with, by how they ended: sent, failed, replaced by a later one, dropped because too many waited.", "module", "outcome")
	m.received = counter("starling_received_requests_total", "Requests to the paths of http.receive, by the status of the answer.", "module", "hook", "code")
	m.records = counter("starling_records_total", "Runs of hooks that were to be recorded: kept, dropped because there was no time for them, failed because they could not be written.", "outcome")
	m.spans = counter("starling_spans_total", "Spans for the collector of --traces-endpoint: sent, dropped because too many waited, failed because the collector did not take them.", "outcome")
	m.logs = &logBudgets{all: map[string]*logBudget{}, dropped: counter("starling_log_lines_dropped_total", "Log lines of hooks that were left out, because their module logs too much.", "module")}
	m.releasing = histogram("starling_release_seconds", "Time of work on releases, by what became of them.",
		[]float64{.03, .1, .3, 1, 3, 10, 30, 100, 300, 1000}, "module", "action")
	for _, c := range append(m.own, m.hooks) {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

// Transport counts the requests that go through next.
func (m *Metrics) Transport(next http.RoundTripper) http.RoundTripper {
	return countingTransport{m.requests, m.requesting, next}
}

type countingTransport struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	next     http.RoundTripper
}

// RoundTrip sends the request and counts its answer.
func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := t.next.RoundTrip(r)
	took := time.Since(began)
	verb, code := "other", "error"
	switch r.Method {
	case http.MethodGet:
		verb = "get"
		if strings.Contains(r.URL.RawQuery, "watch=") && r.URL.Query().Get("watch") != "false" {
			verb = "watch"
		}
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		verb = strings.ToLower(r.Method)
	}
	if err == nil && resp.StatusCode >= 100 && resp.StatusCode < 600 {
		code = strconv.Itoa(resp.StatusCode)
	}
	t.requests.WithLabelValues(verb, code).Inc()
	t.seconds.WithLabelValues(verb).Observe(took.Seconds())
	return resp, err
}

// WrappedRoundTripper lets client-go find the connections below.
func (t countingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Spans counts those that were sent, or not.
func (m *Metrics) Spans(outcome string, n int) { m.spans.WithLabelValues(outcome).Add(float64(n)) }

// changed notes that a change has come for a hook.
func (m *Metrics) changed(hook string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.arrived[hook].IsZero() {
		m.arrived[hook] = now
	}
}

// forget drops the change that has come for a hook: its watches end.
func (m *Metrics) forget(hook string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.arrived, hook)
}

// used is what the runs of a hook have taken.
func (m *Metrics) used(hook string) status.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.usage[hook]
}

// begins notes that a run of the hook begins, and returns when the first change came that it is for;
// zero: there was none.
func (m *Metrics) begins(module, hook string, attempt int, now time.Time) (came time.Time) {
	if attempt > 1 {
		m.retries.WithLabelValues(module, hook).Inc()
	}
	m.mu.Lock()
	came = m.arrived[hook]
	delete(m.arrived, hook)
	m.mu.Unlock()
	if !came.IsZero() {
		m.latency.WithLabelValues(module).Observe(now.Sub(came).Seconds())
	}
	return came
}

// failed counts a run that has failed, as a function or as its effects were written. Allowed
// says that it may.
func (m *Metrics) failed(module, id string, allowed bool) {
	m.failures.WithLabelValues(module, id).Inc()
	if allowed {
		m.allowed.WithLabelValues(module, id).Inc()
	}
}

// rests notes whether all modules are at rest.
func (m *Metrics) rests(now time.Time, rest bool) {
	switch {
	case rest && !m.busySince.IsZero():
		m.convergence.Observe(now.Sub(m.busySince).Seconds())
		m.busySince = time.Time{}
		m.converging.Set(0)
	case !rest && m.busySince.IsZero():
		m.busySince = now
		m.converging.Set(1)
	}
}

func (m *Metrics) ran(module, id string, took time.Duration, result hook.Result, allowed bool) {
	m.mu.Lock()
	usage := m.usage[id]
	usage.Add(took, result.Usage.Steps)
	m.usage[id] = usage
	m.mu.Unlock()
	m.runs.WithLabelValues(module, id).Inc()
	m.seconds.WithLabelValues(module, id).Observe(took.Seconds())
	m.steps.WithLabelValues(module, id).Add(float64(result.Usage.Steps))
	if result.Err == nil {
		return
	}
	m.failed(module, id, allowed)
	if limit := limitOf(result.Err); limit != "" {
		m.limits.WithLabelValues(module, id, limit).Inc()
	}
}

// limitOf names the limit that ended a run, "" when none did.
func limitOf(err error) string {
	var run *script.LimitError
	var ask *spec.LimitError
	switch {
	case errors.As(err, &run):
		return run.Limit
	case errors.As(err, &ask):
		return ask.Limit
	}
	return ""
}

// watchFailed counts an error of a watch of the hook.
func (m *Metrics) watchFailed(hook string) {
	m.watchErrors.WithLabelValues(moduleOf(hook), hook).Inc()
}

// released counts what became of releases; an error is the action "failed".
func (m *Metrics) released(module, action string, took time.Duration, err error) {
	if err != nil {
		action = "failed"
	}
	m.releases.WithLabelValues(module, action).Inc()
	m.releasing.WithLabelValues(module, action).Observe(took.Seconds())
}

// gone takes away the series of a hook that is not in the tree any more, or with an empty
// hook those of its whole module.
func (m *Metrics) gone(module, hook string) {
	labels := prometheus.Labels{"module": module}
	if hook != "" {
		labels["hook"] = hook
	}
	for _, c := range m.own {
		switch c := c.(type) {
		case *prometheus.CounterVec:
			c.DeletePartialMatch(labels)
		case *prometheus.HistogramVec:
			c.DeletePartialMatch(labels)
		}
	}
	if hook == "" {
		m.logs.forget(module)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.arrived, hook)
	maps.DeleteFunc(m.usage, func(id string, _ status.Usage) bool { return id == hook || hook == "" && moduleOf(id) == module })
	m.hooks.Unpublish(module, hook, "")
}
