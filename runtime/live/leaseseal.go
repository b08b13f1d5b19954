package live

import (
	"context"
	"errors"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// leaseSignature signs the name of the holder, which says where requests are sent, and the marks: others may write the
// Lease, too. Processes that follow believe neither without it.
const leaseSignature = "starling.dev/lease-signature"

// leaseSeal signs Leases with the key of the instance.
type leaseSeal struct {
	*effect.Seal
	// open finds out which key the instance has.
	open func(context.Context) error
}

// know finds that out, once. A Secret without a key keeps nobody from the Lease: the process that leads tells of it.
func (s leaseSeal) know(ctx context.Context) error {
	if s.Seal == nil || s.Known() {
		return nil
	}
	if err := s.open(ctx); !errors.Is(err, cluster.ErrBadKey) {
		return err
	}
	return nil
}

// sign signs a Lease as it is written: the name and the marks by themselves, since somebody may take out the name of a
// process that is gone. The first process of an instance makes the key once it has the Lease.
func (s leaseSeal) sign(lease *coordinationv1.Lease) {
	if s.Seal != nil && s.Ready() {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, leaseSignature, s.SignName(leaseRef(lease), "holder", holderOf(lease)))
		s.signMarks(lease)
	}
}

// signMarks signs the marks of a Lease, and leaves the signature of the name as it is: it may be that of another process.
func (s leaseSeal) signMarks(lease *coordinationv1.Lease) {
	if name, _, _ := strings.Cut(lease.Annotations[leaseSignature], " "); s.Seal != nil && s.Ready() {
		lease.Annotations[leaseSignature] = name + " " + s.SignName(leaseRef(lease), "marks", lease.Annotations[marksAnnotation])
	}
}

// named says whether a process of the instance has written the name of the holder.
func (s leaseSeal) named(lease *coordinationv1.Lease) bool {
	name, _, _ := strings.Cut(lease.Annotations[leaseSignature], " ")
	return s.Seal == nil || s.Vouches(name, leaseRef(lease), "holder", holderOf(lease))
}

// marks returns the marks that a process of the instance has written, "" for others.
func (s leaseSeal) marks(lease *coordinationv1.Lease) string {
	text := lease.Annotations[marksAnnotation]
	if _, sum, _ := strings.Cut(lease.Annotations[leaseSignature], " "); s.Seal == nil || s.Vouches(sum, leaseRef(lease), "marks", text) {
		return text
	}
	return ""
}

func leaseRef(lease *coordinationv1.Lease) effect.Ref {
	return effect.Ref{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: lease.Namespace, Name: lease.Name}
}
