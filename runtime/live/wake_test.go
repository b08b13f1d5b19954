package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/modules"
)

func TestNapsAreShort(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for until, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Second: time.Second, time.Hour: maxNap, 1000 * time.Hour: maxNap,
	} {
		if got := nap(now.Add(until), now); got != want {
			t.Errorf("%s: got %s, want %s", until, got, want)
		}
	}
}

// The engine is woken at its time, however many naps that takes, and not before.
func TestTheEngineIsWokenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, err := NewMetrics(prometheus.NewRegistry(), "v0")
		if err != nil {
			t.Fatal(err)
		}
		d := &Driver{
			engine: engine.New(engine.Options{}), metrics: metrics, clock: newClock(),
			timer: time.NewTimer(time.Hour), look: time.NewTimer(time.Hour), objects: modules.New(modules.Options{}),
		}
		began := time.Now()
		d.sleep(began.Add(10 * time.Minute))
		naps := 0
		for !d.looking { // set by the first input
			<-d.timer.C
			naps++
			d.wake()
		}
		if took := time.Since(began); took != 10*time.Minute || naps != 10 {
			t.Errorf("woken after %s and %d naps", took, naps)
		}
	})
}
