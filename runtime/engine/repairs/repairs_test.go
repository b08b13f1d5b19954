package repairs

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/starling-operator/starling/modules/release/owned"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/lane"
)

var (
	t0   = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	web  = effect.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	role = effect.Ref{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "web"}
)

func still() float64 { return 0 }

func fresh() *Repairs { return New() }

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
	if contested := r.Ended(Outcome{Changes: []Change{{Ref: web}, {Ref: role}}}, t0, still); contested != nil {
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
	r.Ended(Outcome{Changes: []Change{{Ref: web}}}, t0, still)
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
		r.Ended(Outcome{Err: errors.New("no"), Changes: []Change{{Ref: web}}}, now, still)
		if next := r.Next(); !next.Equal(now.Add(wait)) || r.Err() != "no" {
			t.Fatalf("next in %v, err %q", next.Sub(now), r.Err())
		}
		r.wantDue(t, now)
		now = r.Next()
	}
	r.wantDue(t, now, web)
	r.Found(nil, false)
	r.Ended(Outcome{Changes: []Change{{Ref: web}}}, now, still)
	if r.Err() != "" || !r.Next().IsZero() {
		t.Errorf("err %q, next %v", r.Err(), r.Next())
	}
}

// An object that cannot be put right waits for its next try, and no other one for it.
func TestAnObjectThatFailsHoldsUpNoOther(t *testing.T) {
	r, now := fresh(), t0
	fails := func(tried ...Object) {
		t.Helper()
		r.Ended(Outcome{Err: errors.New("no"), Tried: tried, Failed: []effect.Ref{web}, Changes: []Change{{Ref: web}}}, now, still)
	}
	r.Found([]Object{{Ref: web}}, false)
	for range 10 {
		r.wantDue(t, now, web)
		fails(Object{Ref: web})
		now = r.Next()
	}
	now = now.Add(-time.Minute)
	for range 2 {
		r.Found([]Object{{Ref: web}, {Ref: role, Missing: true}}, false)
		r.wantDue(t, now, role)
		r.Ended(Outcome{Tried: []Object{{Ref: role}}, Changes: []Change{{Ref: role}}}, now, still)
		r.Found([]Object{{Ref: web}}, false)
		r.wantDue(t, now)
		if r.Err() != "no" || !r.Next().Equal(now.Add(time.Minute)) {
			t.Errorf("err %q, next in %v", r.Err(), r.Next().Sub(now))
		}
	}
	// While all are looked at, too.
	r.Found([]Object{{Ref: web}}, true)
	if objects, due := r.Begin(now, false); !due || objects != nil {
		t.Fatalf("due %v: %v", due, objects)
	}
	fails()
	r.Found([]Object{{Ref: web}, {Ref: role}}, true)
	r.wantDue(t, now, role)
}

// The end of a namespace may take a minute: the repair looks every few seconds.
func TestARepairWaits(t *testing.T) {
	r, now := fresh(), t0
	r.Found([]Object{{Ref: web, Missing: true}}, false)
	for range 10 {
		r.wantDue(t, now, web)
		r.Ended(Outcome{Waits: "namespace shop is being deleted", Changes: []Change{{Ref: web}}}, now, still)
		if r.Err() != "namespace shop is being deleted" || r.Next().Sub(now) > 5*time.Second {
			t.Fatalf("err %q, next in %v", r.Err(), r.Next().Sub(now))
		}
		now = r.Next()
	}
	r.wantDue(t, now, web)
	if r.Ended(Outcome{Err: errors.New("no")}, now, still); r.Next().Sub(now) > time.Second {
		t.Errorf("a first failure after the wait is tried again in %v", r.Next().Sub(now))
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
		contested := r.Ended(Outcome{Changes: []Change{{Ref: web, Edits: []owned.Edit{{By: "kubectl-edit"}}}}}, now, still)
		if c, is := r.Contested(web, now); is != (round >= 2) || is && c.By != "kubectl-edit" || (len(contested) == 1) != (round == 2) {
			t.Errorf("round %d: contested %v by %+v, news %v", round, is, c, contested)
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
	r.Ended(Outcome{Changes: []Change{{Ref: web}}}, now, still)
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
		r.Ended(Outcome{Changes: []Change{{Ref: web}}}, t0, still)
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
		r.Ended(Outcome{Changes: []Change{{Ref: web}}}, now, still)
		now = now.Add(Window/2 + time.Second)
	}
	if len(r.AllContested(now)) > 0 {
		t.Error("it is contested")
	}
}

// edited puts an object right of which somebody had changed these fields; none: the object as a whole.
func (r *Repairs) edited(now time.Time, by string, fields ...string) (contested []effect.Ref) {
	c := Change{Ref: web}
	for _, field := range fields {
		path, err := owned.ParsePath(field)
		if err != nil {
			panic(err)
		}
		c.Edits = append(c.Edits, owned.Edit{Path: path, By: by})
	}
	if len(fields) == 0 {
		c.Edits = []owned.Edit{{By: by}}
	}
	r.tries[all] = lane.Task{Running: true}
	return r.Ended(Outcome{Changes: []Change{c}}, now, still)
}

// wantContest says who contests which fields of the Deployment; none: it is not contested.
func (r *Repairs) wantContest(t *testing.T, now time.Time, by string, fields ...string) {
	t.Helper()
	c, is := r.Contested(web, now)
	if is != (by != "") || c.By != by || !slices.Equal(c.Fields, fields) {
		t.Errorf("contested %v: %+v, want %q by %q", is, c, fields, by)
	}
}

// Different fields of one object, changed minutes apart, are no contest. One that comes back changed is, whatever
// else was changed with it; the last writer is named.
func TestAContestIsOverAField(t *testing.T) {
	r, now := fresh(), t0
	for i, field := range []string{"spec.replicas", "spec.paused", "metadata.labels.app", "spec.minReadySeconds"} {
		if news := r.edited(now, "kubectl-edit", field); news != nil {
			t.Errorf("edit %d is a contest: %v", i, news)
		}
		now = now.Add(2 * time.Minute)
	}
	r.wantContest(t, now, "")
	r.edited(now, "kubectl-edit", "spec.replicas", "spec.paused") // those of before count
	if until := r.rounds.Until(web); !until.IsZero() {
		t.Errorf("it waits until %s", until)
	}
	if news := r.edited(now, "argo", "spec.paused"); len(news) != 1 {
		t.Errorf("news: %v", news)
	}
	r.wantContest(t, now, "argo", "spec.paused")
	if until := r.rounds.Until(web); !until.Equal(now.Add(time.Second)) {
		t.Errorf("it waits until %s", until)
	}
	now = now.Add(time.Second)
	if news := r.edited(now, "flux", "spec.replicas"); len(news) != 1 {
		t.Errorf("news: %v", news)
	}
	r.wantContest(t, now, "flux", "spec.replicas", "spec.paused") // the last one comes first
	r.edited(now, "kubectl-edit", "metadata.labels.app")
	r.wantContest(t, now, "flux", "spec.replicas", "spec.paused")
}

// A contest over what is ignored is over, and the object waits no more for it.
func TestAContestOverWhatIsIgnoredIsOver(t *testing.T) {
	ignore := func(r *Repairs, text string) {
		i, err := owned.ParseIgnore(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Ignore([]owned.Ignore{i})
	}
	r := fresh()
	for range MaxRounds {
		r.edited(t0, "argo", "spec.paused", "spec.replicas")
		r.edited(t0, "argo")
	}
	ignore(r, "Deployment/other")
	ignore(r, "spec.template")
	r.wantContest(t, t0, "argo", "spec.paused", "spec.replicas")
	ignore(r, "spec.paused")
	r.wantContest(t, t0, "argo", "spec.replicas")
	ignore(r, "Deployment/web spec")
	r.wantContest(t, t0, "argo")
	ignore(r, "Deployment/web")
	r.wantContest(t, t0, "")
	if len(r.rounds) > 0 || !r.rounds.Until(web).IsZero() {
		t.Errorf("rounds: %v", r.rounds)
	}
}

// While a look at all objects has failed, nobody knows which differ.
func TestALookThatFails(t *testing.T) {
	r := fresh()
	r.Found(nil, true)
	for _, err := range []error{errors.New("no role"), nil} {
		if _, due := r.Begin(t0.Add(time.Hour), false); !due || err != nil && r.Unsure() != "" {
			t.Error(due, r.Unsure())
		}
		r.Ended(Outcome{Err: err}, t0, func() float64 { return 0 })
		if why := r.Unsure(); (why == "no role") != (err != nil) {
			t.Error(why)
		}
	}
}
