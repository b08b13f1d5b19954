package webhook

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// A module folder that is away for a moment leaves a policy closed: what it has registered goes once it has been gone
// for the grace, whether other modules have webhooks or not.
func TestAModuleThatIsAwayStaysRegistered(t *testing.T) {
	const none = "def f(ctx):\n    pass\nhook(f, on = [startup])\n"
	for name, other := range map[string]string{"another one has webhooks": twoHooks, "no other one has": none} {
		t.Run(name, func(t *testing.T) {
			trees := func(more ...string) map[string]string {
				files := map[string]string{"other/hooks/a.star": other}
				for _, module := range more {
					files[module+"/hooks/a.star"] = twoHooks
				}
				return files
			}
			w := newWorld(t, trees("web"))
			var ahead atomic.Int64 // of a clock that stands still, as looks may take their time
			began := time.Now()
			w.run(func(o *Options) {
				o.Grace, o.Now = 10*time.Second, func() time.Time { return began.Add(time.Duration(ahead.Load())) }
			})
			w.serve("other", true)
			w.serve("web", true)
			is := func(want bool, what string) {
				t.Helper()
				w.eventually(what, func() error {
					if slices.Contains(w.names(), validating) != want {
						return errors.New("it is not")
					}
					return nil
				})
			}
			is(true, "registered")
			full, less := w.gen, load(t, trees())
			looked := func() { // twice, so that one look began later
				for range 2 {
					putStale(w, "stale", "other")
					w.eventually("a look", func() error {
						if slices.Contains(w.names(), "stale") {
							return errors.New("it has not looked")
						}
						return nil
					})
				}
			}
			for range 2 {
				w.manager.Use(less)
				looked()
				ahead.Add(int64(9 * time.Second))
				looked()
				if !slices.Contains(w.names(), validating) {
					t.Fatal("away for a moment, its policy is open")
				}
				w.manager.Use(full)
				w.serve("web", true)
				looked()
			}
			w.manager.Use(less)
			looked()
			ahead.Add(int64(11 * time.Second))
			w.manager.Wake()
			is(false, "gone")
		})
	}
}
