package alerts

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const (
	scrapes = 4 * 60 * 2 // two hours
	every   = 15 * time.Second
)

// now is when queries are asked: at the last scrape.
var now = time.Unix(1_000_000, 0)

// series is one of a scrape.
type series struct {
	labels labels.Labels
	kind   string // of its family: counter, gauge or histogram
	value  float64
}

// scraped reads what /metrics shows: runtime/live writes it down (TestMetricsForRulesAndPanels).
func scraped(t *testing.T) (out []series) {
	t.Helper()
	kinds := map[string]string{}
	for line := range strings.Lines(read(t, "testdata/metrics.txt")) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.Fields(line); words[0] == "#" {
			if words[1] == "TYPE" {
				kinds[words[2]] = words[3]
			}
			continue
		}
		i := strings.LastIndex(line, " ")
		value, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		of, err := parser.NewParser(parser.Options{}).ParseMetric(line[:i])
		if err != nil {
			t.Fatal(err)
		}
		one, name := series{labels: of, value: value}, of.Get("__name__")
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			if kind := kinds[strings.TrimSuffix(name, suffix)]; kind != "" {
				one.kind = kind
			}
		}
		if one.kind == "" {
			t.Fatalf("%s has no type", name)
		}
		out = append(out, one)
	}
	return out
}

// memory holds series over two hours.
type memory struct{ all []storage.Series }

// over returns the series as value makes them: it is given each one, and how many scrapes were
// before; NaN: the scrape does not have it.
func over(all []series, value func(s series, scrape int) float64) memory {
	var m memory
	for _, s := range all {
		var points []chunks.Sample
		for i := range scrapes {
			if v := value(s, i); !math.IsNaN(v) {
				points = append(points, point{now.Add(-every * time.Duration(scrapes-1-i)).UnixMilli(), v})
			}
		}
		m.all = append(m.all, storage.NewListSeries(s.labels, points))
	}
	return m
}

// point is chunks.Sample: a value at a time.
type point struct {
	at    int64 // milliseconds
	value float64
}

func (p point) T() int64                      { return p.at }
func (p point) ST() int64                     { return 0 }
func (p point) F() float64                    { return p.value }
func (p point) H() *histogram.Histogram       { return nil }
func (p point) FH() *histogram.FloatHistogram { return nil }
func (p point) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p point) Copy() chunks.Sample           { return p }

// Querier is storage.Queryable.
func (m memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		found := &set{at: -1}
		for _, s := range m.all {
			if !slices.ContainsFunc(matchers, func(by *labels.Matcher) bool { return !by.Matches(s.Labels().Get(by.Name)) }) {
				found.all = append(found.all, s)
			}
		}
		slices.SortFunc(found.all, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
		return found
	}}, nil
}

// set is storage.SeriesSet.
type set struct {
	all []storage.Series
	at  int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *set) At() storage.Series                { return s.all[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// ask has Prometheus' own engine answer a query.
func (m memory) ask(t *testing.T, q query) promql.Vector {
	t.Helper()
	return m.askAt(t, q, now)
}

func (m memory) askAt(t *testing.T, q query, at time.Time) promql.Vector {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer engine.Close()
	asked, err := engine.NewInstantQuery(context.Background(), m, nil, q.expr, at)
	if err != nil {
		t.Errorf("%s: %v", q.name, err)
		return nil
	}
	defer asked.Close()
	answer := asked.Exec(context.Background())
	if answer.Err != nil {
		t.Errorf("%s: %v", q.name, answer.Err)
		return nil
	}
	for _, warning := range answer.Warnings.AsErrors() {
		t.Errorf("%s: %v", q.name, warning)
	}
	out, err := answer.Vector()
	if err != nil {
		t.Errorf("%s: %v", q.name, err)
	}
	return slices.Clone(out)
}
