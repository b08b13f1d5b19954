package standings

import (
	"slices"
	"testing"
	"time"
)

// Dependents look when what they go by differs, and not for the rest.
func TestDependentsLook(t *testing.T) {
	s := New()
	for i, c := range []struct {
		now  Standing
		want bool
	}{{AtWork | Coming, false}, {AtWork | There, true}, {Settled | Ready | There, true}, {Settled | Ready | There, false}, {Off | Settled | There | Going, true}, {Off | Settled, true}} {
		if _, got := s.Note("web", c.now); got != c.want {
			t.Errorf("%d: dependents look: %t", i, got)
		}
	}
}

// Those that wait for a module look at its next change, once.
func TestOnesThatWaitLook(t *testing.T) {
	s := New()
	for _, name := range []string{"a", "b", "a", "db"} {
		s.Await(name, "db")
	}
	for i, c := range []struct {
		now  Standing
		want []string
	}{{AtWork, nil}, {Ready, []string{"a", "b"}}, {Settled, nil}} {
		if got, _ := s.Note("db", c.now); !slices.Equal(got, c.want) {
			t.Errorf("%d: %v look, want %v", i, got, c.want)
		}
	}
}

// All is ready once no module was coming, and stays so.
func TestReady(t *testing.T) {
	s := New()
	s.Note("db", Settled)
	s.Note("web", Coming)
	order := []string{"db", "web"}
	if s.AllReady(order) {
		t.Error("all is ready while web is coming")
	}
	s.Note("web", 0)
	if !s.AllReady(order) {
		t.Error("nothing is coming, and all is not ready")
	}
	s.Note("db", Coming)
	if !s.AllReady(order) {
		t.Error("db takes all out of service")
	}
}

// A module that is coming is named until it has come, then the next one, also one before it.
func TestComing(t *testing.T) {
	s, order := New(), []string{"a", "b", "c"}
	for _, name := range order[1:] {
		s.Note(name, Coming)
	}
	for _, c := range []struct {
		name string
		now  Standing
		want string
	}{{"a", 0, "b"}, {"c", Coming, "b"}, {"b", 0, "c"}, {"a", Coming, "c"}, {"c", 0, "a"}, {"a", 0, ""}} {
		s.Note(c.name, c.now)
		if got := s.Coming(order); got != c.want {
			t.Errorf("after %s: %q is coming, want %q", c.name, got, c.want)
		}
	}
	if got := s.Coming(nil); got != "" {
		t.Errorf("%q is coming of none", got)
	}
}

// Hooks of before_all run once, those of after_all each time that all have come to rest.
func TestStages(t *testing.T) {
	s := New()
	if s.Begun() {
		t.Error("before_all has begun")
	}
	if s.Begin(); !s.Begun() {
		t.Error("before_all has not begun")
	}
	rest := func(want int) {
		t.Helper()
		if got := s.Rest(); got != want {
			t.Errorf("round %d, want %d", got, want)
		}
	}
	work := func() {
		s.Note("db", AtWork)
		s.Note("db", AtWork)
		s.Note("web", AtWork)
		rest(0)
		s.Note("web", Settled)
		rest(0)
		s.Note("db", Settled)
	}
	rest(0)
	work()
	rest(1)
	rest(0)
	work()
	rest(2)
	s.Outside()
	work()
	rest(1)
	s.Note("db", AtWork)
	rest(0)
	s.Forget("db")
	s.Forget("db")
	rest(2)
	s.Stir()
	rest(3)
}

func TestWhatPeopleAreShown(t *testing.T) {
	s, now := New(), time.Unix(100, 0)
	show := func(what string, at time.Time, news, first bool) {
		t.Helper()
		if n, f := s.Show("web", what, at); n != news || f != first {
			t.Errorf("%s: news %t, first %t", what, n, f)
		}
	}
	show("starting", now, true, true)
	show("starting", now.Add(time.Second), false, false)
	show("ready", now.Add(time.Minute), true, false)
	if got := s.Since("web"); !got.Equal(now.Add(time.Minute)) {
		t.Errorf("since %s", got)
	}
}
