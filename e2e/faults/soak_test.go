package faults

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/proxy"
)

// soaked is the tree with fifty more modules, of which twenty have a hook with for_each.
func soaked() map[string]string {
	all := maps.Clone(tree)
	for i := range 50 {
		name := fmt.Sprintf("m%02d", i)
		all[name+"/module.star"] = "module(enabled = True)\n"
		hook := "def all(ctx):\n    values.set(\"n\", len(ctx.snapshots[\"inputs\"]))\n\nhook(all, on = [startup(), "
		end := ")\n"
		if i < 20 {
			hook = "def one(ctx):\n    ctx.state.set(\"last\", ctx.object)\n\nhook(one, on = ["
			end = ", for_each = \"inputs\")\n"
		}
		all[name+"/hooks/a.star"] = hook + `k8s.watch("v1", "ConfigMap", name = "inputs", namespaces = ["$NS"], labels = {"input": "$NS"}, filter = lambda o: o.data["text"])]` + end
	}
	return all
}

// mishap is one fault of a soak: what it returns ends it.
type mishap struct {
	name  string
	begin func(*world) (end func())
}

func mishaps() []mishap {
	none := func() {}
	faults := func(name string, all ...proxy.Fault) mishap {
		return mishap{name, func(w *world) func() { w.inject(all...); return none }}
	}
	signal := func(name string, first, second syscall.Signal) mishap {
		return mishap{name, func(w *world) func() {
			r := w.replicas[w.dice.IntN(len(w.replicas))]
			r.signal(first)
			return func() { r.signal(second) }
		}}
	}
	all := []mishap{
		faults("watches are cut", proxy.Fault{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(time.Second, 5*time.Second,
			proxy.Plain, proxy.Delayed, proxy.Halved, proxy.Garbled, proxy.Deaf, proxy.Silent)}),
		faults("history is gone", noStreams(50), proxy.Fault{Name: "versions that are gone", On: proxy.Resumes, Percent: 40, Strike: gone},
			proxy.Fault{Name: "small pages", On: proxy.Lists, Strike: proxy.SmallPages(1)}),
		faults("events are lost and doubled", noStreams(70), proxy.Fault{Name: "stale lists", On: proxy.Lists, Strike: proxy.Stale()},
			proxy.Fault{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(time.Second, 4*time.Second, proxy.Doubled, proxy.Repeated, proxy.Swapped, proxy.Lossy)}),
		signal("a replica is killed", syscall.SIGKILL, syscall.SIGCONT),
		signal("a replica is stopped", syscall.SIGTERM, syscall.SIGCONT),
		signal("a replica is frozen", syscall.SIGSTOP, syscall.SIGCONT),
		{"the tree changes", func(w *world) func() {
			for i := range 9 {
				text := fmt.Sprintf("module(enabled = True)\n# %d\n", w.dice.IntN(1000))
				if i%3 == 2 {
					text = "module(\n"
				}
				w.write(map[string]string{"m49/module.star": text})
				time.Sleep(300 * time.Millisecond)
			}
			return func() { w.write(map[string]string{"m49/module.star": "module(enabled = True)\n"}) }
		}},
		{"compaction", func(w *world) func() { w.cluster.Compact(w.t); return none }},
	}
	for _, t := range troubles() {
		all = append(all, faults(t.name, t.faults...))
	}
	return all
}

// Row 14: for as long as SOAK says, one fault after the other, at random, on two replicas with fifty modules, and after
// each all is as it should be. Memory and descriptors do not grow.
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("SOAK= says how long: make soak")
	}
	w := newWorld(t, setting{replicas: 2, tree: soaked()})
	w.checks = append([]func() error{w.mirrored, w.children}, w.checks...)
	for _, r := range w.replicas {
		t.Cleanup(func() { r.signal(syscall.SIGCONT) })
	}
	w.begin()
	var all []census
	times := map[string]int{}
	slowest := time.Duration(0)
	for began := time.Now(); time.Since(began) < lasts; {
		m := mishaps()[w.dice.IntN(len(mishaps()))]
		times[m.name]++
		end := m.begin(w)
		for range 3 {
			w.changes(10)
		}
		end()
		took := w.settle()
		slowest = max(slowest, took)
		for i, r := range w.replicas {
			w.eventually("it says what it holds", func() error {
				c, err := r.census()
				if err == nil {
					all = append(all, c)
					t.Logf("%s, %s: whole after %s; replica %d: %s", time.Since(began).Round(time.Second), m.name, took.Round(time.Millisecond), i, c)
				}
				return err
			})
		}
	}
	// The middle of what processes have held, in the first and in the last third of the time.
	middle := func(some []census, of func(census) float64) float64 {
		var n []float64
		for _, c := range some {
			n = append(n, of(c))
		}
		slices.Sort(n)
		return n[len(n)/2]
	}
	third := max(len(all)/3, 1)
	for name, of := range map[string]func(census) float64{
		"goroutines": func(c census) float64 { return c.goroutines }, "descriptors": func(c census) float64 { return c.descriptors },
		"MiB": func(c census) float64 { return c.memory / (1 << 20) },
	} {
		first, last := middle(all[:third], of), middle(all[len(all)-third:], of)
		t.Logf("%.0f %s at first, %.0f in the end", first, name, last)
		if last > first*1.25+10 {
			t.Errorf("%s grow from %.0f to %.0f", name, first, last)
		}
	}
	t.Logf("seed %d, %d faults %v, whole %s later at most", seed, len(all)/2, times, slowest.Round(time.Millisecond))
}
