package live

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// timeTree has a schedule, and a hook whose run works at the fourth attempt.
var timeTree = map[string]string{
	"web/module.star": `module(enabled = True, grants = [grant("v1", "ConfigMap", ["apply"], namespaces = ["sites"])])
`,
	"web/hooks/a.star": `
def written(name, n):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "sites"}, "data": {"n": str(n)}})

def tick(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    written("ticks", n)

hook(tick, on = [schedule("*/10 * * * *")])

def fails(ctx):
    if not ctx.snapshots["sites"]:
        return
    if ctx.attempt < 4:
        fail("not yet")
    written("attempts", ctx.attempt)

hook(fails, on = [k8s.watch("v1", "ConfigMap", name = "sites", labels = "site")], retry = retry(min = "10s", max = "10s"))
`,
}

// reads waits for so long at most until a ConfigMap holds this number.
func (f *fixture) reads(name, n string, most time.Duration) (took time.Duration) {
	f.Helper()
	got := ""
	for ; took <= most; took += time.Second {
		obj, err := f.store.Get(siteConfigMap(name))
		if err == nil {
			if got, _, _ = unstructured.NestedString(obj, "data", "n"); got == n {
				return took
			}
		}
		time.Sleep(time.Second)
	}
	f.Fatalf("%s holds %q after %s, want %q", name, got, most, n)
	return 0
}

// The machine's clock is set while a process leads, or the machine is suspended: schedules go on, a run that has failed
// comes again, and the process keeps the Lease, which goes by its own clocks.
func TestAProcessWhoseClockIsSet(t *testing.T) {
	for _, c := range []struct {
		name  string
		by    time.Duration
		tick  time.Duration // until the next tick at most, five minutes before its time
		tick2 time.Duration // until the one after it
		retry time.Duration // until the third retry at most
	}{
		{"nobody sets it", 0, 5 * time.Minute, 10 * time.Minute, 31 * time.Second},
		{"suspended for ten minutes", 10 * time.Minute, maxNap, 5 * time.Minute, 31 * time.Second},
		{"forward by an hour", time.Hour, maxNap, 5 * time.Minute, 31 * time.Second},
		{"back by an hour", -time.Hour, 10 * time.Minute, 20 * time.Minute, 62 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, timeTree)
				f.driver.o.Lease = LeaseTimes{Duration: 45 * time.Second, Renew: 30 * time.Second, Retry: 5 * time.Second}
				var set atomic.Int64
				read := f.driver.clock.read
				f.driver.clock.read = func() (time.Time, time.Duration) {
					wall, steady := read()
					return wall.Add(time.Duration(set.Load())), steady
				}
				f.start()
				f.waitReady()
				holder := f.holder()
				f.reads("ticks", "2", 25*time.Minute)
				time.Sleep(5*time.Minute - time.Second)
				f.make("a", "site", nil)
				time.Sleep(time.Second) // the first attempt has failed
				set.Add(int64(c.by))
				retried := f.reads("attempts", "4", c.retry)
				if took := retried + f.reads("ticks", "3", c.tick+5*time.Second); took > c.tick+5*time.Second {
					t.Errorf("the next tick came after %s", took)
				}
				f.reads("ticks", "4", c.tick2+10*time.Second)
				if now := f.holder(); now != holder {
					t.Errorf("%q has the Lease, it was %q", now, holder)
				}
			})
		})
	}
}
