package live

import (
	"context"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/executor"
)

// Queues returns what waits in the lanes of all modules, and why.
func (d *Driver) Queues(ctx context.Context) ([]status.Queue, error) {
	lines, err := ask(ctx, d, (*engine.Engine).Lines)
	if err != nil {
		return nil, err
	}
	now := d.clock.now()
	return executor.ShowQueues(lines, now, func(l engine.Line, w engine.Waiting) time.Time {
		return d.metrics.state.waitsSince(queued{l.Module, l.Queue, w.ID, w.Seq}, now)
	}), nil
}

// waitsSince is when work was first seen to wait; now when it was not yet.
func (s *stateMetrics) waitsSince(q queued, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began, known := s.since[q]; known {
		return began
	}
	return now
}
