package live

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

// sayingTree is a module whose reviews say what another hook has read from a ConfigMap.
var sayingTree = map[string]string{
	"web/module.star": "module(enabled = True)\n",
	"web/hooks/a.star": `
def learn(ctx):
    values.set("text", ",".join(ctx.snapshots["cms"]))

hook(learn, on = [k8s.watch("v1", "ConfigMap", name = "cms", namespaces = ["ops"], labels = {"say": "yes"},
                            filter = lambda o: o.get("data.text", ""))])

def check(ctx):
    return deny("says " + values.get("text", "nothing"))

hook(check, name = "check", on = [k8s.validate("v1", "Pod", failure_policy = "fail", namespaces = ["x"])])
`,
}

// beside is another process of the instance, on the same API server, with the same tree.
func (f *fixture) beside(files map[string]string) *fixture {
	f.Helper()
	other := &fixture{T: f.T, dir: f.TempDir(), ended: make(chan error, 1), namespace: f.namespace, store: f.store, objects: f.objects, line: f.line}
	other.config = &clientrest.Config{Host: "http://sim", Transport: other}
	other.driver = other.newDriver(files)
	return other
}

// say changes the ConfigMap of [sayingTree].
func (f *fixture) say(text string) {
	f.Helper()
	f.writeConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "words", Labels: map[string]string{"say": "yes"}},
		Data:       map[string]string{"text": text},
	})
}

// configure changes the user's ConfigMap.
func (f *fixture) configure(data map[string]string) {
	f.Helper()
	f.writeConfigMap(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "starling"}, Data: data})
}

// writeConfigMap makes or changes it, whoever has the Lease.
func (f *fixture) writeConfigMap(cm *corev1.ConfigMap) {
	f.Helper()
	core, err := v1.NewForConfig(f.driver.o.Client.UnfencedConfig())
	if err != nil {
		f.Fatal(err)
	}
	if _, err = core.ConfigMaps("ops").Update(f.Context(), cm, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = core.ConfigMaps("ops").Create(f.Context(), cm, metav1.CreateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// reviewed is what a review of [sayingTree] is answered with.
func (f *fixture) reviewed() string {
	f.Helper()
	const id = "web/check"
	hook := f.driver.generation.Load().Hook(id)
	if hook == nil {
		f.Fatal(f.driver.generation.Load().Modules["web"].Err)
	}
	binding := hook.Bindings[0].Name
	review := &builtins.Review{UID: "1", Operation: "CREATE", Object: map[string]any{"kind": "Pod"}, APIVersion: "v1", Kind: "Pod"}
	answer, err := f.driver.answer(f.Context(), id, review.Request(binding))
	switch {
	case err != nil:
		return "error: " + err.Error()
	case answer.Denied == nil:
		return "allowed"
	}
	return answer.Denied.Message
}

// leads says whether the driver says that it leads.
func (f *fixture) leads() bool {
	f.Helper()
	st, err := f.driver.Status(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return st.Leader
}

// A process that waits for the Lease is ready, answers reviews as the one that leads does, and writes
// nothing. It answers on as it takes over, and then works.
func TestAStandbyAnswersReviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, sayingTree)
		f.start()
		f.waitReady()
		f.say("one")
		time.Sleep(5 * time.Second)
		if got := f.reviewed(); got != "says one" {
			t.Fatal(got)
		}

		g := f.beside(sayingTree)
		led := make(chan struct{})
		var lists atomic.Int32 // of what hooks watch, from then on
		g.answered = func(r *http.Request, _ *http.Response) {
			select {
			case <-led:
				if q := r.URL.Query(); q.Get("labelSelector") == "say=yes" && (q.Get("watch") == "" || q.Get("sendInitialEvents") == "true") {
					lists.Add(1)
				}
			default:
				if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/leases") {
					t.Errorf("before it leads: %s %s", r.Method, r.URL.Path)
				}
			}
		}
		g.start()
		time.Sleep(5 * time.Second)
		if ready, why := g.driver.Ready(); !ready {
			t.Error("not ready: ", why)
		}
		if released, why := g.driver.Released(); released || !strings.Contains(why, "stands by") || !g.driver.Started() {
			t.Errorf("released is %t: %s, and the start is done: %t", released, why, g.driver.Started())
		}
		if got := g.reviewed(); got != "says one" || g.leads() {
			t.Errorf("it %s, and leads is %t", got, g.leads())
		}
		f.say("two")
		time.Sleep(5 * time.Second)
		if n := testutil.ToFloat64(g.driver.metrics.records.WithLabelValues("kept")); n != 1 {
			t.Errorf("it has kept %v runs", n)
		}
		if here, there := f.reviewed(), g.reviewed(); here != "says two" || there != here {
			t.Errorf("the one that leads %s, the other one %s", here, there)
		}

		close(led)
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
		time.Sleep(300 * time.Millisecond)
		if !g.leads() {
			t.Error("it has not taken over at once")
		}
		if lists.Load() == 0 {
			t.Error("it goes by what its watches have seen, however far that is behind")
		}
		for n := range 300 {
			if got := g.reviewed(); got != "says two" {
				t.Fatalf("after %d tenths of a second it %s", n, got)
			}
			if ready, why := g.driver.Ready(); !ready {
				t.Fatalf("after %d tenths of a second it is not ready: %s", n, why)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if released, why := g.driver.Released(); !released {
			t.Error("not released: ", why)
		}
		ended, err := ask(t.Context(), g.driver, func(*engine.Engine) bool { return len(g.driver.outgoing) == 0 })
		if err != nil || !ended {
			t.Errorf("watches of the standby go on: %v", err)
		}
		g.say("three")
		time.Sleep(5 * time.Second)
		if got := g.reviewed(); got != "says three" {
			t.Error(got)
		}
		g.stop()
		if err := <-g.ended; err != nil {
			t.Error(err)
		}
	})
}

// After a crash the Lease is still held: the next process answers meanwhile by what was kept.
func TestReviewsAreAnsweredWhileTheLeaseRunsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, sayingTree)
		f.start()
		f.waitReady()
		f.say("one")
		time.Sleep(5 * time.Second)
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
		lease, err := f.leases().Get(t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now := metav1.NowMicro()
		seconds := int32(times.Duration.Seconds())
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("crashed"), LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
		if _, err := f.leases().Update(context.WithoutCancel(t.Context()), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		g := f.beside(sayingTree)
		g.start()
		time.Sleep(2 * time.Second)
		if got := g.reviewed(); got != "says one" || g.leads() {
			t.Errorf("it %s, and leads is %t", got, g.leads())
		}
		time.Sleep(times.Duration + 2*times.Retry)
		if got := g.reviewed(); got != "says one" || !g.leads() {
			t.Errorf("it %s, and leads is %t", got, g.leads())
		}
		g.stop()
		if err := <-g.ended; err != nil {
			t.Error(err)
		}
	})
}

// An answer of a standby to reviews counts until the engine that leads is sure of another one.
func TestAnswersOutliveTheStandby(t *testing.T) {
	hook := &generation.Hook{HookDecl: &builtins.HookDecl{ID: "web/check"}, Module: "web"}
	web := &generation.Module{Name: "web"}
	says := func(refused string) engine.Review { return engine.Review{Hook: hook, Refused: refused} }
	all := func(string, *answering) bool { return true }
	for _, tt := range []struct {
		name string
		then func(*answers)
		want string
	}{
		{"nothing is known yet", func(a *answers) { a.review(says("it starts")) }, "it answers"},
		{"it answers", func(a *answers) { a.review(says("it starts")); a.review(says("")); a.review(says("off")) }, "off"},
		{"it is off", func(a *answers) { a.review(says("off")); a.serve(web, nil, nil) }, "off"},
		{"others are off", func(a *answers) { a.review(says("it starts")); a.serve(&generation.Module{Name: "shop"}, nil, nil) }, "it answers"},
		{"it is served", func(a *answers) { a.review(says("it starts")); a.serve(web, []*generation.Hook{hook}, nil) }, "it answers"},
		{"it waits, and others answer", func(a *answers) {
			a.review(says("it lists"))
			a.serve(web, []*generation.Hook{{HookDecl: &builtins.HookDecl{ID: "web/other"}, Module: "web"}}, []*generation.Hook{hook})
		}, "it answers"},
		{"all is settled", func(a *answers) { a.review(says("it starts")); a.settle(all) }, "it starts"},
		{"the hook is not there", func(a *answers) { a.settle(all) }, "nothing"},
	} {
		a := newAnswers()
		a.review(says(""))
		a.inherit()
		tt.then(a)
		got := "nothing"
		if r := a.reviewOf(hook.ID); r != nil && r.Refused == "" {
			got = "it answers"
		} else if r != nil {
			got = r.Refused
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Of a config that waits for the engine nothing is left when it must be read anew.
func TestConfigThatWaitsIsDropped(t *testing.T) {
	b := newInbox()
	u := &userConfig{put: b.put}
	present := func() *engine.Config { return &engine.Config{State: engine.ConfigPresent} }
	u.read(present)
	if in, ok := b.take(); ok {
		t.Errorf("there is no engine to hear of %+v", in)
	}
	u.again()
	b.put(engine.Tick{})
	u.forget()
	b.drop(slotOfConfig)
	u.again()
	if in, ok := b.take(); !ok || in != (engine.Tick{}) {
		t.Errorf("%+v", in)
	}
	if in, ok := b.take(); ok {
		t.Errorf("%+v", in)
	}
	u.read(func() *engine.Config { return nil })
	if in, ok := b.take(); ok {
		t.Errorf("%+v", in)
	}
	u.read(present)
	if _, ok := b.take(); !ok {
		t.Error("what is read then is not told")
	}
}

// A process may have waited for days: as it takes over nothing goes by what users had asked for as it began, not even
// while the API server is slow to say what they ask for now. That would uninstall what another process has installed.
func TestNothingGoesByAnOldConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, sayingTree)
		f.configure(map[string]string{"webEnabled": "false"})
		f.start()
		time.Sleep(5 * time.Second)
		g := f.beside(sayingTree)
		var slow atomic.Bool
		g.answered = func(r *http.Request, _ *http.Response) {
			config := strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("fieldSelector") == "metadata.name=starling"
			switch {
			case !slow.Load() && strings.Contains(r.URL.Path, "/leases"):
				time.Sleep(time.Second) // the config is read first
			case slow.Load() && config:
				time.Sleep(5 * time.Second)
			}
		}
		g.start()
		time.Sleep(5 * time.Second)
		f.configure(map[string]string{"webEnabled": "true"})
		time.Sleep(5 * time.Second)
		slow.Store(true)
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
		for n := range 100 {
			time.Sleep(100 * time.Millisecond)
			st, err := g.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if m := st.Modules[0]; n < 40 && m.Reason != "reading the configuration" && st.Leader || m.State == status.ModuleOff {
				t.Fatalf("after %d tenths of a second web is %s: %s", n, m.State, m.Reason)
			} else if n == 99 && m.State != status.ModuleReady {
				t.Errorf("at last web is %s: %s", m.State, m.Reason)
			}
		}
	})
}

// A process that could not ask for the Lease for a while, and so never stood by, reads the config anew, too.
func TestAConfigFromBeforeTheLease(t *testing.T) {
	for _, wait := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, sayingTree)
			f.configure(map[string]string{"webEnabled": "false"})
			began, lists := time.Now(), atomic.Int32{}
			f.answered = func(r *http.Request, resp *http.Response) {
				switch {
				case strings.Contains(r.URL.Path, "/leases") && time.Since(began) < wait:
					resp.StatusCode = http.StatusServiceUnavailable
				case strings.HasSuffix(r.URL.Path, "/configmaps") && r.URL.Query().Get("fieldSelector") == "metadata.name=starling":
					lists.Add(1)
				}
			}
			f.start()
			time.Sleep(wait + 10*time.Second)
			if first, again := int32(1), wait > 0; !f.leads() || (lists.Load() > first) != again {
				t.Errorf("after %s: it leads: %t; the config was read %d times", wait, f.leads(), lists.Load())
			}
		})
	}
}

// A run that somebody asks for runs where the Lease is; a standby says who leads.
func TestRunsAreAskedForWhereTheLeaseIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, sayingTree)
		f.start()
		f.waitReady()
		time.Sleep(time.Second)
		ran := func() int {
			t.Helper()
			st, err := f.driver.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, h := range st.Hooks {
				n += h.Runs
			}
			return n
		}
		before := ran()
		if hooks, err := f.driver.RunNow(t.Context(), "web", ""); err != nil || strings.Join(hooks, " ") != "web/hooks/a.star:learn" {
			t.Errorf("%q, %v", hooks, err)
		}
		time.Sleep(time.Second)
		if n := ran(); n != before+1 {
			t.Errorf("%d runs, and %d before", n, before)
		}
		g := f.beside(sayingTree)
		g.start()
		time.Sleep(5 * time.Second)
		_, err := g.driver.RunNow(t.Context(), "web", "")
		if want := "this starling stands by: " + hostOf(f.driver.identity) + " leads; ask that one"; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		f.stop()
		g.stop()
		<-f.ended
		<-g.ended
	})
}
