package live

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/runtime/object"
)

// client-go's elector asks for the Lease every now and then: it sees a renewal late, and the end of the Lease as
// late again. A process that stands by watches the Lease, so it knows when each renewal has come, and asks at
// the very moment at which the Lease runs out. Until then it need not ask. While the API server is away it asks more
// often than the elector would: it leads again soon after.

// leaseSight is what a watch has shown of the Lease.
type leaseSight struct {
	// free is called when nobody holds the Lease, or when it has run out.
	free func()

	mu    sync.Mutex
	lease *coordinationv1.Lease // nil: there is none, or nothing was shown yet
	at    time.Time             // when this version was first seen
	told  bool                  // by the watch, which tells of the next one, too
	out   *time.Timer           // set while it is held
	over  bool                  // this process has the Lease
}

// begin has the sight count again: this process has the Lease no more.
func (s *leaseSight) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease, s.over = nil, false
}

// sees notes what the watch shows now; not told: what an answer has shown. A version is seen after it was written, so here the Lease does not run
// out before it does so for its holder.
func (s *leaseSight) sees(lease *coordinationv1.Lease, told bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = s.told && s.lease != nil && lease != nil && s.lease.ResourceVersion == lease.ResourceVersion || told
	if s.over || s.lease != nil && lease != nil && s.lease.ResourceVersion == lease.ResourceVersion {
		return
	}
	if s.out != nil {
		s.out.Stop()
	}
	s.lease, s.at = lease, time.Now()
	if holderOf(lease) == "" {
		if told { // else it is being asked for
			s.free()
		}
		return
	}
	s.out = time.AfterFunc(lasts(lease), s.free)
}

// shown is the Lease as it must still be; nil: it has to be asked for. Renewals come every Retry.
func (s *leaseSight) shown(retry time.Duration) *coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || !s.told || holderOf(s.lease) == "" || time.Since(s.at) > min(3*retry, lasts(s.lease)/2) {
		return nil
	}
	return s.lease.DeepCopy()
}

// ranOut says whether this very version was seen for as long as it lasts.
func (s *leaseSight) ranOut(lease *coordinationv1.Lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over && s.lease != nil && s.lease.ResourceVersion == lease.ResourceVersion && s.lease.UID == lease.UID &&
		time.Since(s.at) >= lasts(lease)
}

// end has the sight count no more: this process has the Lease.
func (s *leaseSight) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; s.out != nil {
		s.out.Stop()
	}
}

// holderOf is the process that holds a Lease; "": nobody does.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// lasts is how long a Lease lasts after a renewal, as its holder says.
func lasts(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// lookAtLease notes what the watch shows of the Lease.
func (d *Driver) lookAtLease() {
	var lease *coordinationv1.Lease
	for _, v := range d.watches.Snapshot(leaseWatch) {
		if o, is := v.(*object.Object); is {
			var l coordinationv1.Lease
			if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Map(), &l) == nil {
				lease = &l
			}
		}
	}
	if lease != nil {
		d.hearOf(lease)
	} else {
		d.holder.sees("", true)
	}
	d.sight.sees(lease, true)
}

// hearOf takes in who leads, and what that process says in the Lease.
func (d *Driver) hearOf(lease *coordinationv1.Lease) {
	d.holder.sees(holderOf(lease), d.leaseSeal().named(lease))
	d.marks.hear(d.leaseSeal().marks(lease), d.identity)
	if holderOf(lease) != d.identity { // else it is what this process has written as it took over
		d.trees.compares(lease)
	}
}
