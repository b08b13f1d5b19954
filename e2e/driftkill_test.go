package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/proxy"
	"github.com/starling-operator/starling/modules/status"
)

// newKiller has the process of f reach the API server by a proxy that may kill it at a write.
func newKiller(t *testing.T, f *fixture, counts func(path string) bool) *proxy.Killer {
	t.Helper()
	k := &proxy.Killer{Counts: counts}
	var p *proxy.Proxy
	p, f.kube = proxy.New(t, f.kube, 0)
	p.Inject(k.Fault(func() { f.process.Kill() }))
	return k
}

// Starling is killed at each write of a repair, before the write reaches the API server or before
// its answer is here. The next process leads to what a fresh install makes, at the same revision,
// and then rests.
func TestKilledInARepair(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("written %t", after), func(t *testing.T) {
			t.Parallel()
			testKilledInARepair(t, after)
		})
	}
}

func testKilledInARepair(t *testing.T, after bool) {
	files := drifting("web")
	for name, text := range maps.Clone(files) {
		if before, ok := strings.CutPrefix(name, "web/templates/"); ok {
			files["web/templates/other-"+before] = strings.ReplaceAll(text, "name: web", "name: other")
		}
	}
	f := newFixture(t, files, driftingRole())
	r, s := newKiller(t, f, nil), somebodyElse{t: t, cluster: shared, ns: f.ns, names: []string{"web", "other"}}
	f.start()
	f.waitReady()
	fresh, err := s.held()
	if err != nil {
		t.Fatal(err)
	}
	settled := func() error {
		now, err := s.held()
		if err != nil {
			return err
		}
		if !cmp.Equal(fresh, now) {
			return fmt.Errorf("it differs: %s", cmp.Diff(fresh, now))
		}
		m, err := f.module("web")
		if err != nil {
			return err
		}
		if m.State != status.ModuleReady || len(m.Drifted)+len(m.Problems) > 0 {
			return fmt.Errorf("it is %s: %+v %q", m.State, m.Drifted, m.Problems)
		}
		return r.Rests(500 * time.Millisecond)
	}
	parts := func() {
		s.change("ConfigMap", "web", `{"data": {"text": "theirs"}}`)
		s.change("Deployment", "web", "")
		s.updated("ConfigMap", "other")
		s.change("Deployment", "other", `{"metadata": {"labels": {"starling.dev/released-by": null}}}`)
	}
	all := func() {
		for _, kind := range driftingKinds {
			for _, name := range s.names {
				s.change(kind.Kind, name, "")
			}
		}
	}
	again := func() {
		f.process.Kill() // it may be dead already
		f.freeLease()
		f.start()
		f.waitReady()
	}
	// An object that is gone is applied, and one has been written without apply before: the digest after the one change
	// is another one than after the other. No process repairs an object three times, which would be contested.
	changes := []func(){parts, all}
	var digests []map[string]string
	for _, change := range changes {
		f.eventually("it rests", settled)
		before := f.records()
		change()
		f.eventually("all is as it was", func() error {
			if cmp.Equal(before, f.records()) {
				return errors.New("the new digest is not written")
			}
			return settled()
		})
		// A change that the objects do not show may be put right later than the others.
		f.eventually("it rests for long", func() error { return r.Rests(2 * time.Second) })
		digests = append(digests, f.records())
	}
	again()
	// A process that leads shows the module as the one before has left it, while it looks at the objects. So the
	// digest tells that it has looked.
	looked := func(after int) func() error {
		return func() error {
			if d := cmp.Diff(digests[after], f.records()); d != "" {
				return fmt.Errorf("the digest is not written: %s", d)
			}
			return settled()
		}
	}
	for n, killed := 1, true; killed; n++ {
		killed = false
		for i, change := range changes {
			f.eventually("it rests", looked(1-i))
			before := r.KillAt(n, after, change)
			f.eventually("all is as it was, or the process is killed", func() error {
				if r.Killed() > before {
					return nil
				}
				return looked(i)()
			})
			killed = r.Spare() > before || killed
			again()
		}
	}
	f.eventually("all is as it was", looked(1))
	r.Spare()
	again()
	f.eventually("it rests for long", func() error { return r.Rests(2 * time.Second) })
	f.eventually("nothing differs", settled)
	if n := r.Written(); n > 0 {
		t.Errorf("a start of what was put right has written %d times", n)
	}
	f.waitRevision(f.ns, "web", 1)
	t.Logf("killed at %q", r.At())
	if !slices.Contains(r.At(), "PATCH secrets/starling-releases-1") {
		t.Error("no process was killed at the write of the digest")
	}
}

// records are what is kept of the releases.
func (f *fixture) records() map[string]string {
	f.t.Helper()
	s, err := shared.Client.CoreV1().Secrets(f.ns).Get(f.t.Context(), "starling-releases-1", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return data
}

// updated makes an object one that Starling has written without apply, as earlier versions did.
func (s somebodyElse) updated(kind, name string) {
	s.t.Helper()
	i := slices.IndexFunc(driftingKinds, func(k schema.GroupVersionKind) bool { return k.Kind == kind })
	client, err := s.cluster.Resource(s.object(driftingKinds[i], name))
	if err != nil {
		s.t.Fatal(err)
	}
	live, err := client.Get(s.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return // it is made anew
	}
	if err != nil {
		s.t.Fatal(err)
	}
	fields := live.GetManagedFields()
	for i := range fields {
		fields[i].Operation = metav1.ManagedFieldsOperationUpdate
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": fields}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.change(kind, name, string(patch))
}

// change merges a patch into an object, or deletes it where there is none.
func (s somebodyElse) change(kind, name, patch string) {
	s.t.Helper()
	i := slices.IndexFunc(driftingKinds, func(k schema.GroupVersionKind) bool { return k.Kind == kind })
	client, err := s.cluster.Resource(s.object(driftingKinds[i], name))
	if err != nil {
		s.t.Fatal(err)
	}
	if patch == "" {
		err = client.Delete(s.t.Context(), name, metav1.DeleteOptions{})
	} else {
		_, err = client.Patch(s.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	}
	// The process may be faster, or have been killed before it was made anew.
	if err != nil && !apierrors.IsNotFound(err) {
		s.t.Fatal(err)
	}
}
