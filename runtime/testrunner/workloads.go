package testrunner

import (
	"context"
	"fmt"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

// These functions are [builtins.TestWorkloads], and what tests make of the requests of
// Starling.

func (w *world) MoveWorkloads(ctx context.Context, readyAfter, completesAfter time.Duration) error {
	w.w.MoveWorkloads(workloads.Options{ReadyAfter: readyAfter, CompletesAfter: completesAfter})
	return w.Settle(ctx)
}

func (w *world) FailPods(ctx context.Context, f builtins.PodFailure) error {
	if err := w.w.FailPods(workloads.Failure{Namespace: f.Namespace, Labels: f.Labels, ExitCode: int32(f.ExitCode), Times: f.Times}); err != nil {
		return err
	}
	return w.Settle(ctx)
}

func (w *world) RecoverPods(ctx context.Context, namespace, labels string) error {
	if err := w.w.RecoverPods(namespace, labels); err != nil {
		return err
	}
	return w.Settle(ctx)
}

func (w *world) Stale(kind string) error {
	if near := w.likeKind(kind); near != "" {
		return fmt.Errorf("kind: %q is none (did you mean %s?)", kind, near)
	}
	w.w.Stale(kind)
	return nil
}

// restMinute is how long a process at rest is watched.
const restMinute = time.Minute

// Requests names a request that the process makes in a minute in which nothing changes, ""
// when it makes none. The clock is a minute later then.
func (w *world) Requests(ctx context.Context) (string, error) {
	if err := w.Settle(ctx); err != nil {
		return "", err
	}
	before, _ := w.w.Requests()
	if err := w.w.Advance(ctx, restMinute); err != nil {
		return "", err
	}
	after, last := w.w.Requests()
	if after == before {
		return "", nil
	}
	return fmt.Sprintf("%d requests in %s in which nothing has changed; the last one is %s", after-before, restMinute, last), nil
}
