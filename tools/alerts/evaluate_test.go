package alerts

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// inTrouble has the series as they were shown: what counts has gone on counting, all else stays.
func inTrouble(t *testing.T) memory {
	t.Helper()
	return over(scraped(t), func(s series, scrape int) float64 {
		if s.kind == "gauge" {
			return s.value
		}
		return s.value * float64(scrape)
	})
}

// atRest has the same series of a process that has nothing to tell.
func atRest(t *testing.T) memory {
	t.Helper()
	var all []series
	for _, s := range scraped(t) {
		if state := s.labels.Get("state"); state == "failed" {
			s.labels = labels.NewBuilder(s.labels).Set("state", "ready").Labels()
		}
		all = append(all, s)
	}
	return over(all, func(s series, _ int) float64 {
		switch s.labels.Get("__name__") {
		case "starling_leader", "starling_module_state":
			return 1
		case "starling_webhook_certificate_expires":
			return float64(now.Unix()) + 30*86400
		}
		if s.kind == "gauge" {
			return 0
		}
		return s.value
	})
}

// Each rule fires for what it is about, and texts about it find their labels.
func TestAlertsFire(t *testing.T) {
	trouble := inTrouble(t)
	for _, q := range rules(t) {
		found := trouble.ask(t, q)
		if len(found) == 0 {
			t.Errorf("%s does not fire: %s", q.name, q.expr)
		}
		for _, s := range found {
			for _, name := range q.names {
				if s.Metric.Get(name) == "" {
					t.Errorf("%s: %s has no label %s", q.name, s.Metric, name)
				}
			}
			if strings.Contains(s.Metric.Get("hook"), "allowed") && q.name == "StarlingHookFails" {
				t.Errorf("%s fires for failures that allow_failure= lets pass", q.name)
			}
		}
	}
}

// No rule fires for a process that is well, nor before there is one, but for the first.
func TestAlertsRest(t *testing.T) {
	rest := atRest(t)
	for _, q := range rules(t) {
		if found := rest.ask(t, q); len(found) > 0 {
			t.Errorf("%s fires when all is well: %v", q.name, found)
		}
		if found := (memory{}).ask(t, q); (len(found) > 0) != (q.name == "StarlingWithoutLeader") {
			t.Errorf("%s without any Starling: %v", q.name, found)
		}
	}
}

// Each panel shows something of a process in trouble, with the labels of its legend, and is no error
// for one that is well.
func TestPanelsShow(t *testing.T) {
	trouble, rest := inTrouble(t), atRest(t)
	for _, q := range panels(t) {
		found := trouble.ask(t, q)
		if len(found) == 0 {
			t.Errorf("%s shows nothing: %s", q.name, q.expr)
		}
		for _, s := range found {
			for _, name := range q.names {
				if s.Metric.Get(name) == "" && name != "instance" { // which each scrape adds
					t.Errorf("%s: %s has no label %s", q.name, s.Metric, name)
				}
			}
		}
		rest.ask(t, q)
	}
}

// fires lists the series that an alert fires for now: its expression was true at each minute of its "for".
func (m memory) fires(t *testing.T, name string) (of []labels.Labels) {
	t.Helper()
	all := rules(t)
	q := all[slices.IndexFunc(all, func(q query) bool { return q.name == name })]
	for _, s := range m.ask(t, q) {
		of = append(of, s.Metric)
	}
	for ago := time.Minute; ago <= q.lasts; ago += time.Minute {
		was := m.askAt(t, q, now.Add(-ago))
		of = slices.DeleteFunc(of, func(s labels.Labels) bool {
			for _, then := range was {
				if labels.Equal(s, then.Metric) {
					return false
				}
			}
			return true
		})
	}
	return of
}

// One Prometheus may look at several instances: the trouble of one is not hidden by another one that is well.
func TestAlertsOfSeveralInstances(t *testing.T) {
	var all []series
	for _, namespace := range []string{"busy", "in-trouble"} {
		for _, s := range scraped(t) {
			s.labels = labels.NewBuilder(s.labels).Set("namespace", namespace).Set("job", "starling").Labels()
			all = append(all, s)
		}
	}
	m := over(all, func(s series, scrape int) float64 {
		well, n, name := s.labels.Get("namespace") == "busy", float64(scrape), s.labels.Get("__name__")
		switch {
		case name == "starling_leader" && well:
			return 1
		case name == "starling_api_requests_total" && s.labels.Get("code") != "200" && well:
			return 0
		case name == "starling_api_request_seconds_sum" && well:
			return n
		case strings.HasPrefix(name, "starling_api_") && well:
			return 10000 * n
		case s.kind == "gauge":
			return 0
		}
		return s.value * n
	})
	for _, name := range []string{"StarlingWithoutLeader", "StarlingMeetsErrorsOfTheAPIServer", "StarlingWaitsForTheAPIServer"} {
		of := m.fires(t, name)
		if len(of) != 1 || of[0].Get("namespace") != "in-trouble" {
			t.Errorf("%s fires for %v", name, of)
		}
	}
}

// Work without an end is told of after half an hour, neither sooner nor later.
func TestAlertOfWorkWithoutAnEnd(t *testing.T) {
	for minutes, fires := range map[int]bool{20: false, 29: false, 32: true, 50: true} {
		m := over(scraped(t), func(s series, scrape int) float64 {
			if s.labels.Get("__name__") == "starling_converging" && (scrapes-scrape)*int(every) <= minutes*int(time.Minute) {
				return 1
			}
			return 0
		})
		if of := m.fires(t, "StarlingDoesNotConverge"); len(of) > 0 != fires {
			t.Errorf("after %d minutes it fires for %v", minutes, of)
		}
	}
}

// The first run that a limit ends begins its series.
func TestAlertOfTheFirstLimit(t *testing.T) {
	m := over(scraped(t), func(s series, scrape int) float64 {
		if s.labels.Get("limit") == "steps" && scrape >= scrapes-20 {
			return 1
		}
		return math.NaN()
	})
	if of := m.fires(t, "StarlingHookMeetsLimit"); len(of) != 1 || of[0].Get("limit") != "steps" {
		t.Errorf("it fires for %v", of)
	}
}
