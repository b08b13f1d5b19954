package live

import (
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/lane"
	"github.com/starling-operator/starling/runtime/script"
)

var update = flag.Bool("update", false, "write what /metrics shows for the test of rules and panels")

// shownMetrics is what /metrics shows of a process in trouble: the rules and panels of
// deploy/prometheus are evaluated on it, in a Go module that cannot import this one.
const shownMetrics = "../../tools/alerts/testdata/metrics.txt"

// certificateEnds is an hour after the time at which rules are evaluated.
const certificateEnds = 1_000_000 + 3600

// The file holds the series that Starling shows, all families of docs/monitoring.md among them.
// Times differ from run to run, so values may.
func TestMetricsForRulesAndPanels(t *testing.T) {
	m, reg := newTestMetrics(t)
	reg.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.trouble()
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest("GET", "/metrics", nil))
	shown := regexp.MustCompile(`go="[^"]*"`).ReplaceAllString(recorder.Body.String(), `go="go1"`)
	if *update {
		if err := os.WriteFile(shownMetrics, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(shownMetrics)
	if err != nil {
		t.Fatal(err)
	}
	got, want := seriesOf(shown), seriesOf(string(file))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- %s, + what is shown; run: go test ./runtime/live -run MetricsForRules -update: %s", shownMetrics, diff)
	}
	for name := range documentedFamilies(t) {
		if !slices.ContainsFunc(got, func(series string) bool { return strings.HasPrefix(series, name) }) {
			t.Errorf("%s is not among them: have it counted in trouble()", name)
		}
	}
}

// seriesOf are the names with labels, without values, those of the process aside: they differ by
// operating system.
func seriesOf(text string) (out []string) {
	for line := range strings.Lines(text) {
		if i := strings.LastIndex(line, " "); i > 0 && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "process_") {
			out = append(out, line[:i])
		}
	}
	slices.Sort(out)
	return out
}

// documentedFamilies yields the names of Starling's metrics.
func documentedFamilies(t *testing.T) func(yield func(string) bool) {
	t.Helper()
	page, err := os.ReadFile("../../docs/monitoring.md") // which TestTableOfMetrics holds to the code
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for _, row := range regexp.MustCompile("(?m)^\\| `(starling_[a-z_]+)` \\| (?:gauge|counter|histogram) \\|").FindAllStringSubmatch(string(page), -1) {
			if !yield(row[1]) {
				return
			}
		}
	}
}

// trouble has everything counted once, and nothing as it should be.
func (m *Metrics) trouble() {
	at := time.Now()
	m.leader.Set(0)
	m.generation.Set(2)
	m.reloads.WithLabelValues("held").Inc()
	m.reloadFailed.Set(1)
	m.certificate.Set(certificateEnds)
	for attempt, err := range []error{fmt.Errorf("x: %w", &script.LimitError{Limit: "steps"}), &spec.LimitError{Limit: "effects"}, errors.New("else")} {
		m.changed("web/a", at)
		m.begins("web", "web/a", attempt+1, at.Add(time.Second))
		m.ran("web", "web/a", time.Second, hook.Result{Usage: script.Usage{Steps: 7}, Err: err}, attempt == 0)
	}
	m.ran("web", "web/allowed", time.Second, hook.Result{Err: errors.New("it may")}, true)
	m.watchFailed("web/a")
	m.released("web", "installed", time.Second, nil)
	m.released("web", "", time.Second, errors.New("no"))
	m.rests(at, false)
	m.rests(at.Add(time.Minute), true)
	m.rests(at, false)
	m.answers.WithLabelValues("web", "web/a", "denied").Inc()
	m.answering.WithLabelValues("web", "web/a").Observe(.01)
	for _, verb := range []string{"get", "watch", "patch"} {
		m.requests.WithLabelValues(verb, "200").Inc()
		m.requesting.WithLabelValues(verb).Observe(.01)
	}
	m.requests.WithLabelValues("patch", "500").Inc()
	m.requesting.WithLabelValues("patch").Observe(5)
	m.pending.WithLabelValues("web").Set(2)
	m.messages.WithLabelValues("web", "failed").Inc()
	m.received.WithLabelValues("web", "web/a", "500").Inc()
	m.records.WithLabelValues("kept").Inc()
	m.records.WithLabelValues("dropped").Inc()
	m.Spans("sent", 3)
	m.Spans("dropped", 1)
	m.logs.dropped.WithLabelValues("web").Inc()
	m.state.sizes(func(string) int { return 13 })
	m.state.watching(engine.StartWatch{ID: "web/a#nodes", Hook: &generation.Hook{ID: "web/a", Module: "web"}})
	m.state.look(engine.Load{
		Modules: []engine.ModuleLoad{
			{Name: "web", State: status.ModuleFailed, Drifted: 3, Contested: map[string]int{"kubectl-edit": 2}},
			{Name: "shop", State: status.ModuleReady},
		},
		Refused: map[string]int{"web": 2}, ConfigHeld: true,
		Echoing: []engine.HookLoad{{Module: "web", Hook: "web/a"}},
		Lanes:   []engine.LaneLoad{{Module: "web", Waiting: []lane.Queued{{ID: lane.ID{Group: "web/a"}, Seq: 1}}}},
	}, at.Add(-10*time.Minute))
}
