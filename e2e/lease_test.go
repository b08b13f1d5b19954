package e2e

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A process that loses the Lease to another one stands by: it writes nothing any more, does not take the Lease back, and
// goes on with its work once the Lease is free.
func TestLosingTheLeaseIsAStepDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe())).alone("somebody else has the Lease meanwhile")
	f.start()
	f.waitReady()
	f.waitRevision(f.ns, "web", 1)

	leases := shared.Client.CoordinationV1().Leases(f.ns)
	f.eventually("somebody else takes the Lease", func() error {
		lease, err := leases.Get(t.Context(), f.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.NowMicro()
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: new("somebody-else"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
		}
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err // a renewal in between makes it a conflict
	})
	f.waitReadyAs(false)
	f.configure(map[string]string{"web": "text: changed"})
	f.eventually("it says so", func() error {
		return holds(f.process.Output(), []string{"another process has taken the lease", "it stands by"})
	})
	lease, err := leases.Get(t.Context(), f.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *lease.Spec.HolderIdentity; got != "somebody-else" {
		t.Errorf("the Lease is held by %q", got)
	}
	f.waitRevision(f.ns, "web", 1)
	pid := f.process.PID()
	f.freeLease()
	f.waitReady()
	f.waitRevision(f.ns, "web", 2)
	f.waitData("web", map[string]string{"text": "changed"})
	f.probe()
	if !f.process.Alive() || f.process.PID() != pid {
		t.Error("it was started anew")
	}
}
