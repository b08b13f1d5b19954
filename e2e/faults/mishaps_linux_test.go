package faults

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/e2e/proxy"
)

// mishap is one fault of a soak.
type mishap struct {
	name   string
	faults []proxy.Fault
	begin  func(*soak) (end func()) // nil: the faults are all
}

// soak is a world to which all faults come.
type soak struct {
	*world
	lines   []*cluster.Line
	mounted []*mounted
	disks   []disk
	greedy  int // how often the greedy hook was asked
}

// disk is that of a state folder.
type disk struct{ fill, free func() }

// one is any of the replicas.
func (s *soak) one() int { return s.dice.IntN(len(s.replicas)) }

// signalled is about a replica that gets a signal, and goes on in the end.
func signalled(name string, signal syscall.Signal) mishap {
	return mishap{name: name, begin: func(s *soak) func() {
		r := s.replicas[s.one()]
		r.signal(signal)
		return func() { r.signal(syscall.SIGCONT) }
	}}
}

// onLine is about the line of a replica, which is whole again in the end.
func onLine(name string, strike func(*cluster.Line)) mishap {
	return mishap{name: name, begin: func(s *soak) func() {
		line := s.lines[s.one()]
		strike(line)
		return func() { line.Cut(); line.Mend() }
	}}
}

// mishaps are those of the table by its rows, but for clocks (10), which only tests of the engine can set.
func mishaps() []mishap {
	all := []mishap{
		{name: "1: the API server is stopped", begin: func(s *soak) func() { return s.restarted(s.cluster.Restart) }},
		{name: "1: the API server is killed", begin: func(s *soak) func() { return s.restarted(s.cluster.Crash) }},
		{name: "2: watches are cut", faults: []proxy.Fault{{Name: "watches with an end", On: proxy.Watches,
			Strike: proxy.Life(time.Second, 5*time.Second, proxy.Plain, proxy.Delayed, proxy.Halved, proxy.Garbled, proxy.Deaf, proxy.Silent)}}},
		{name: "3: history is gone", faults: []proxy.Fault{noStreams(50), {Name: "versions that are gone", On: proxy.Resumes, Percent: 40, Strike: gone},
			{Name: "small pages", On: proxy.Lists, Strike: proxy.SmallPages(1)}}},
		{name: "3: compaction", begin: func(s *soak) func() { s.cluster.Compact(s.t); return func() {} }},
		{name: "4: events are lost and doubled", faults: []proxy.Fault{noStreams(70), {Name: "stale lists", On: proxy.Lists, Strike: proxy.Stale()},
			{Name: "watches with an end", On: proxy.Watches, Strike: proxy.Life(time.Second, 4*time.Second, proxy.Doubled, proxy.Repeated, proxy.Swapped, proxy.Lossy)}}},
		{name: "5: fifty writers", begin: func(s *soak) func() { s.crowd(5*time.Second, func() { s.changes(1) }); return func() {} }},
		signalled("6: a replica is killed", syscall.SIGKILL),
		signalled("6: a replica is stopped", syscall.SIGTERM),
		signalled("9: a replica is frozen", syscall.SIGSTOP),
		onLine("9: a replica is cut off", func(l *cluster.Line) { l.Cut() }),
		onLine("9: a replica is not heard", func(l *cluster.Line) { l.Stall(cluster.Up) }),
		onLine("9: a replica is deaf", func(l *cluster.Line) { l.Stall(cluster.Down) }),
		{name: "11: a hook takes too much memory", begin: (*soak).greed},
		{name: "11: a disk is full", begin: func(s *soak) func() { d := s.disks[s.one()]; d.fill(); return d.free }},
		{name: "12: rights are revoked", begin: func(s *soak) func() { return s.revoke(account(0), account(1)) }},
		{name: "12: tokens and the authority are rotated", begin: (*soak).rotated},
		{name: "13: the tree changes", begin: (*soak).reloads},
	}
	for _, t := range troubles() {
		all = append(all, mishap{name: "7: " + t.name, faults: t.faults})
	}
	for _, p := range policies() {
		all = append(all, mishap{name: "8: a webhook of others: " + p.name, begin: func(s *soak) func() { return s.register(p) }})
	}
	return all
}

// restarted has the API server restart while there is work.
func (s *soak) restarted(restart func(testing.TB)) func() {
	s.change()
	restart(s.t)
	return func() {}
}

// rotated puts other tokens in force, and another authority.
func (s *soak) rotated() func() {
	for _, m := range s.mounted {
		s.renewToken(m)
	}
	shown, err := s.proxy.Rotate()
	s.done(err)
	s.changes(2)
	for _, m := range s.mounted {
		s.put(m.authority, shown)
	}
	return func() {}
}

// reloads changes the tree 20 times, each third time into one that is broken.
func (s *soak) reloads() func() {
	const file = "m49/hooks/a.star"
	whole := soaked()[file]
	for i := range 20 {
		text := fmt.Sprintf("# %d\n", s.dice.IntN(1000)) + whole
		if i%3 == 2 {
			text = broken[s.dice.IntN(len(broken))]
		}
		s.write(map[string]string{file: text})
		s.changes(1)
	}
	return func() { s.write(map[string]string{file: whole}) }
}

// greed has a hook take all the memory there is.
func (s *soak) greed() func() {
	s.greedy++
	ask := func(much string) {
		s.t.Helper()
		_, err := s.cluster.Client.CoreV1().ConfigMaps(s.ns).Update(s.t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "greed", Labels: map[string]string{"greed": s.ns}}, Data: map[string]string{"much": much, "n": fmt.Sprint(s.greedy)}}, metav1.UpdateOptions{})
		s.done(err)
	}
	ask("yes")
	return func() { ask("no") }
}

// drawn are one or two mishaps, of which the second comes while the first goes on.
func drawn(dice *rand.Rand, all []mishap) []mishap {
	some := []mishap{all[dice.IntN(len(all))]}
	if second := all[dice.IntN(len(all))]; dice.IntN(3) == 0 && second.name[:2] != some[0].name[:2] {
		some = append(some, second)
	}
	return some
}
