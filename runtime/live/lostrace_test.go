package live

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/starling-operator/starling/runtime/engine"
)

// lateLease is a Lease that is free as it is read, and that another process has taken before it is written.
type lateLease struct {
	coordination.LeaseInterface
	lease *coordinationv1.Lease
}

func (l lateLease) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return l.lease.DeepCopy(), nil
}

func (l lateLease) Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "starling", nil)
}

// A process that asks for a free Lease just after another one has it is one that stands by: it hears of what the other
// one must not evaluate any more, and does not take the tree of that one, which has led before, for a newer one.
func TestARaceForTheLeaseThatIsLost(t *testing.T) {
	m := open(t, t.TempDir())
	known := &trees{own: func() string { return "new" }}
	lease := leaseOf(map[string]string{treeAnnotation: "old"})
	known.compares(lease)
	l := &ownLease{LeaseInterface: lateLease{lease: lease}, of: &leases{
		marks: m, trees: known, own: "this", sight: &leaseSight{free: func() {}}, heard: func(*coordinationv1.Lease) {},
		explain: func(err error, _ string) error { return err },
	}}
	read, err := l.Get(t.Context(), "starling", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Update(t.Context(), read, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	if known.compares(lease); known.arrives() {
		t.Error("the tree that has led before counts as a newer one")
	}
	m.hear(`{"unclean":{"`+markOf("web/a", "code")+`":2}}`, "own")
	if why := m.quarantined("web/a", "code"); !strings.Contains(why, "quarantined") {
		t.Errorf("it does not hear of what the other process must not evaluate: %q", why)
	}
}

// The engine may be at a long step as the Lease goes. No step of the last term is carried out in the next one: this
// process stands by.
func TestTheLastStepOfATermIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, emptyTree)
		f.start()
		f.waitReady()
		refused := newMessage("", "late")
		refused.Request.URL = "http://127.0.0.1:1/"
		stuck := make(chan struct{})
		f.driver.asks <- func(*engine.Engine) {
			<-stuck
			f.driver.do(engine.Send{Module: "web", Hook: "web/a", Messages: []engine.Message{refused}})
		}
		before := f.driver.term.Load()
		f.steal()
		<-before.lost
		time.Sleep(3 * time.Second) // the work of the term has ended, and the next one waits for the loop
		close(stuck)
		time.Sleep(3 * time.Second)
		if f.driver.term.Load() == before {
			t.Fatal("no other term has begun")
		}
		if waiting, problems := f.driver.outbox.state("web"); waiting > 0 {
			t.Errorf("a message is sent by a process that stands by: %q", problems)
		}
	})
}
