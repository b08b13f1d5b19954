package live

import (
	"cmp"
	"context"
	"time"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
)

// shownOfQueue is how much of a queue people are shown.
const shownOfQueue = 100

// Queues returns what waits in the lanes of all modules, and why.
func (d *Driver) Queues(ctx context.Context) ([]status.Queue, error) {
	lines, err := ask(ctx, d, (*engine.Engine).Lines)
	if err != nil {
		return nil, err
	}
	now := d.clock.now()
	out := []status.Queue{}
	for _, l := range lines {
		q := status.Queue{Module: l.Module, Queue: cmp.Or(l.Queue, "main"), Length: len(l.Waiting)}
		for _, id := range l.Taken {
			q.Running = append(q.Running, status.Queued{Hook: id.Group, Key: id.Key}.Name())
		}
		for _, w := range l.Waiting[:min(shownOfQueue, len(l.Waiting))] {
			one := status.Queued{
				Hook: w.ID.Group, Key: w.ID.Key, Request: w.ID.Ask != 0, Failures: w.Failures, Reason: w.Why,
				Since: d.metrics.state.waitsSince(queued{l.Module, l.Queue, w.ID, w.Seq}, now),
			}
			if w.Next.After(now) {
				one.Next = &w.Next
			}
			q.Waiting = append(q.Waiting, one)
		}
		out = append(out, q)
	}
	return out, nil
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
