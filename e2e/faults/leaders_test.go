package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-operator/starling/e2e/cluster"
)

// misfortunes are what becomes of a process that leads.
var misfortunes = []struct {
	name  string
	begin func(*replica, *cluster.Line)
}{
	{"stopped", func(r *replica, _ *cluster.Line) { r.signal(syscall.SIGTERM) }},
	{"killed", func(r *replica, _ *cluster.Line) { r.Kill() }},
	{"frozen", func(r *replica, _ *cluster.Line) { r.signal(syscall.SIGSTOP) }},
	{"cut off", func(_ *replica, l *cluster.Line) { l.Cut() }},
	{"not heard", func(_ *replica, l *cluster.Line) { l.Stall(cluster.Up) }},
	{"deaf", func(_ *replica, l *cluster.Line) { l.Stall(cluster.Down) }},
}

func (r *replica) signal(s syscall.Signal) { _ = syscall.Kill(r.PID(), s) } // it may have ended

// Row 9: whatever becomes of the process that leads, no two write, and another one goes on with its work.
func TestNeverTwoWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{replicas: 2})
	seen, lines := w.observed()
	w.begin()

	took := map[string][]time.Duration{}
	order := w.dice.Perm(len(misfortunes))
	for round := range rounds {
		if !long {
			order = []int{1, 2, 3 + w.dice.IntN(3)}
		}
		for _, which := range order {
			now, what := -1, misfortunes[which]
			w.eventually("one leads, and the other one stands by", func() error {
				leads, _, err := w.leader()
				if err != nil {
					return err
				}
				now = slices.Index(w.replicas, leads)
				_, err = w.replicas[1-now].status()
				return err
			})
			began := time.Now()
			what.begin(w.replicas[now], lines[now])
			next := time.Time{}
			for next = seen.since(began, now); next.IsZero(); next = seen.since(began, now) {
				if time.Since(began) > soon {
					t.Fatalf("%s: nobody writes", what.name)
				}
				w.change()
				time.Sleep(50 * time.Millisecond)
			}
			took[what.name] = append(took[what.name], next.Sub(began))
			if long && what.name == "frozen" {
				for time.Since(began) < 30*time.Second {
					w.changes(5)
				}
			}
			w.replicas[now].signal(syscall.SIGCONT)
			lines[now].Cut() // what a stall has held back is lost, as its connection is
			lines[now].Mend()
			w.changes(5)
			w.settle()
		}
		t.Logf("round %d is over", round)
	}
	seen.check(t)
	var told []string
	for _, what := range slices.Sorted(maps.Keys(took)) {
		slices.Sort(took[what])
		told = append(told, fmt.Sprintf("%s %s (at most %s)", what, took[what][len(took[what])/2].Round(10*time.Millisecond), took[what][len(took[what])-1].Round(10*time.Millisecond)))
	}
	t.Logf("seed %d, until another process had written: %s", seed, strings.Join(told, ", "))
}
