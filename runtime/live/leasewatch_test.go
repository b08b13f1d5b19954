package live

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewAs renews the Lease as another process does, or makes it.
func (f *fixture) renewAs(holder string) (began time.Time) {
	f.Helper()
	began = time.Now()
	now, seconds := metav1.NewMicroTime(began), int32(times.Duration.Seconds())
	spec := coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	lease, err := f.leases().Get(f.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		_, err = f.leases().Create(f.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "starling"}, Spec: spec}, metav1.CreateOptions{})
	} else {
		lease.Spec = spec
		_, err = f.leases().Update(f.Context(), lease, metav1.UpdateOptions{})
	}
	if err != nil {
		f.Fatal(err)
	}
	return began
}

// A process that stands by has the Lease as soon as it has run out after the last renewal, and never before: its
// watch tells it of renewals, so it does not ask for it in between.
func TestTheLeaseIsHadAsItRunsOut(t *testing.T) {
	for _, watched := range []bool{true, false} {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, emptyTree)
				var asked atomic.Int32
				f.answered = func(r *http.Request, _ *http.Response) {
					if strings.Contains(r.URL.Path, "/leases/") && r.Method == http.MethodGet {
						asked.Add(1)
					}
				}
				renewed := f.renewAs("other")
				f.start()
				renew := func(rounds int) {
					for range rounds {
						time.Sleep(times.Retry + rand.N(times.Retry/5))
						renewed = f.renewAs("other")
					}
				}
				renew(3)
				if f.driver.sight.shown(times.Retry) == nil {
					t.Fatal("the watch shows nothing")
				}
				if !watched {
					f.driver.watches.Stop(leaseWatch)
					f.driver.sight.sees(nil, true)
				}
				before := asked.Load()
				renew(20)
				if n := asked.Load() - before - 20; watched && n > 0 { // without those of the other one
					t.Errorf("it has asked for the Lease %d times", n)
				}
				time.Sleep(times.Duration - time.Since(renewed) - time.Millisecond)
				if f.leads() {
					t.Fatalf("it leads %s after a renewal", time.Since(renewed))
				}
				for !f.leads() {
					time.Sleep(time.Millisecond)
				}
				most := times.Duration + times.Retry
				if !watched { // client-go sees the renewal, and asks again, 1.2 times as late as every Retry
					most = times.Duration + 2*times.Retry*22/10
				}
				if took := time.Since(renewed); took > most {
					t.Errorf("watched is %t: it leads %s after the last renewal", watched, took)
				}
				f.stop()
				if err := <-f.ended; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A renewal of which the watch does not tell has the process wait on.
func TestARenewalThatTheWatchDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.renewAs("other")
		f.start()
		time.Sleep(times.Retry)
		f.driver.watches.Stop(leaseWatch)
		time.Sleep(times.Duration / 2)
		renewed := f.renewAs("other")
		for !f.leads() {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(renewed); took < times.Duration {
			t.Errorf("it leads %s after a renewal", took)
		}
		f.stop()
		if err := <-f.ended; err != nil {
			t.Error(err)
		}
	})
}
