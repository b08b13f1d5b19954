package live

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/lane"
)

// stateMetrics shows what the driver has last seen of the engine. A scrape never
// waits for the engine.
type stateMetrics struct {
	moduleState, refused, held, drifted, contested, queueLength, queueAge, snapshot, echoing *prometheus.Desc

	mu      sync.Mutex
	load    engine.Load
	since   map[queued]time.Time
	watches map[string]snapshotLabels
	// size asks how many objects a watch holds; nil before there is a driver.
	size func(id string) int
}

// queued is one key that waits in one lane.
type queued struct {
	module, queue string
	id            lane.ID
	seq           int
}

type snapshotLabels struct{ module, hook, binding string }

func newStateMetrics() *stateMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &stateMetrics{
		moduleState: desc("starling_module_state", "1 for the state that a module is in.", "module", "state"),
		refused:     desc("starling_config_refused", "Parts of the user's config of a module that are not in force, because they are not right; none has no series.", "module"),
		held:        desc("starling_config_held", "1 while the user's ConfigMap is gone or cannot be read, and what it has said last is in force."),
		drifted:     desc("starling_module_drifted_objects", "Objects of a module's release that others have changed or deleted, and that are not put right; none has no series.", "module"),
		contested:   desc("starling_module_contested_objects", "Objects of a module's release, and children of its controllers, that somebody changes again and again, by the field manager that writes them.", "module", "manager"),
		queueLength: desc("starling_queue_length", "Hooks that wait in a lane of a module.", "module", "queue"),
		queueAge:    desc("starling_queue_oldest_seconds", "How long the first of them has waited since it came or was last tried, to the second.", "module", "queue"),
		snapshot:    desc("starling_snapshot_objects", "Objects in the snapshot of a watch.", "module", "hook", "binding"),
		echoing:     desc("starling_hook_wakes_itself", "1 for a hook whose writes bring about its runs without end, by itself or by way of other hooks, and that is slowed down.", "module", "hook"),
		since:       map[queued]time.Time{},
		watches:     map[string]snapshotLabels{},
	}
}

// sizes says how to ask for the size of a snapshot.
func (s *stateMetrics) sizes(size func(id string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// look takes in what the engine looks like.
func (s *stateMetrics) look(load engine.Load, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load = load
	since := map[queued]time.Time{}
	for _, l := range load.Lanes {
		for _, w := range l.Waiting {
			q := queued{l.Module, l.Queue, w.ID, w.Seq}
			since[q] = now
			if began, known := s.since[q]; known {
				since[q] = began
			}
		}
	}
	s.since = since
}

func (s *stateMetrics) watching(a engine.StartWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[a.ID] = snapshotLabels{a.Hook.Module, a.Hook.ID, engine.WatchBinding(a.ID)}
}

func (s *stateMetrics) watched(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches, id)
}

// Describe sends what Collect may send.
func (s *stateMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.moduleState, s.refused, s.held, s.drifted, s.contested, s.queueLength, s.queueAge, s.snapshot, s.echoing} {
		out <- d
	}
}

// Collect sends what was last seen, and ages and sizes as they are now.
func (s *stateMetrics) Collect(out chan<- prometheus.Metric) {
	for _, m := range s.collect(time.Now()) {
		out <- m
	}
}

func (s *stateMetrics) collect(now time.Time) []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []prometheus.Metric
	add := func(d *prometheus.Desc, v float64, labels ...string) {
		out = append(out, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
	}
	for _, m := range s.load.Modules {
		add(s.moduleState, 1, m.Name, string(m.State))
		if m.Drifted > 0 {
			add(s.drifted, float64(m.Drifted), m.Name)
		}
		for by, n := range m.Contested {
			add(s.contested, float64(n), m.Name, cmp.Or(by, "somebody"))
		}
	}
	for name, n := range s.load.Refused {
		add(s.refused, float64(n), name)
	}
	held := 0.0
	if s.load.ConfigHeld {
		held = 1
	}
	add(s.held, held)
	for _, h := range s.load.Echoing {
		add(s.echoing, 1, h.Module, h.Hook)
	}
	for _, l := range s.load.Lanes {
		queue := cmp.Or(l.Queue, "main")
		oldest := now
		for _, w := range l.Waiting {
			if began := s.since[queued{l.Module, l.Queue, w.ID, w.Seq}]; !w.Held && began.Before(oldest) {
				oldest = began
			}
		}
		add(s.queueLength, float64(len(l.Waiting)), l.Module, queue)
		add(s.queueAge, now.Sub(oldest).Seconds(), l.Module, queue)
	}
	for id, w := range s.watches {
		if s.size != nil {
			add(s.snapshot, float64(s.size(id)), w.module, w.hook, w.binding)
		}
	}
	return out
}
