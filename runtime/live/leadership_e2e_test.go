//go:build e2e

package live

import (
	"errors"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/cluster"
)

var shared *e2e.Cluster

func TestMain(m *testing.M) { os.Exit(e2e.Main(m, &shared)) }

const soon = 4 * time.Minute

// TestRealTheftOfTheLease is [TestAStolenLeaseWhileTheLoopIsStuck] on a real API server:
// renewals conflict there, and what is kept is one more fence.
func TestRealTheftOfTheLease(t *testing.T) {
	ns := shared.Namespace(t)
	f := &fixture{T: t, dir: t.TempDir(), ended: make(chan error, 1), config: shared.Config, namespace: ns, line: newLine()}
	f.driver = f.newDriver(emptyTree)
	f.start()
	e2e.Eventually(t, soon, "the driver is ready", func() error {
		if released, why := f.driver.Released(); !released {
			return errors.New(why)
		}
		return nil
	})
	kept := map[string][]byte{"a": []byte("1")}
	if err := f.driver.kept.Save(t.Context(), "web", kept); err != nil {
		t.Fatal(err)
	}
	release := f.hang()
	e2e.Eventually(t, soon, "somebody else takes the Lease", func() error {
		err := f.trySteal()
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err // a renewal in between makes it a conflict
	})
	lost := f.driver.term.Load()
	if <-lost.lost; !errors.Is(lost.cause, errTaken) {
		t.Errorf("the Lease is lost by %v", lost.cause)
	}
	if err := f.write(); !fenced(err) {
		t.Errorf("a write after the Lease is lost ends with %v", err)
	}
	release()
	e2e.Eventually(t, soon, "the driver stands by", func() error {
		if f.leads() || f.driver.term.Load() == lost {
			return errors.New("not yet")
		}
		return nil
	})
	if err := f.write(); !fenced(err) {
		t.Errorf("a write of one that stands by ends with %v", err)
	}
	f.stop()
	if err := <-f.ended; err != nil {
		t.Errorf("the process ends with %v", err)
	}
	if got := f.holder(); got != "thief" {
		t.Errorf("the Lease is held by %q", got)
	}

	// The next process goes on from what is kept; the first one's late write conflicts.
	if err := f.leases().Delete(t.Context(), "starling", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	late := cluster.NewKept(cluster.KeptOptions{Client: f.newClient(), Namespace: ns, Name: "starling", Instance: ns + ".starling"})
	if _, err := late.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := f.newDriver(emptyTree)
	for _, text := range []string{"2", "3"} {
		if err := next.kept.Save(t.Context(), "web", map[string][]byte{"a": []byte(text)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := late.Save(t.Context(), "web", map[string][]byte{"a": []byte("late")}); !errors.Is(err, cluster.ErrOtherWriter) {
		t.Errorf("the late save ends with %v", err)
	}
	for _, data := range []map[string][]byte{{"b": {1}}, nil} { // a key goes, then all
		if err := next.kept.Save(t.Context(), "web", data); err != nil {
			t.Fatal(err)
		}
		got, err := next.kept.Load(t.Context())
		if err != nil || len(got["web"]) != len(data) {
			t.Errorf("kept is %v, %v", got, err)
		}
	}
}
