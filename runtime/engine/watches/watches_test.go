package watches

import (
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
)

func decl(edit func(*builtins.WatchBinding)) *builtins.WatchBinding {
	d := &builtins.WatchBinding{APIVersion: "v1", Kind: "Node"}
	if edit != nil {
		edit(d)
	}
	return d
}

func quiet(d *builtins.WatchBinding)    { d.Quiet = true }
func required(d *builtins.WatchBinding) { d.Require = true }
func silent(d *builtins.WatchBinding)   { d.Events = []string{} }

// Each watch has one sync event once all of them are complete.
func TestTheFirstSyncIsOfAllWatches(t *testing.T) {
	loud, still, need := New("loud", decl(nil)), New("still", decl(quiet)), New("need", decl(required))
	s := Set{loud, still, need}
	for _, step := range []struct {
		w      *Watch
		served bool
		want   []string
	}{{loud, true, nil}, {still, false, nil}, {need, false, nil}, {need, true, []string{"loud", "need"}}} {
		if due := s.Sync(step.w, step.served); !slices.Equal(due, step.want) {
			t.Errorf("%s: %v, want %v", step.w.Binding, due, step.want)
		}
	}
	if !s.Synced() || !s.Complete() || !loud.Served() || still.Served() || !still.Missing() || still.Seen() {
		t.Error("the watches are not as they were told")
	}
}

// A kind that comes or goes is a change, also for a watch that is quiet at first.
func TestAKindThatComesAndGoesIsAChange(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*builtins.WatchBinding)
		want []bool // not served, served, gone, served again, complete once more
	}{
		"default":  {nil, []bool{true, true, true, true, true}},
		"quiet":    {quiet, []bool{false, true, true, true, true}},
		"silent":   {silent, []bool{true, true, false, false, false}},
		"required": {required, []bool{false, true, false, true, true}},
	} {
		w := New("nodes", decl(c.edit))
		s := Set{w}
		for i, served := range []bool{false, true, false, true, true} {
			if due := s.Sync(w, served); len(due) > 0 != c.want[i] {
				t.Errorf("%s, step %d: %v", name, i, due)
			}
		}
	}
}

// A hook whose code is another one is told of all snapshots again, now or once they are
// complete.
func TestOtherCodeIsToldAgain(t *testing.T) {
	a, b := New("a", decl(nil)), New("b", decl(nil))
	s := Set{a, b}
	s.Sync(a, true)
	s.Sync(b, true)
	if due := s.Again(); !slices.Equal(due, []string{"a", "b"}) {
		t.Errorf("due are %v", due)
	}
	c := New("c", decl(nil)) // that the other code has brought
	s = Set{a, b, c}
	if due := s.Again(); due != nil {
		t.Errorf("due are %v before all is complete", due)
	}
	if due := s.Sync(c, true); !slices.Equal(due, []string{"a", "b", "c"}) {
		t.Errorf("due are %v", due)
	}
}

func TestWaitsAndTrouble(t *testing.T) {
	a, b := New("a", decl(nil)), New("b", decl(required))
	s := Set{a, b}
	if s.Waits() != "" {
		t.Error("nobody has said yet whether the kind is served")
	}
	s.Sync(a, true)
	s.Sync(b, false)
	if got := s.Waits(); got != "waits for v1/Node, which is not served" || s.Synced() {
		t.Errorf("waits: %q", got)
	}
	s.Sync(b, true)
	now := time.Unix(0, 0)
	for _, step := range []struct {
		after         time.Duration
		trouble       Trouble
		changed, news bool
	}{
		{0, Trouble{Reason: "x fails"}, true, true},
		{0, Trouble{Reason: "x fails"}, false, false},
		{time.Second, Trouble{Reason: "y fails", Lacks: true}, true, false}, // too soon for the log
		{time.Hour, Trouble{Reason: "y fails", Lacks: true}, false, false},
		{time.Hour, Trouble{Reason: "z fails", Lacks: true}, true, true},
		{time.Hour, Trouble{}, true, false},
	} {
		now = now.Add(step.after)
		if changed, news := a.Fail(now, step.trouble); changed != step.changed || news != step.news {
			t.Errorf("%v: changed %t, news %t", step.trouble, changed, news)
		}
		want := ""
		if step.trouble.Reason != "" {
			want = "watch a: " + step.trouble.Reason
		}
		if s.Trouble() != want || s.Complete() == step.trouble.Lacks || !s.Synced() {
			t.Errorf("%v: trouble %q, complete %t", step.trouble, s.Trouble(), s.Complete())
		}
	}
	if a.Reset(); a.Seen() || s.Synced() {
		t.Error("another life knows of the one before")
	}
}
