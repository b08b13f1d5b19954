package live

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
)

// follow is a process with a new state folder, which takes a Lease over that its last holder has left so.
func follow(t *testing.T, lease string) *Marks {
	t.Helper()
	m := open(t, t.TempDir())
	m.inherit(lease, "other", "own")
	if got := m.carry(); readLeaseMarks(lease).Running == nil && got != lease {
		t.Errorf("the Lease carries %s on, and has carried %s", got, lease)
	}
	web := &generation.Module{Name: "web"}
	for _, id := range []string{"web/a", "web/b"} {
		web.Hooks = append(web.Hooks, &generation.Hook{HookDecl: &builtins.HookDecl{ID: id}, ID: id, Digest: "code"})
	}
	m.use(&generation.Generation{Names: []string{"web"}, Modules: map[string]*generation.Module{"web": web}})
	return m
}

// However much runs beside it, what ends one process after the other is known soon.
func TestAHookThatKillsIsNotHiddenByOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killer := "web/0"
		for i := range 300 {
			if what := fmt.Sprint("web/", i); markOf(what, "code") > markOf(killer, "code") {
				killer = what
			}
		}
		lease := ""
		for range 40 {
			time.Sleep(time.Second) // the next one has the Lease
			m := open(t, t.TempDir())
			if m.inherit(lease, "other", "own"); m.quarantined(killer, "code") != "" {
				return
			}
			for i := range 300 {
				what := fmt.Sprint("web/", i)
				if err := m.begin(what, "code"); err != nil {
					t.Fatal(err)
				}
				if what == killer {
					continue
				}
				for _, err := range []error{m.end(what, "code", true), m.begin(what, "code")} { // others run well
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			lease = m.carry() // and the process is gone
		}
		t.Errorf("%s is run again and again", killer)
	})
}

// A hook during which two processes have ended is known to the third one, which has nothing of their folders.
func TestTheLeaseTellsOfAHookThatKills(t *testing.T) {
	lease := ""
	for range quarantineAfter {
		m := follow(t, lease)
		if why := m.quarantined("web/a", "code"); why != "" {
			t.Fatalf("too early: %s", why)
		}
		for _, what := range []string{"web/a", "web/b", "the filter of web/a#cms"} {
			if err := m.begin(what, "code"); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.end("web/b", "code", false); err != nil {
			t.Fatal(err)
		}
		lease = m.carry() // and the process is gone
	}
	m := follow(t, lease)
	if why := m.quarantined("web/a", "code"); why != "quarantined: 2 times in a row starling was killed while it ran; change it, or remove the annotation starling.dev/marks of the Lease and restart" {
		t.Errorf("got %q", why)
	}
	if m.quarantined("the filter of web/a#cms", "code") == "" {
		t.Error("the filter is evaluated")
	}
	if why := m.quarantined("web/b", "code"); why != "" {
		t.Errorf("a hook that had ended: %s", why)
	}
	if why := m.quarantined("web/a", "other code"); why != "" {
		t.Errorf("a changed hook: %s", why)
	}
	// It stays so, until somebody takes it out of the Lease.
	if m = follow(t, m.carry()); m.quarantined("web/a", "code") == "" {
		t.Error("a restart ends it")
	}
	m.keep(m.carry())
	if m.quarantined("web/a", "code") == "" {
		t.Error("a look at the Lease ends it")
	}
	if m.keep(""); m.carry() != "" {
		t.Errorf("the Lease carries %s", m.carry())
	}
}

// A hook that has ended well in between has nothing against it, nor has one whose process has ended as it should.
func TestTheLeaseForgets(t *testing.T) {
	m := follow(t, "")
	run := func(m *Marks) string {
		t.Helper()
		if err := m.begin("web/a", "code"); err != nil {
			t.Fatal(err)
		}
		return m.carry()
	}
	lease := run(m)
	m = follow(t, lease)
	run(m)
	if err := m.end("web/a", "code", true); err != nil || m.carry() != "" {
		t.Errorf("the Lease carries %q (%v)", m.carry(), err)
	}

	// A process that has lost its Lease, and ends as it should.
	m = follow(t, lease)
	lease = run(m)
	if err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := m.End("first"); err != nil {
		t.Fatal(err)
	}
	again := open(t, strings.TrimSuffix(m.dir, "/runs"))
	if again.inherit(lease, "first", "own"); again.quarantined("web/a", "code") != "" {
		t.Error("a process that has ended as it should counts")
	}
	if again.inherit(lease, "other", "own"); again.quarantined("web/a", "code") == "" {
		t.Error("another process does not count")
	}
	// One that has lost its Lease, and has it again, does not go by what the Lease has carried before.
	m = follow(t, lease)
	before := m.carry()
	m.yield()
	m.hear(before, "own")
	m.keep(before)
	run(m)
	if err := m.end("web/a", "code", true); err != nil {
		t.Error(err)
	}
	if m.hear(before, "own"); m.carry() != "" {
		t.Errorf("the Lease carries %q again", m.carry())
	}
	m = again

	// One in which something hangs does not end as it should.
	m.Stay()
	if err := m.End("second"); err != nil || open(t, strings.TrimSuffix(m.dir, "/runs")).ended != "first" {
		t.Error("a process that hangs has ended as it should")
	}

	for _, broken := range []string{"x", "[]", "{\"running\":1}", `{"counted":{"x":["own"]}}`} {
		if m.inherit(broken, "other", "own"); len(m.inherited.Unclean) > 0 {
			t.Errorf("%s counts: %v", broken, m.inherited)
		}
	}
}

// Counts of code that nobody has evaluated for an hour go, and a process that stands by goes by those of the Lease.
func TestCountsOfTheLeaseThatNobodyAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const filter = "the filter of web/a#cms"
		one, other := markOf(filter, "code"), markOf(filter, "code of before")
		lease := `{"unclean":{"` + min(one, other) + `":2,"` + max(one, other) + `":2}}`
		standby := open(t, t.TempDir())
		if standby.hear(lease, "own"); standby.quarantined(filter, "code") == "" {
			t.Error("a process that stands by evaluates what the one that leads must not")
		}
		m := follow(t, lease)
		if m.quarantined(filter, "code") == "" {
			t.Error("the filter is evaluated")
		}
		if m.hear("", "own"); m.carry() != lease {
			t.Errorf("the Lease carries %s on", m.carry())
		}
		time.Sleep(staysUnasked)
		if got := readLeaseMarks(m.carry()).Unclean; len(got) != 1 || got[one] != 2 {
			t.Errorf("an hour later it carries %v", got)
		}
	})
}

// A renewal is written for code that has been under way for a moment, once, and for none that has ended by then.
func TestARenewalIsWrittenForAMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, t.TempDir())
		began := time.Now()
		var written []time.Duration
		var carried []string
		m.hurry(func() {
			written = append(written, time.Since(began))
			carried = append(carried, readLeaseMarks(m.carry()).Running...)
		})
		begin := func(what string) {
			if err := m.begin(what, "code"); err != nil {
				t.Error(err)
			}
		}
		begin("web/short")
		time.Sleep(carriedAfter / 2)
		if err := m.end("web/short", "code", true); err != nil {
			t.Error(err)
		}
		begin("web/long")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(written) != 1 || written[0] < carriedAfter || written[0] > 2*carriedAfter || !slices.Equal(carried, []string{markOf("web/long", "code")}) {
			t.Errorf("written after %v: %v", written, carried)
		}
		m.hurry(nil)
		begin("web/next")
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(written) != 1 {
			t.Errorf("written by a process that does not lead, after %v", written)
		}
	})
}

// A hook that ends its process less than a second after it began is known to the next one by the Lease.
func TestTheLeaseIsRenewedForAHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		time.Sleep(times.Retry / 4)
		if err := f.driver.marks.begin("web/a", "code"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(carriedAfter + time.Millisecond)
		synctest.Wait()
		lease, err := f.leases().Get(t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := readLeaseMarks(lease.Annotations[marksAnnotation]).Running; !slices.Equal(got, []string{markOf("web/a", "code")}) {
			t.Errorf("the Lease carries %v", got)
		}
		time.Sleep(3 * times.Duration) // it is renewed on
		if ready, why := f.driver.Ready(); !ready || f.holder() != f.driver.identity {
			t.Errorf("ready is %t, %s; the Lease is held by %s", ready, why, f.holder())
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// A process that has lost its Lease, and lives, was not killed by what was under way. When it has the Lease again it
// takes back what others have counted of it, and nothing else.
func TestALostLeaseIsNoKill(t *testing.T) {
	run := func(m *Marks) string {
		t.Helper()
		if err := m.begin("web/a", "code"); err != nil {
			t.Fatal(err)
		}
		lease := m.carry()
		if err := m.end("web/a", "code", false); err != nil { // its context has ended
			t.Fatal(err)
		}
		m.yield()
		return lease
	}
	a, b := open(t, t.TempDir()), open(t, t.TempDir())
	a.inherit("", "", "a")
	lease := run(a)
	for range 3 {
		b.inherit(lease, "a", "b")
		if why := b.quarantined("web/a", "code"); why != "" {
			t.Fatal(why)
		}
		lease = run(b)
		a.hear(lease, "a")
		a.inherit(lease, "b", "a")
		if why := a.quarantined("web/a", "code"); why != "" {
			t.Fatal(why)
		}
		lease = run(a)
	}
	// Both are killed at last.
	c := open(t, t.TempDir())
	if c.inherit(lease, "a", "c"); c.quarantined("web/a", "code") == "" {
		t.Error("two processes have not come back, and nothing is known of that")
	}
}

// Three processes lose the Lease in turn while the same hook is under way. Each of them lives, and takes back what the
// next one has counted of it, also in the Lease of another one; what ends its process counts as before.
func TestAProcessThatLivesTakesItsCountBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		all := []*fixture{f, f.beside(emptyTree), f.beside(emptyTree)}
		counted := func(by int) leaseMarks {
			lease, err := all[by].leases().Get(t.Context(), "starling", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return readLeaseMarks(lease.Annotations[marksAnnotation])
		}
		for _, g := range all {
			g.line = newLine()
			g.start()
			time.Sleep(5 * time.Second)
		}
		silent := map[int]bool{} // these are not heard of any more
		// next has the process that leads lose the Lease in the middle of a run to a certain other one.
		next := func(from, to int) {
			t.Helper()
			m := all[from].driver.marks
			if err := m.begin("web/a", "code"); err != nil || !all[from].leads() {
				t.Fatal(from, " does not lead: ", err)
			}
			time.Sleep(2 * time.Second)
			for i, g := range all {
				if i != to {
					g.line.cut()
				}
			}
			time.Sleep(3 * times.Duration)
			if err := m.end("web/a", "code", false); err != nil || !all[to].leads() {
				t.Fatal(to, " does not lead: ", err)
			}
			if got := counted(to).Counted[markOf("web/a", "code")]; !slices.Contains(got, all[from].driver.identity) {
				t.Fatalf("the process is not counted: %v", got)
			}
			for i, g := range all {
				if !silent[i] {
					g.line.mend()
				}
			}
			time.Sleep(3 * times.Retry)
		}
		for round := range 6 {
			from, to := round%3, (round+1)%3
			next(from, to)
			if got := counted(to).Unclean; len(got) > 0 {
				t.Errorf("round %d: the Lease counts %v", round, got)
			}
			for i, g := range all {
				if why := g.driver.marks.quarantined("web/a", "code"); why != "" {
					t.Errorf("round %d: process %d: %s", round, i, why)
				}
			}
		}
		for from := range 2 {
			silent[from] = true
			next(from, from+1)
		}
		if all[2].driver.marks.quarantined("web/a", "code") == "" {
			t.Error("two have not come back, and it is run")
		}
		all[0].line.mend()
		time.Sleep(3 * times.Retry)
		if got := counted(2).Counted[markOf("web/a", "code")]; !slices.Equal(got, []string{all[1].driver.identity}) {
			t.Errorf("one of two has come back, and %v are counted", got)
		}
		all[1].line.mend()
		for _, g := range all {
			g.stop()
			<-g.ended
		}
	})
}
