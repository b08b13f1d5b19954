package live

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/engine"
)

// countTree has a hook that counts its runs in an object and in what is kept, and [sayingTree]'s reviews.
func countTree() map[string]string {
	return map[string]string{
		"web/module.star":  `module(enabled = True, grants = [grant("v1", "ConfigMap", ["apply"], namespaces = ["sites"])])` + "\n",
		"web/hooks/a.star": sayingTree["web/hooks/a.star"],
		"web/hooks/b.star": `
def beat(ctx):
    n = ctx.state.get("n", 0) + 1
    ctx.state.set("n", n)
    metrics.set("beats", n)
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beat", "namespace": "sites"}, "data": {"n": str(n)}})

hook(beat, on = [schedule("* * * * * *")])
`,
	}
}

// beats is what the hook of [countTree] has counted in its object.
func (f *fixture) beats() string {
	f.Helper()
	obj, err := f.store.Get(siteConfigMap("beat"))
	if err != nil {
		return err.Error()
	}
	data, _ := obj["data"].(map[string]any)
	n, _ := data["n"].(string)
	return n
}

// An API server that is away for ten minutes costs no process. It stands by, answers reviews by what it knows, writes
// nothing, and works within two seconds of the return of the server: again and again.
func TestALostLeaseIsAStepDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, countTree())
		var led atomic.Bool
		led.Store(true)
		f.answered = func(r *http.Request, _ *http.Response) {
			if !led.Load() && r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") && !strings.HasSuffix(r.URL.Path, "/words") {
				t.Errorf("written while it stands by: %s %s", r.Method, r.URL.Path)
			}
		}
		f.start()
		f.waitReady()
		f.say("one")
		time.Sleep(5 * time.Second)
		want := "says one"
		for round, away := range []time.Duration{10 * time.Minute, 8 * time.Second, 20 * time.Second} {
			if got := f.reviewed(); got != want || !f.leads() {
				t.Fatalf("round %d: a review %s, it leads: %t", round, got, f.leads())
			}
			before := f.driver.term.Load()
			f.line.cut()
			for began := time.Now(); time.Since(began) < away; time.Sleep(time.Second) {
				if got := f.reviewed(); got != want {
					t.Fatalf("round %d, %s without the server: a review %s", round, time.Since(began), got)
				}
				if ready, why := f.driver.Ready(); !ready {
					t.Fatalf("round %d, %s without the server: not ready: %s", round, time.Since(began), why)
				}
				if time.Since(began) > times.Renew+2*times.Retry && f.leads() {
					t.Fatalf("round %d, %s without the server: it leads", round, time.Since(began))
				}
			}
			stood := f.beats()
			f.line.mend()
			began := time.Now()
			for !f.leads() {
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("round %d: it leads %s after the return of the server", round, took)
			}
			for ; f.beats() == stood; time.Sleep(10 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("round %d: nothing is written", round)
				}
			}
			// Two seconds, and one more: an engine that has just missed a second runs the hook in the next one.
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("round %d: it works %s after the return of the server", round, took)
			}
			if f.driver.term.Load() == before {
				t.Errorf("round %d: the Lease was not lost", round)
			}
			want = "says " + strings.Repeat("more ", round+1)
			f.say(strings.TrimPrefix(want, "says "))
			time.Sleep(5 * time.Second)
		}
		if ended, err := ask(t.Context(), f.driver, func(*engine.Engine) bool { return len(f.driver.outgoing) == 0 }); err != nil || !ended {
			t.Errorf("watches of earlier engines go on: %v", err)
		}
		f.steal()
		<-f.driver.term.Load().lost
		time.Sleep(time.Millisecond) // answers are on their way
		led.Store(false)
		time.Sleep(30 * time.Second)
		if got := f.reviewed(); got != want || f.leads() {
			t.Errorf("behind another process a review %s, it leads: %t", got, f.leads())
		}
		if ended, err := ask(t.Context(), f.driver, func(*engine.Engine) bool { return len(f.driver.outgoing) == 0 }); err != nil || !ended {
			t.Errorf("watches of the engine that led go on: %v", err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Errorf("the process ends with %v", err)
		}
		if got := f.holder(); got != "thief" {
			t.Errorf("the Lease is held by %q", got)
		}
	})
}

// Two processes lose the API server at once, and one of them ends meanwhile, or none: after its return one of
// the living leads, and no other.
func TestTwoProcessesWithoutTheServer(t *testing.T) {
	for _, gone := range []int{-1, 0, 1} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, countTree())
			f.start()
			f.waitReady()
			f.say("one")
			g := f.beside(countTree())
			g.start()
			time.Sleep(5 * time.Second)
			all := []*fixture{f, g}
			f.line.cut()
			time.Sleep(time.Minute)
			if gone >= 0 {
				all[gone].stop()
				if err := <-all[gone].ended; err != nil {
					t.Errorf("a process that is told to end ends with %v", err)
				}
				all = append(all[:gone:gone], all[gone+1:]...)
			}
			for _, p := range all {
				if got := p.reviewed(); got != "says one" || p.leads() {
					t.Errorf("without the server a review %s, it leads: %t", got, p.leads())
				}
			}
			stood := f.beats()
			f.line.mend()
			time.Sleep(2 * time.Second)
			leaders := 0
			for _, p := range all {
				if p.leads() {
					leaders++
				}
			}
			if got := f.beats(); leaders != 1 || got == stood {
				t.Errorf("without process %d: %d lead, and %s beats are written, %s before", gone, leaders, got, stood)
			}
			f.say("two")
			time.Sleep(30 * time.Second)
			for _, p := range all {
				if got := p.reviewed(); got != "says two" {
					t.Errorf("without process %d: a review %s", gone, got)
				}
				p.stop()
				if err := <-p.ended; err != nil {
					t.Errorf("a process ends with %v", err)
				}
			}
		})
	}
}

// The next term waits for all work of the last one, and its results count for nothing. When that does not end, the
// process does.
func TestATermBeginsAfterTheEndOfTheLast(t *testing.T) {
	for _, lasts := range []time.Duration{10 * time.Second, 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, countTree())
			f.start()
			f.waitReady()
			time.Sleep(2 * time.Second)
			before := f.driver.term.Load()
			release := make(chan struct{})
			run, err := ask(t.Context(), f.driver, func(e *engine.Engine) uint64 { return e.Numbers() + 1 })
			if err != nil {
				t.Fatal(err)
			}
			f.driver.start(func() error { <-release; return errors.New("late") },
				func(err error) engine.Input { return engine.RunDone{Run: run, Err: err} })
			f.steal()
			<-before.lost
			if err := f.leases().Delete(t.Context(), "starling", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			end := time.AfterFunc(lasts, func() { close(release) })
			defer func() {
				if end.Stop() {
					close(release)
				}
			}()
			if lasts > endWithin {
				if err := <-f.ended; !errors.Is(err, errUnending) {
					t.Errorf("the process ends with %v", err)
				}
				return
			}
			time.Sleep(lasts - time.Second)
			if f.leads() || f.driver.term.Load() != before {
				t.Error("the next term has begun")
			}
			time.Sleep(4 * time.Second)
			if !f.leads() || f.driver.term.Load() == before {
				t.Error("it does not lead again")
			}
			st, err := f.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range st.Hooks {
				if h.Failures > 0 {
					t.Errorf("%s has failed: %s", h.ID, h.LastError)
				}
			}
			f.stop()
			if err := <-f.ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// A process that stands by, or that has led, does not end because its rights to the Lease are not there for a while, as
// while an API server begins.
func TestRightsToTheLeaseThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, countTree())
		var denied atomic.Bool
		f.answered = func(r *http.Request, resp *http.Response) {
			if denied.Load() && strings.Contains(r.URL.Path, "/leases") {
				resp.StatusCode = http.StatusForbidden
			}
		}
		f.start()
		f.waitReady()
		for range 2 {
			denied.Store(true)
			time.Sleep(time.Minute)
			if f.leads() {
				t.Error("it leads without its Lease")
			}
			denied.Store(false)
			time.Sleep(5 * time.Second)
			if !f.leads() {
				t.Error("it does not lead again")
			}
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
