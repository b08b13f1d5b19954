package faults

import (
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// Row 1: the API server and its etcd are stopped, or killed, while Starling is at work, again and again.
// Afterwards all is as it should be, and the process holds no more than before.
func TestServerThatRestarts(t *testing.T) {
	t.Parallel()
	own, err := cluster.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := newWorld(t, setting{on: own})
	w.replicas[0].kube = w.direct // its connections are those that break
	w.begin()
	before, err := w.replicas[0].census()
	w.done(err)
	var healed time.Duration
	for round := range rounds {
		for _, restart := range []func(testing.TB){own.Restart, own.Crash} {
			for range 1 + w.dice.IntN(6) {
				w.change()
			}
			w.rest(200 * time.Millisecond)
			restart(t)
			w.changes(2)
			if round%3 == 0 {
				healed = max(healed, w.settle())
			}
		}
	}
	healed = max(healed, w.settle())
	now := w.replicas[0].noMore(before)
	t.Logf("%d restarts: all was as it should be %s after one at most; %s before, %s after; Starling was started %d times",
		2*rounds, healed.Round(time.Millisecond), before, now, w.starts())
}
