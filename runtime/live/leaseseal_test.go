package live

import (
	"encoding/base64"
	"encoding/json"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// A process that stands by takes the key that comes in the place of one which somebody has deleted, and the one it
// has is not lost to a list that was read before.
func TestTheNextKeyIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins)
		f.start()
		f.waitReady()
		g := f.beside(logins)
		g.start()
		time.Sleep(time.Minute)
		next := make([]byte, 32)
		f.patchTarget(secretAt("ops", "starling-marks"), `{"data": {"key": "`+base64.StdEncoding.EncodeToString(next)+`"}}`)
		f.driver.o.Client.Seal().Use(next, time.Time{}) // as the next process does that leads
		time.Sleep(time.Minute)
		seal := g.driver.o.Client.Seal()
		if is, _ := g.driver.holder.now(); is.name != f.driver.identity || is.forged {
			t.Errorf("it believes the name of the process that leads no more: %+v", is)
		}
		if seal.None(); !seal.Ready() {
			t.Error("the key is lost")
		}
		for _, p := range []*fixture{g, f} {
			p.stop()
			<-p.ended
		}
	})
}

// A Secret that holds no key keeps nobody from the Lease: the process that has it tells of the Secret, and goes on once
// that is deleted.
func TestASecretWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, logins)
		f.applyAs("kubectl", secretAt("ops", "starling-marks"), map[string]any{
			"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"key": "eA=="},
			"metadata": map[string]any{"namespace": "ops", "name": "starling-marks", "labels": map[string]any{
				effect.InstanceLabel: effect.Instance{Namespace: "ops", Name: "starling"}.Label(), "starling.dev/marks": "key",
			}},
		})
		f.start()
		time.Sleep(time.Minute)
		if is, _ := f.driver.holder.now(); is.role != takesOver {
			t.Errorf("it has the Lease and does nothing: %+v", is)
		}
		if _, err := f.store.Delete(secretAt("ops", "starling-marks"), store.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		f.waitReady()
		f.stop()
		<-f.ended
	})
}

// Somebody who may write the Lease names an address as that of the process that leads, and hooks as those that have
// ended processes: no request is sent there, and no hook is quarantined.
func TestAForgedLeaseIsNotBelieved(t *testing.T) {
	f := receiver(t, countingTree, store.New(store.Options{Builtins: builtinKinds(), MakeNamespaces: true}))
	f.start()
	f.await("the first process is not ready", func() bool { yes, _ := f.driver.Released(); return yes })
	g := receiver(t, countingTree, f.store)
	g.start()
	f.await("the second process is not ready", func() bool { yes, _ := g.driver.Ready(); return yes })
	f.await("the Lease is not signed", func() bool {
		is, _ := g.driver.holder.now()
		return is.name == f.driver.identity && !is.forged
	})

	theirs, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	var sent atomic.Int32
	go func() {
		for {
			conn, err := theirs.Accept()
			if err != nil {
				return
			}
			sent.Add(1)
			conn.Close()
		}
	}()
	lease := store.Target{GVR: schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, Namespace: "ops", Name: "starling"}
	marks, _ := json.Marshal(leaseMarks{Unclean: map[string]int{"web/a": 100}})
	forged := "starling-7d9_1__" + theirs.Addr().String()
	patch, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{marksAnnotation: string(marks)}},
		"spec":     map[string]any{"holderIdentity": forged, "leaseDurationSeconds": 1},
	})
	if _, err := f.store.Patch(lease, types.MergePatchType, patch, store.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.await("the forged Lease is not seen", func() bool { is, _ := g.driver.holder.now(); return is.name == forged })
	if got := g.send(); !strings.HasPrefix(got, "200 request ") && !strings.HasPrefix(got, "503 ") { // once one of both leads again
		t.Errorf("got %s", got)
	}
	if sent.Load() > 0 {
		t.Error("the request was sent to the forged address")
	}
	for _, d := range []*Driver{f.driver, g.driver} {
		d.marks.mu.Lock()
		if len(d.marks.inherited.Unclean) > 0 {
			t.Errorf("marks: %v", d.marks.inherited)
		}
		d.marks.mu.Unlock()
	}
	for _, p := range []*fixture{f, g} {
		p.stop()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	}
}
