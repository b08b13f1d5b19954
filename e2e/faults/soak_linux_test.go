package faults

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
)

// soaked are the modules of the other tests, and fifty more, of which twenty have a hook with for_each.
func soaked() map[string]string {
	all := guarded()
	maps.Copy(all, crowded())
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
	all["greedy/module.star"] = "module(enabled = True)\n"
	all["greedy/hooks/a.star"] = `
def greedy(ctx):
    for much in ctx.snapshots["greed"]:
        if much == "yes":
            x = [[0] * 4000000 for i in range(1000000)]

hook(greedy, on = [k8s.watch("v1", "ConfigMap", name = "greed", namespaces = ["$NS"], labels = {"greed": "$NS"}, filter = lambda o: o.data["much"])],
     retry = retry(min = "200ms", max = "5s"))
`
	return all
}

// newSoak makes a world of two replicas, each with an account, a line, mounted credentials, a disk and a part of the
// memory to itself.
func newSoak(t *testing.T) (*soak, *writes) {
	t.Helper()
	s := &soak{world: newWorld(t, setting{replicas: 2, tree: soaked()})}
	var seen *writes
	seen, s.lines = s.observed()
	s.keepLease(account(0), account(1))
	for i, r := range s.replicas {
		s.mounted = append(s.mounted, s.mount(r, account(i), func(token string) { seen.knows(token, i) }))
		dir, fill, free := smallDisk(t, 16)
		r.folder = dir
		s.disks = append(s.disks, disk{fill, free})
		memory, err := cluster.NewMemoryGroup(t, 256<<20)
		s.done(err)
		r.memory = memory
	}
	s.checks = append(s.checks, s.mirrored, s.children, s.summed, func() error {
		for _, name := range []string{"guarded-hook", "guarded-chart"} {
			if got := s.data(name)["text"]; got != s.inputs["guard"] {
				return fmt.Errorf("%s holds %q, want %q", name, got, s.inputs["guard"])
			}
		}
		return nil
	})
	made := []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "greed", Labels: map[string]string{"greed": s.ns}}, Data: map[string]string{"much": "no"}}}
	for i := range boards {
		made = append(made, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("board-", i), Labels: map[string]string{"board": s.ns}}, Data: map[string]string{"w": "0"}})
	}
	for _, cm := range made {
		_, err := s.cluster.Client.CoreV1().ConfigMaps(s.ns).Create(t.Context(), cm, metav1.CreateOptions{})
		s.done(err)
	}
	s.input("guard", "first")
	return s, seen
}

// suffer has one mishap, or two at once, for some seconds while users work, and returns their names and how long it
// took afterwards until all was as it should be.
func (s *soak) suffer() (name string, took time.Duration) {
	some := drawn(s.dice, mishaps())
	var names []string
	var ends []func()
	faults := some[0].faults
	for i, m := range some {
		names = append(names, m.name)
		if i > 0 {
			faults = append(slices.Clone(faults), m.faults...)
		}
	}
	s.inject(faults...)
	for _, m := range some {
		if m.begin != nil {
			ends = append(ends, m.begin(s))
		}
		s.changes(5)
	}
	s.input("guard", fmt.Sprint("g", s.dice.IntN(1000)))
	lasts := time.Duration(2+s.dice.IntN(12)) * time.Second
	if s.dice.IntN(8) == 0 {
		lasts = 30 * time.Second
	}
	for until := time.Now().Add(lasts); time.Now().Before(until); {
		s.changes(2)
	}
	for _, end := range ends {
		end()
	}
	return strings.Join(names, " and "), s.settle()
}

// held is what a replica holds, some time after the begin.
type held struct {
	census
	at time.Duration
}

// flat fails if what replicas hold grows. A process that has just begun holds less, so the middle of all
// that was seen in a third of the time counts.
func flat(t *testing.T, all []held) {
	t.Helper()
	third := max(len(all)/3, 1)
	middle := func(some []held, of func(held) float64) float64 {
		n := slices.SortedFunc(slices.Values(some), func(a, b held) int { return cmp.Compare(of(a), of(b)) })
		return of(n[len(n)/2])
	}
	for _, one := range []struct {
		name string
		of   func(held) float64
	}{
		{"goroutines", func(c held) float64 { return c.goroutines }},
		{"descriptors", func(c held) float64 { return c.descriptors }},
		{"MiB", func(c held) float64 { return c.memory / (1 << 20) }},
	} {
		first, last := middle(all[:third], one.of), middle(all[len(all)-third:], one.of)
		t.Logf("%.0f %s in the first third of the time, %.0f in the last", first, one.name, last)
		if last > first*1.25+10 {
			t.Errorf("%s grow from %.0f to %.0f", one.name, first, last)
		}
	}
}

// Row 14: for as long as SOAK says, faults at random, one or two at once, come to two replicas with fifty modules, and
// after each all is as it should be. Never do two write, and what they hold does not grow.
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("SOAK= says how long: make soak")
	}
	s, seen := newSoak(t)
	s.begin()
	var all []held
	times, slowest, slow := map[string]int{}, time.Duration(0), ""
	n := 0
	for began := time.Now(); time.Since(began) < lasts; n++ {
		name, took := s.suffer()
		times[name]++
		if took > slowest {
			slowest, slow = took, name
		}
		for i, r := range s.replicas {
			s.eventually("it says what it holds", func() error {
				c, err := r.census()
				if err == nil {
					all = append(all, held{c, time.Since(began)})
					t.Logf("%s, %s: whole after %s; replica %d: %s", time.Since(began).Round(time.Second), name, took.Round(time.Millisecond), i, c)
				}
				return err
			})
		}
		if t.Failed() {
			break
		}
	}
	for i, r := range s.replicas {
		kills, err := r.memory.Kills()
		t.Logf("replica %d: %d MiB at most, the kernel has killed %d, %v", i, r.memory.Peak()>>20, kills, err)
		if kills > 0 {
			t.Errorf("the kernel has killed replica %d %d times", i, kills)
		}
	}
	flat(t, all)
	seen.check(t)
	for _, name := range slices.Sorted(maps.Keys(times)) {
		t.Logf("%d × %s", times[name], name)
	}
	t.Logf("seed %d: %d faults, %d starts, whole %s later at most (%s)", seed, n, s.starts(), slowest.Round(time.Millisecond), slow)
}
