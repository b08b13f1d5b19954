package finalizers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	now  = time.Unix(0, 0)
	pods = Finalizer{Hook: "web/a", APIVersion: "v1", Kind: "Pod", Name: Prefix + "web-1"}
)

func noJitter() float64 { return 0 }

func because(why Reason) func(Finalizer) Reason { return func(Finalizer) Reason { return why } }

func TestWhatIsKeptIsReadAgain(t *testing.T) {
	others := Finalizer{Hook: "web/b", Name: "example.com/other"}
	kept := map[string][]byte{Key + "a": pods.Encode(), Key + "b": others.Encode(), Key + "c": []byte("{"), "layer.a": pods.Encode()}
	if got := Read(kept); !slices.Equal(got, []Finalizer{pods}) {
		t.Errorf("read %v", got)
	}
}

func TestNamesTellInstancesAndHooksApart(t *testing.T) {
	long := strings.Repeat("x", 39) + "-y"
	names := map[string]bool{}
	for _, in := range [][4]string{
		{"ns", "starling", "web", "web/a"}, {"ns", "starling", "web", "web/b"}, {"ns", "other", "web", "web/a"}, {"other", "starling", "web", "web/a"}, {"ns", "starling", long, long + "/a"},
	} {
		name := Name(in[0], in[1], in[2], in[3])
		if names[name] || !strings.HasPrefix(name, Prefix) || len(name) > len(Prefix)+63 || strings.Contains(name, "--") {
			t.Errorf("%v is %q", in, name)
		}
		names[name] = true
	}
}

// One that is on objects of another kind goes from those first.
func TestAnotherKindWaits(t *testing.T) {
	s := New()
	if !s.Want(pods) || s.Want(pods) {
		t.Error("what has changed is not told")
	}
	nodes := pods
	nodes.Kind = "Node"
	if s.Want(nodes) || s.Usable(nodes) || !s.Usable(pods) {
		t.Error("the other kind does not wait")
	}
	sweeps := s.Begin(now, because(Useless))
	if len(sweeps) != 1 || sweeps[0].Finalizer != pods || s.Usable(pods) || !s.Sweeping() {
		t.Fatalf("sweeps %v", sweeps)
	}
	if _, gone := s.End(now, sweeps[0].Hook, nil, noJitter); !gone || !s.Empty() || s.Sweeping() {
		t.Error("it is not gone")
	}
	if !s.Want(nodes) || !s.Usable(nodes) {
		t.Error("the other kind still waits")
	}
}

// Objects that a hook does not watch any more are looked for once, until it comes up anew.
func TestUnwatchedObjectsAreSweptOnce(t *testing.T) {
	s := New()
	s.Adopt(pods)
	for round := range 2 {
		sweeps := s.Begin(now, because(Unwatched))
		if len(sweeps) != 1 || !s.Usable(pods) {
			t.Fatalf("round %d: sweeps %v", round, sweeps)
		}
		if again := s.Begin(now, because(Unwatched)); len(again) > 0 {
			t.Error("two sweeps at once")
		}
		s.End(now, sweeps[0].Hook, nil, noJitter)
		if again := s.Begin(now, because(Unwatched)); len(again) > 0 || s.Empty() {
			t.Error("it is swept again")
		}
		s.Want(pods)
	}
	if none := s.Begin(now, because(None)); len(none) > 0 {
		t.Errorf("swept for no reason: %v", none)
	}
}

func TestASweepThatFailsIsTriedAgain(t *testing.T) {
	s := New()
	s.Adopt(pods)
	sweep := s.Begin(now, because(Useless))[0]
	if failed, gone := s.End(now, sweep.Hook, errors.New("no"), noJitter); failed != 1 || gone || !s.Next(now).Equal(now.Add(time.Second)) {
		t.Errorf("failed %d times, next at %s", failed, s.Next(now))
	}
	if len(s.Begin(now, because(Useless))) > 0 || len(s.Begin(now.Add(time.Second), because(Useless))) != 1 {
		t.Error("it does not wait for its time")
	}
}

// A hook that comes up anew while its sweep is under way may watch other objects: those that
// it does not watch any more are looked for again.
func TestASweepUnderWayCountsForNothingNew(t *testing.T) {
	for what, want := range map[string]func(*Finalizer){
		"other objects":   func(*Finalizer) {},
		"another version": func(f *Finalizer) { f.APIVersion = "v2" },
	} {
		s := New()
		s.Adopt(pods)
		sweep := s.Begin(now, because(Unwatched))[0]
		next := pods
		want(&next)
		s.Want(next)
		s.End(now, sweep.Hook, nil, noJitter)
		if again := s.Begin(now, because(Unwatched)); len(again) != 1 || again[0].Finalizer != next {
			t.Errorf("%s: sweeps %v", what, again)
		}
	}
	s := New()
	s.Adopt(pods)
	sweep := s.Begin(now, because(Useless))[0]
	next := pods
	next.APIVersion = "v2"
	if s.Want(next); s.Usable(next) {
		t.Error("it is used while it is being taken off")
	}
	if _, gone := s.End(now, sweep.Hook, nil, noJitter); !gone || !s.Empty() {
		t.Error("it is not gone")
	}
}

// Kinds that a controller has owned stay with what is kept.
func TestKindsStay(t *testing.T) {
	s := New()
	one, other := pods, pods
	one.Owns, other.Owns = JoinKinds([]string{"v1/Secret", "v1/ConfigMap", "v1/Secret"}), "apps/v1/Deployment"
	if !s.Want(one) || !s.Want(other) || s.Want(other) || s.Want(one) {
		t.Error("what has changed is not told")
	}
	f, _ := s.Of(pods.Hook)
	if got := f.Kinds(); !slices.Equal(got, []string{"apps/v1/Deployment", "v1/ConfigMap", "v1/Secret"}) {
		t.Errorf("kinds %v", got)
	}
	if pods.Kinds() != nil {
		t.Error("there are kinds of nobody")
	}
}
