package e2e

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A process that loses the Lease to another one ends, writes nothing any more, and
// does not take the Lease back.
func TestLosingTheLeaseEndsTheProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t, trees(mirror("web", on), probe()))
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
	f.fails("lease", "another process")
	lease, err := leases.Get(t.Context(), f.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *lease.Spec.HolderIdentity; got != "somebody-else" {
		t.Errorf("the Lease is held by %q", got)
	}
	f.waitRevision(f.ns, "web", 1)
}
