package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/sim/workloads"
)

// MoveWorkloads has Deployments, Pods and the like move by the clock from now on, as they
// would in a cluster with its controllers. Options that are given again hold for what
// begins later.
func (w *World) MoveWorkloads(o workloads.Options) {
	if w.moving == nil {
		w.moving = &workloads.Mover{Store: w.store, Now: w.Now, Warn: func(text string) { w.o.Log("", "", builtins.LevelWarn, text, nil) }}
		if w.chaos != nil {
			w.moving.Shuffle = w.chaos.r.Shuffle
		}
	}
	w.moving.Options = o
	w.moving.Wake()
}

// FailPods has Pods fail. It needs workloads that move.
func (w *World) FailPods(f workloads.Failure) error {
	if w.moving == nil {
		return errNotMoving
	}
	w.moving.Wake()
	return w.moving.Failures.Add(f)
}

// RecoverPods has Pods fail no more that [World.FailPods] named by the same labels; without
// such ones it is an error.
func (w *World) RecoverPods(namespace, labels string) error {
	if w.moving == nil {
		return errNotMoving
	}
	w.moving.Wake()
	if !w.moving.Failures.Clear(namespace, labels) {
		return fmt.Errorf("no Pods with the labels %q were told to fail in namespace %s", labels, namespace)
	}
	return nil
}

var errNotMoving = errors.New("workloads do not move in this cluster; call t.workloads() first")

// pause lets the cluster work while a write waits. The clock stands still: what takes time
// does not come, and the wait is over soon.
func (w *World) pause(ctx context.Context, _ time.Duration) error {
	w.store.Settle()
	w.move()
	return ctx.Err()
}

// move lets a controller of the cluster do what it wants, and says whether there was one.
func (w *World) move() bool { return w.moving != nil && w.moving.Move() }

// due is the next time at which something happens by itself; zero: nothing does.
func (w *World) due() time.Time {
	if w.moving == nil {
		return w.wakeAt
	}
	at := workloads.Earlier(w.wakeAt, w.moving.Next())
	for _, f := range w.flights {
		at = workloads.Earlier(at, f.until)
	}
	return at
}

// collect has the cluster do what its own controllers would.
func (w *World) collect() bool {
	w.store.As("garbage collection")
	defer w.store.As("")
	return w.store.Settle()
}
