package live

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// leases are Leases that carry marks. A watch tells of them, too. One goroutine at a time asks for them.
type leases struct {
	coordination.LeasesGetter
	marks   *Marks
	trees   *trees
	seal    leaseSeal
	sight   *leaseSight
	retry   time.Duration
	own     string                      // the name of this process as a holder
	heard   func(*coordinationv1.Lease) // is told of each one that was asked for: the watch may fail
	explain func(err error, verb string) error
	// met is set by a look at the Lease, until the next write of it: what it has carried then.
	met *metMarks
}

type metMarks struct {
	text, holder string
}

// Leases are those of a namespace.
func (l *leases) Leases(namespace string) coordination.LeaseInterface {
	return &ownLease{LeaseInterface: l.LeasesGetter.Leases(namespace), of: l}
}

type ownLease struct {
	coordination.LeaseInterface
	of *leases
}

// Get reads the Lease. One that has run out is shown without its holder: an elector would wait once more for as
// long as it lasts. A renewal that comes between is no harm: then the version is another one, here or at the write.
func (l *ownLease) Get(ctx context.Context, name string, o metav1.GetOptions) (*coordinationv1.Lease, error) {
	if lease := l.of.sight.shown(l.of.retry); lease != nil && !strings.Contains(lease.Annotations[marksAnnotation], l.of.own) {
		return lease, nil // else this process is counted there
	}
	lease, err := l.LeaseInterface.Get(ctx, name, o)
	none := apierrors.IsNotFound(err)
	if err == nil || none {
		if failed := l.of.seal.know(ctx); failed != nil {
			err, none = failed, false
		}
	}
	switch {
	case err == nil:
		lease = l.lives(ctx, lease)
		l.of.met = &metMarks{lease.Annotations[marksAnnotation], holderOf(lease)}
		if l.of.met.holder != l.of.own { // people may take marks out of ours
			l.of.met.text = l.of.seal.marks(lease)
		}
		l.of.sight.sees(lease, false)
		l.of.heard(lease)
		if l.of.sight.ranOut(lease) {
			lease = lease.DeepCopy()
			lease.Spec.HolderIdentity = nil
		}
	case none:
		l.of.met = nil
	default:
		time.AfterFunc(l.of.retry/4, l.of.sight.free)
	}
	return lease, l.of.explain(err, "get")
}

// lives takes out of the Lease of another process what is counted of this one, which has lost it and lives. The process
// that leads finds that its Lease has changed, and reads it.
func (l *ownLease) lives(ctx context.Context, lease *coordinationv1.Lease) *coordinationv1.Lease {
	text := l.of.seal.marks(lease)
	if holder := holderOf(lease); holder == "" || holder == l.of.own || !strings.Contains(text, l.of.own) {
		return lease
	}
	left, mine := readLeaseMarks(text), lease.DeepCopy()
	left.without(l.of.own)
	said, _ := json.Marshal(left) // texts and numbers
	mine.Annotations[marksAnnotation] = string(said)
	l.of.seal.signMarks(mine)
	if mine, err := l.LeaseInterface.Update(ctx, mine, metav1.UpdateOptions{}); err == nil {
		return mine
	}
	return lease // the next look does it
}

// Create makes the Lease.
func (l *ownLease) Create(ctx context.Context, lease *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.write("create", lease, true, func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.LeaseInterface.Create(ctx, lease, o)
	})
}

// Update writes the Lease. A write that takes it over takes in what it has carried.
func (l *ownLease) Update(ctx context.Context, lease *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	takesOver := false
	switch met := l.of.met; {
	case met == nil:
	case met.holder == l.of.own:
		l.of.marks.keep(met.text)
	default:
		l.of.marks.inherit(met.text, met.holder, l.of.own)
		takesOver = true
	}
	l.of.met = nil
	return l.write("update", lease, takesOver, func(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		return l.LeaseInterface.Update(ctx, lease, o)
	})
}

// write has the Lease carry marks, and say which tree leads.
func (l *ownLease) write(
	verb string, lease *coordinationv1.Lease, takesOver bool, send func(*coordinationv1.Lease) (*coordinationv1.Lease, error),
) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	said := l.of.trees.mark(lease, takesOver)
	delete(lease.Annotations, marksAnnotation)
	if text := l.of.marks.carry(); text != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, marksAnnotation, text)
	}
	l.of.seal.sign(lease)
	led := lease.Annotations[treeAnnotation]
	lease, err := send(lease)
	switch {
	case err == nil:
		l.of.trees.tell(said, led)
		l.of.sight.end()
	case takesOver: // another process may have it: what that one says counts
		l.of.marks.yield()
	}
	return lease, l.of.explain(err, verb)
}
