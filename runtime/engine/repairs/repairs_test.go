package repairs

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

var (
	t0   = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	web  = effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	role = effect.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web"}
)

func still() float64 { return 0 }

func fresh() *Repairs { return New(lane.Backoff{Min: time.Second, Max: 5 * time.Minute, Factor: 2}) }

func (r *Repairs) wantDue(t *testing.T, now time.Time, want ...effect.Ref) {
	t.Helper()
	found, due := r.Begin(now, false)
	var objects []effect.Ref
	for _, o := range found {
		objects = append(objects, o.Ref)
	}
	if due != (want != nil) || !slices.Equal(objects, want) {
		t.Fatalf("due %v: %v, want %v", due, objects, want)
	}
}

func TestWhatDiffersIsPutRight(t *testing.T) {
	r := fresh()
	r.wantDue(t, t0)
	r.Found([]Object{{Ref: web}, {Ref: role, Missing: true}}, false)
	r.wantDue(t, t0, web, role)
	if !r.Running() {
		t.Error("it does not run")
	}
	r.wantDue(t, t0) // one at a time
	r.Found(nil, false)
	if contested := r.Ended(Outcome{Objects: []effect.Ref{web, role}}, t0, still); contested != nil {
		t.Errorf("contested: %v", contested)
	}
	r.wantDue(t, t0)
}

func TestAllIsLookedAtOnce(t *testing.T) {
	r := fresh()
	r.Found(nil, true)
	if objects, due := r.Begin(t0, false); !due || objects != nil {
		t.Fatalf("due %v: %v", due, objects)
	}
	r.Ended(Outcome{Objects: []effect.Ref{web}}, t0, still)
	r.wantDue(t, t0)
}

func TestWhatIsReportedIsLookedFor(t *testing.T) {
	r := fresh()
	r.Found([]Object{{Ref: web}}, false)
	if _, due := r.Begin(t0, true); due {
		t.Error("it is put right")
	}
	r.Found([]Object{{Ref: web}}, true)
	if objects, due := r.Begin(t0, true); !due || objects != nil {
		t.Errorf("due %v: %v", due, objects)
	}
}

func TestARepairThatFailsIsTriedAgain(t *testing.T) {
	r, now := fresh(), t0
	r.Found([]Object{{Ref: web}}, false)
	for _, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		r.wantDue(t, now, web)
		r.Ended(Outcome{Err: errors.New("no"), Objects: []effect.Ref{web}}, now, still)
		if next := r.Next(); !next.Equal(now.Add(wait)) || r.Err() != "no" {
			t.Fatalf("next in %v, err %q", next.Sub(now), r.Err())
		}
		r.wantDue(t, now)
		now = r.Next()
	}
	r.wantDue(t, now, web)
	r.Found(nil, false)
	r.Ended(Outcome{Objects: []effect.Ref{web}}, now, still)
	if r.Err() != "" || !r.Next().IsZero() {
		t.Errorf("err %q, next %v", r.Err(), r.Next())
	}
}

// The end of a namespace may take a minute: the repair looks every few seconds.
func TestARepairWaits(t *testing.T) {
	r, now := fresh(), t0
	r.Found([]Object{{Ref: web, Missing: true}}, false)
	for range 10 {
		r.wantDue(t, now, web)
		r.Ended(Outcome{Waits: "namespace shop is being deleted", Objects: []effect.Ref{web}}, now, still)
		if r.Err() != "namespace shop is being deleted" || r.Next().Sub(now) > 10*time.Second {
			t.Fatalf("err %q, next in %v", r.Err(), r.Next().Sub(now))
		}
		now = r.Next()
	}
	if _, is := r.Contested(web, now); is {
		t.Error("it is contested")
	}
}

func TestAnObjectThatIsContestedWaits(t *testing.T) {
	r, now := fresh(), t0
	var waits []time.Duration
	for round := range 14 {
		r.Found([]Object{{Ref: web, By: []string{"kubectl-edit", "other"}}}, false)
		if next := r.Next(); next.After(now) {
			r.wantDue(t, now)
			waits = append(waits, next.Sub(now).Round(time.Second))
			now = next
		}
		r.wantDue(t, now, web)
		r.Found(nil, false)
		contested := r.Ended(Outcome{Objects: []effect.Ref{web}}, now, still)
		if by, is := r.Contested(web, now); is != (round >= 2) || is && by != "kubectl-edit" || (len(contested) == 1) != (round == 2) {
			t.Errorf("round %d: contested %v by %q, news %v", round, is, by, contested)
		}
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(waits, want) {
		t.Errorf("it waits %v, want %v", waits, want)
	}
	if got := r.AllContested(now); !slices.Equal(got, []effect.Ref{web}) {
		t.Errorf("contested: %v", got)
	}
	if by := r.Contests(now); len(by) != 1 || by["kubectl-edit"] != 1 {
		t.Errorf("contested: %v", by)
	}
	if now = now.Add(Window); len(r.AllContested(now)) > 0 {
		t.Error("it is contested without end")
	}
	r.Found([]Object{{Ref: web}}, false)
	r.wantDue(t, now, web)
	r.Ended(Outcome{Objects: []effect.Ref{web}}, now, still)
	if _, is := r.Contested(web, now); is {
		t.Error("one change later is a contest again")
	}
}

// Others are put right while one waits.
func TestOneThatWaitsHoldsUpNoOther(t *testing.T) {
	r := fresh()
	for range MaxRounds {
		r.Found([]Object{{Ref: web}}, false)
		r.wantDue(t, t0, web)
		r.Ended(Outcome{Objects: []effect.Ref{web}}, t0, still)
	}
	r.Found([]Object{{Ref: web}, {Ref: role}}, false)
	r.wantDue(t, t0, role)
}

// A few changes that are far apart are no contest.
func TestRareChangesAreNoContest(t *testing.T) {
	r, now := fresh(), t0
	for range 10 {
		r.Found([]Object{{Ref: web}}, false)
		r.wantDue(t, now, web)
		r.Ended(Outcome{Objects: []effect.Ref{web}}, now, still)
		now = now.Add(Window/2 + time.Second)
	}
	if len(r.AllContested(now)) > 0 {
		t.Error("it is contested")
	}
}
