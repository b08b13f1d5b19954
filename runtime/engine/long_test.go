package engine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
)

// Lists that an author can make long cost the engine as much as they are long: what it allocates tells, for a copy of
// all for each of them is what made a healthy module wait.
func TestLongListsCostWhatTheyAreLong(t *testing.T) {
	nightly := func(n int) *generation.Hook {
		h := hk("a")
		for i := range n {
			b := onSchedule(builtins.ScheduleBinding{Cron: "* * * * *", Timezone: "UTC", CatchUp: i%2 == 0})
			b.Name = fmt.Sprint("s", i)
			h.Bindings = append(h.Bindings, b)
		}
		return h
	}
	minutes := func(w *world) { w.advance(5 * time.Minute) }
	for name, c := range map[string]struct {
		hooks func(n int) []*generation.Hook
		do    func(w *world)
	}{
		"schedules of a hook":            {func(n int) []*generation.Hook { return []*generation.Hook{nightly(n)} }, minutes},
		"schedules of a hook that fails": {func(n int) []*generation.Hook { return []*generation.Hook{nightly(n)} }, minutes},
		"schedules of a hook of for_each": {func(n int) []*generation.Hook {
			h := nightly(n)
			h.Bindings, h.ForEach, h.Parallel = append(h.Bindings, onWatch("nodes")), "nodes", 4
			return []*generation.Hook{h}
		}, minutes},
		"hooks with a schedule": {func(n int) (out []*generation.Hook) {
			for i := range n {
				h := nightly(1)
				h.ID = fmt.Sprint("h", i)
				out = append(out, h)
			}
			return out
		}, minutes},
		"watches of a hook": {func(n int) []*generation.Hook {
			h := hk("a")
			for i := range n {
				h.Bindings = append(h.Bindings, onWatch(fmt.Sprint("w", i)))
			}
			return []*generation.Hook{h}
		}, func(w *world) {
			for range 10 {
				w.in(WatchChanged{ID: "web/a#w7", Events: []builtins.Event{{Type: "modified", Binding: "w7", Name: "a"}}})
			}
		}},
	} {
		cost := func(n int) uint64 {
			w := newWorld(t, mod("web", isOn(), c.hooks(n)...), mod("healthy", isOn(), hk("beat", onSchedule(builtins.ScheduleBinding{Cron: "* * * * *", Timezone: "UTC"}))))
			if name == "schedules of a hook that fails" {
				w.hooks["web/a"] = fails
			}
			w.objects["x"] = Object{Name: "x"}
			w.start()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			c.do(w)
			t.Logf("%s: %d take %s", name, n, time.Since(began))
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		few, many := cost(500), cost(4000)
		if many > 20*few {
			t.Errorf("%s: 500 of them allocate %d bytes, 4000 allocate %d", name, few, many)
		}
	}
}
