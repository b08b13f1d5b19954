package live

import (
	"context"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

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

// seenLeases are Leases of which a watch tells.
type seenLeases struct {
	coordination.LeasesGetter
	sight *leaseSight
	retry time.Duration
	own   string                      // the name of this process as a holder
	heard func(*coordinationv1.Lease) // is told of each one that was asked for: the watch may fail
}

// Leases are those of a namespace.
func (l *seenLeases) Leases(namespace string) coordination.LeaseInterface {
	return &seenLease{LeaseInterface: l.LeasesGetter.Leases(namespace), of: l}
}

type seenLease struct {
	coordination.LeaseInterface
	of *seenLeases
}

// Get reads the Lease. One that has run out is shown without its holder: an elector would wait once more for as
// long as it lasts. A renewal that comes between is no harm: then the version is another one, here or at the write.
func (l *seenLease) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if lease := l.of.sight.shown(l.of.retry); lease != nil && !strings.Contains(lease.Annotations[marksAnnotation], l.of.own) {
		return lease, nil // else this process is counted there
	}
	lease, err := l.LeaseInterface.Get(ctx, name, o)
	switch {
	case err == nil:
		l.of.sight.sees(lease, false)
		l.of.heard(lease)
	case !apierrors.IsNotFound(err):
		time.AfterFunc(l.of.retry/4, l.of.sight.free)
	}
	if err == nil && l.of.sight.ranOut(lease) {
		lease = lease.DeepCopy()
		lease.Spec.HolderIdentity = nil
	}
	return lease, err
}

// Create makes the Lease.
func (l *seenLease) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.had(l.LeaseInterface.Create(ctx, lease, o))
}

// Update writes the Lease.
func (l *seenLease) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return l.had(l.LeaseInterface.Update(ctx, lease, o))
}

func (l *seenLease) had(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		l.of.sight.end()
	}
	return lease, err
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
