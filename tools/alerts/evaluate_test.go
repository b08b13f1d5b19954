package alerts

import (
	"strings"
	"testing"

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
