package live

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/script"
)

func newTestMetrics(t *testing.T) (*Metrics, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(reg, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return m, reg
}

// docs/monitoring.md has a row for each metric with its labels, and no other.
func TestTableOfMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(starling_[a-z_]+)` \\| (?:gauge|counter|histogram) \\| ([^|]*)\\|").FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, l := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(row[2], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		documented = append(documented, row[1]+fmt.Sprint(labels))
	}
	slices.Sort(documented)
	m, _ := newTestMetrics(t)
	descs := make(chan *prometheus.Desc, 100)
	for _, c := range m.own {
		c.Describe(descs)
	}
	close(descs)
	var there []string
	parts := regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	for d := range descs {
		found := parts.FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("cannot read %s", d)
		}
		var labels []string
		for _, l := range strings.FieldsFunc(found[2]+","+found[3], func(r rune) bool { return r == ',' }) {
			name, _, _ := strings.Cut(l, "=")
			labels = append(labels, name)
		}
		slices.Sort(labels)
		there = append(there, found[1]+fmt.Sprint(labels))
	}
	slices.Sort(there)
	if diff := cmp.Diff(there, documented); diff != "" {
		t.Errorf("- the registry, + docs/monitoring.md: %s", diff)
	}
}

func TestMetricsOfRuns(t *testing.T) {
	m, reg := newTestMetrics(t)
	at := time.Unix(1000, 0)
	m.changed("web/a", at)
	m.changed("web/a", at.Add(time.Second)) // the first one counts
	m.begins("web", "web/a", 1, at.Add(2*time.Second))
	m.ran("web", "web/a", time.Second, hook.Result{Usage: script.Usage{Steps: 7}, Err: fmt.Errorf("x: %w", &script.LimitError{Limit: "steps"})}, true)
	m.begins("web", "web/a", 2, at.Add(3*time.Second))
	m.ran("web", "web/a", time.Second, hook.Result{Err: &spec.LimitError{Limit: "effects"}}, false)
	m.ran("web", "web/a", time.Second, hook.Result{Err: errors.New("else")}, false)
	m.watchFailed("web/a")
	m.released("web", "installed", time.Second, nil)
	m.released("web", "", time.Second, errors.New("no"))
	want := `
# HELP starling_hook_allowed_failures_total Those of the failed runs that allow_failure= lets pass.
# TYPE starling_hook_allowed_failures_total counter
starling_hook_allowed_failures_total{hook="web/a",module="web"} 1
# HELP starling_hook_failures_total Failed runs of a hook.
# TYPE starling_hook_failures_total counter
starling_hook_failures_total{hook="web/a",module="web"} 3
# HELP starling_hook_limits_total Runs that were ended by a limit: steps, time, memory or effects.
# TYPE starling_hook_limits_total counter
starling_hook_limits_total{hook="web/a",limit="effects",module="web"} 1
starling_hook_limits_total{hook="web/a",limit="steps",module="web"} 1
# HELP starling_hook_retries_total Runs that repeat a failed one.
# TYPE starling_hook_retries_total counter
starling_hook_retries_total{hook="web/a",module="web"} 1
# HELP starling_hook_steps_total Steps of Starlark that the runs of a hook have taken.
# TYPE starling_hook_steps_total counter
starling_hook_steps_total{hook="web/a",module="web"} 7
# HELP starling_release_actions_total Results of releases: installed, upgraded, rolled back, unchanged, uninstalled, failed and so on.
# TYPE starling_release_actions_total counter
starling_release_actions_total{action="failed",module="web"} 1
starling_release_actions_total{action="installed",module="web"} 1
# HELP starling_watch_errors_total Errors of the watches of a hook, those of filters included.
# TYPE starling_watch_errors_total counter
starling_watch_errors_total{hook="web/a",module="web"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "starling_hook_allowed_failures_total", "starling_hook_failures_total", "starling_hook_limits_total", "starling_hook_retries_total",
		"starling_hook_steps_total", "starling_release_actions_total", "starling_watch_errors_total"); err != nil {
		t.Error(err)
	}
	latency := `
# HELP starling_event_to_run_seconds Time from the first change of an object, as the watch saw it, to the run of the hook that it brings about.
# TYPE starling_event_to_run_seconds histogram
`
	for _, b := range []string{"0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1"} {
		latency += `starling_event_to_run_seconds_bucket{module="web",le="` + b + `"} 0` + "\n"
	}
	for _, b := range []string{"3", "10", "30", "100", "+Inf"} {
		latency += `starling_event_to_run_seconds_bucket{module="web",le="` + b + `"} 1` + "\n"
	}
	latency += "starling_event_to_run_seconds_sum{module=\"web\"} 2\nstarling_event_to_run_seconds_count{module=\"web\"} 1\n"
	if err := testutil.GatherAndCompare(reg, strings.NewReader(latency), "starling_event_to_run_seconds"); err != nil {
		t.Error(err)
	}
}

func TestMetricsOfTheEngine(t *testing.T) {
	s := newStateMetrics()
	s.sizes(func(id string) int { return len(id) })
	s.watching(engine.StartWatch{ID: "web/a#nodes#2", Hook: &generation.Hook{ID: "web/a", Module: "web"}})
	s.watching(engine.StartWatch{ID: "web/a#gone", Hook: &generation.Hook{ID: "web/a", Module: "web"}})
	s.watched("web/a#gone")
	at := time.Unix(1000, 0)
	load := func(waiting ...lane.Queued) engine.Load {
		return engine.Load{
			Modules: []engine.ModuleLoad{{Name: "web", State: status.ModuleReady, Drifted: 3, Contested: map[string]int{"kubectl-edit": 2, "": 1}}},
			Refused: map[string]int{"web": 2}, ConfigHeld: true,
			Lanes: []engine.LaneLoad{{Module: "web", Waiting: waiting}, {Module: "web", Queue: "slow"}},
		}
	}
	held := lane.Queued{ID: lane.ID{Group: "web/c"}, Held: true} // by its min_interval=, as its author wants it
	s.look(load(held), at.Add(-time.Hour))
	s.look(load(lane.Queued{ID: lane.ID{Group: "web/a"}, Seq: 1}, held), at)
	s.look(load(lane.Queued{ID: lane.ID{Group: "web/a"}, Seq: 1}, lane.Queued{ID: lane.ID{Group: "web/b"}, Seq: 2}, held), at.Add(5*time.Second))
	if got := s.texts(t, at.Add(7*time.Second)); !slices.Equal(got, []string{
		"starling_config_held 1",
		"starling_config_refused module=web 2",
		"starling_module_contested_objects manager=kubectl-edit module=web 2",
		"starling_module_contested_objects manager=somebody module=web 1",
		"starling_module_drifted_objects module=web 3",
		"starling_module_state module=web state=ready 1",
		"starling_queue_length module=web queue=main 3",
		"starling_queue_length module=web queue=slow 0",
		"starling_queue_oldest_seconds module=web queue=main 7",
		"starling_queue_oldest_seconds module=web queue=slow 0",
		"starling_snapshot_objects binding=nodes hook=web/a module=web 13",
	}) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
	// Work that waits again under the same key has not waited all the time.
	s.look(load(lane.Queued{ID: lane.ID{Group: "web/a"}, Seq: 3}), at.Add(8*time.Second))
	if got := s.texts(t, at.Add(9*time.Second)); !slices.Contains(got, "starling_queue_oldest_seconds module=web queue=main 1") {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// texts are the series at a time, sorted.
func (s *stateMetrics) texts(t *testing.T, now time.Time) []string {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(fixed(s.collect(now)))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.Metric {
			text := f.GetName()
			for _, l := range m.Label {
				text += " " + l.GetName() + "=" + l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %v", text, m.Gauge.GetValue()))
		}
	}
	slices.Sort(out)
	return out
}

// fixed collects what it holds.
type fixed []prometheus.Metric

func (fixed) Describe(chan<- *prometheus.Desc) {}

func (f fixed) Collect(out chan<- prometheus.Metric) {
	for _, m := range f {
		out <- m
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsAreCounted(t *testing.T) {
	m, reg := newTestMetrics(t)
	rt := m.Transport(transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Host == "down" {
			return nil, errors.New("down")
		}
		return &http.Response{StatusCode: 409, Body: io.NopCloser(strings.NewReader(""))}, nil
	}))
	for _, c := range [][2]string{{"GET", "https://up/a"}, {"GET", "https://up/a?watch=true"}, {"GET", "https://up/a?watch=false"}, {"PATCH", "https://up/a"}, {"POST", "https://down/a"}, {"BREW", "https://up/"}} {
		r, err := http.NewRequestWithContext(t.Context(), c[0], c[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := rt.RoundTrip(r); err == nil {
			resp.Body.Close()
		}
	}
	want := `
# HELP starling_api_requests_total Requests to the API server, by verb (get, watch, post, put, patch, delete) and status code; error when there was no answer.
# TYPE starling_api_requests_total counter
starling_api_requests_total{code="409",verb="get"} 2
starling_api_requests_total{code="409",verb="other"} 1
starling_api_requests_total{code="409",verb="patch"} 1
starling_api_requests_total{code="409",verb="watch"} 1
starling_api_requests_total{code="error",verb="post"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "starling_api_requests_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(reg, "starling_api_request_seconds"); n != 5 || err != nil {
		t.Errorf("times of %d verbs, %v", n, err)
	}
}

// One convergence lasts from the first module that works until all are at rest.
func TestConvergenceIsMeasured(t *testing.T) {
	m, reg := newTestMetrics(t)
	at := time.Unix(1000, 0)
	for i, rest := range []bool{true, false, false, true, true, false} {
		m.rests(at.Add(time.Duration(i)*time.Second), rest)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		switch one := f.Metric[0]; f.GetName() {
		case "starling_convergence_seconds":
			if one.Histogram.GetSampleCount() != 1 || one.Histogram.GetSampleSum() != 2 {
				t.Errorf("got %v", one)
			}
		case "starling_converging":
			if one.Gauge.GetValue() != 1 {
				t.Errorf("got %v", one)
			}
		}
	}
}
