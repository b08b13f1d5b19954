package live

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
)

var emptyTree = map[string]string{"web/module.star": "module()\n"}

// leases is the Lease as others see it.
func (f *fixture) leases() coordination.LeaseInterface {
	c, err := coordination.NewForConfig(f.driver.o.Client.UnfencedConfig())
	if err != nil {
		f.Fatal(err)
	}
	return c.Leases(f.namespace)
}

func (f *fixture) holder() string {
	lease, err := f.leases().Get(f.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// steal gives the Lease to another process.
func (f *fixture) steal() {
	if err := f.trySteal(); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) trySteal() error {
	lease, err := f.leases().Get(f.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("thief"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now}
	_, err = f.leases().Update(f.Context(), lease, metav1.UpdateOptions{})
	return err
}

// waitReady lets the driver start.
func (f *fixture) waitReady() {
	f.Helper()
	for range 600 {
		if released, _ := f.driver.Released(); released {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	_, why := f.driver.Released()
	f.Fatal("not ready: ", why)
}

// hang keeps the loop at one step until the function that it returns is called.
func (f *fixture) hang() (release func()) {
	stuck := make(chan struct{})
	f.driver.asks <- func(*engine.Engine) { <-stuck }
	return func() { close(stuck) }
}

func (f *fixture) write() error {
	_, err := f.driver.o.Client.Write(f.Context(), "", effect.Write{
		Kind: effect.WriteApply, Ref: effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "x"},
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": f.namespace, "name": "x"}},
	})
	return err
}

// fenced says that a write has not left the process.
func fenced(err error) bool {
	return errors.Is(err, cluster.ErrFenced) || errors.Is(err, cluster.ErrStandby)
}

// A Lease that another process has taken is noticed with the next renewal, and fences all
// writes at once, whatever the loop is at. A process whose loop hangs cannot stand by: it ends.
func TestAStolenLeaseWhileTheLoopIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		defer f.hang()()
		if err := f.write(); err != nil {
			t.Fatal(err)
		}
		f.steal()
		time.Sleep(times.Retry + time.Second)
		for ended := false; !ended; {
			if err := f.write(); !fenced(err) {
				t.Errorf("a write after the Lease is lost ends with %v", err)
			}
			select {
			case err := <-f.ended:
				if ended = true; err == nil || !strings.Contains(err.Error(), "at one step") {
					t.Errorf("the process ends with %v", err)
				}
			case <-time.After(time.Second):
			}
		}
		if got := f.holder(); got != "thief" {
			t.Errorf("the Lease is held by %q", got)
		}
	})
}

// A process may be stopped for so long that another one takes the Lease, works, and gives it back: the first one does
// not go on by what it has known before that. It begins anew.
func TestALeaseThatAnotherOneHasHadMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		f.steal()
		lease, err := f.leases().Get(t.Context(), "starling", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		lease.Spec.HolderIdentity = nil
		if _, err := f.leases().Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		before := f.driver.term.Load()
		resume := f.hang() // or it could lead again before the write
		<-before.lost
		if err := f.write(); !fenced(err) {
			t.Errorf("a write ends with %v", err)
		}
		resume()
		if !errors.Is(before.cause, errTaken) {
			t.Errorf("it was lost by %v", before.cause)
		}
		time.Sleep(2 * times.Retry)
		if err := f.write(); err != nil || !f.leads() || f.holder() != f.driver.identity {
			t.Errorf("it leads again: %t; a write ends with %v", f.leads(), err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Errorf("the process ends with %v", err)
		}
	})
}

// A write of another process to kept state means that there are two: this one steps down, and reads what is kept before it
// leads again.
func TestAConflictOfWhatIsKeptEndsTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		save := func(k *cluster.Kept, text string) error {
			return k.Save(t.Context(), "web", map[string][]byte{"a": []byte(text)})
		}
		if err := save(f.driver.kept, "1"); err != nil {
			t.Fatal(err)
		}
		other := cluster.NewKept(cluster.KeptOptions{Client: f.driver.o.Client, Namespace: "ops", Name: "starling", Instance: "ops.starling"})
		if err := save(other, "2"); err != nil {
			t.Fatal(err)
		}
		if err := save(f.driver.kept, "3"); !errors.Is(err, cluster.ErrOtherWriter) {
			t.Errorf("the save ends with %v", err)
		}
		if err := f.write(); !fenced(err) {
			t.Errorf("a write afterwards ends with %v", err)
		}
		time.Sleep(times.Duration - time.Second)
		if f.leads() {
			t.Error("it leads before another process could")
		}
		time.Sleep(5 * time.Second)
		if !f.leads() {
			t.Error("it does not lead again")
		}
		if kept, err := f.driver.kept.Load(t.Context()); err != nil || len(kept["web"]) != 0 && string(kept["web"]["a"]) != "2" {
			t.Errorf("kept is %q, %v", kept, err)
		}
		if err := save(f.driver.kept, "4"); err != nil {
			t.Error(err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Errorf("the process ends with %v", err)
		}
	})
}

// A process that was stopped for longer than the Lease lasts writes nothing when it goes
// on, before it has had the time to find out.
func TestNothingIsWrittenPastTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		f.driver.o.Client.WritesUntil(time.Now().Add(-time.Millisecond), f.driver.trees.told())
		if err := f.write(); !errors.Is(err, cluster.ErrFenced) {
			t.Errorf("the write ends with %v", err)
		}
		time.Sleep(2 * times.Retry)
		if err := f.write(); err != nil {
			t.Errorf("after a renewal: %v", err)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}

// Readiness and health are answered beside the loop: a slow step changes neither, one
// that does not end costs first the readiness, then the Lease.
func TestALoopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		defer f.hang()()
		time.Sleep(slowAfter - time.Second)
		if ready, why := f.driver.Ready(); !ready {
			t.Error("not ready over a slow step: ", why)
		}
		time.Sleep(2 * time.Second)
		if ready, why := f.driver.Ready(); ready || !strings.Contains(why, "16s") {
			t.Errorf("ready is %t: %s", ready, why)
		}
		if healthy, _ := f.driver.Healthy(); !healthy {
			t.Error("not healthy over a slow step")
		}
		err := <-f.ended
		if err == nil || !strings.Contains(err.Error(), "at one step") {
			t.Errorf("the process ends with %v", err)
		}
		if healthy, why := f.driver.Healthy(); healthy {
			t.Error("healthy: ", why)
		}
		if err := f.write(); !errors.Is(err, cluster.ErrFenced) {
			t.Errorf("a write afterwards ends with %v", err)
		}
		if got := f.holder(); got != "" {
			t.Errorf("the Lease is still held by %q", got)
		}
	})
}

// A stop does not wait for a step that does not end.
func TestAStopWhileTheLoopHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		defer f.hang()()
		began := time.Now()
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := f.holder(); got != "" {
			t.Errorf("the Lease is still held by %q", got)
		}
	})
}

// Nor does it wait for a step of a hook, a filter or a file that does not end.
func TestAStopWhileAHookHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		release := make(chan struct{})
		defer close(release)
		f.driver.busy().Go(func() { <-release })
		began := time.Now()
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		if got := f.holder(); got != "" {
			t.Errorf("the Lease is still held by %q", got)
		}
	})
}
