package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

// relay stands between a process and the API server, and kills the process at one of its writes.
// Those of the Lease do not count.
type relay struct {
	// counts says whether a write to this path counts; nil: all do.
	counts func(path string) bool
	// atRest says that the process may be killed: it is waited for, and no write that does not count is under way
	// then. Nil: at once.
	atRest func() bool
	// killed is how many processes were killed. A write that came from one of them is dropped.
	killed atomic.Int64
	others sync.RWMutex // held for reading during a write that does not count

	mu        sync.Mutex           // held during a write, so that they come one after another
	countdown int                  // writes until the kill; 0 and below: no kill
	aims      func(at string) bool // nil, or says at which write to kill; then nothing is counted
	after     bool                 // the write reaches the API server, its answer does not come back
	kill      func()
	last      time.Time // the last write
	at        []string  // the writes at which processes were killed
}

// newRelay has the process of f reach the API server by a relay.
func newRelay(t *testing.T, f *fixture) *relay {
	t.Helper()
	r := &relay{}
	var p *proxy.Proxy
	p, f.kube = proxy.New(t, f.kube, 0)
	p.Inject(proxy.Fault{Name: "kills", On: proxy.But(proxy.Writes, proxy.Leases), Strike: r.serve})
	return r
}

func (r *relay) serve(w http.ResponseWriter, req *http.Request, next http.Handler, _ *rand.Rand) {
	killed := r.killed.Load()
	if r.counts != nil && !r.counts(req.URL.Path) {
		r.others.RLock()
		defer r.others.RUnlock()
		if r.killed.Load() != killed {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, req)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed.Load() != killed {
		panic(http.ErrAbortHandler)
	}
	r.last = time.Now()
	_, object, namespaced := strings.Cut(req.URL.Path, "/namespaces/")
	if _, object, _ = strings.Cut(object, "/"); !namespaced {
		object = req.URL.Path
	}
	at := req.Method + " " + object
	r.countdown--
	if r.aims == nil && r.countdown != 0 || r.aims != nil && !r.aims(at) {
		next.ServeHTTP(w, req)
		return
	}
	if r.after {
		next.ServeHTTP(httptest.NewRecorder(), req)
	}
	r.at, r.aims = append(r.at, at), nil
	r.others.Lock()
	for began := time.Now(); r.atRest != nil && !r.atRest() && time.Since(began) < soon; {
		r.others.Unlock()
		time.Sleep(20 * time.Millisecond)
		r.others.Lock()
	}
	r.kill()
	r.killed.Add(1)
	r.others.Unlock()
	panic(http.ErrAbortHandler)
}

// killAt kills the process at the n-th write after a change, all of which is there before the
// first write. It returns how many were killed before.
func (r *relay) killAt(n int, after bool, kill, change func()) int64 {
	return r.arm(n, nil, after, kill, change)
}

// killNew does the same at the first write that is not in known, and adds it there; of one that comes several times
// after a change the first two. So a process is killed at each write, in whatever order they come.
func (r *relay) killNew(known map[string]bool, after bool, kill, change func()) int64 {
	times := map[string]int{}
	return r.arm(0, func(at string) bool {
		times[at]++
		at = fmt.Sprint(at, " ", min(times[at], 2))
		if known[at] {
			return false
		}
		known[at] = true
		return true
	}, after, kill, change)
}

func (r *relay) arm(n int, aims func(at string) bool, after bool, kill, change func()) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countdown, r.aims, r.after, r.kill = n, aims, after, kill
	change()
	r.last = time.Now()
	return r.killed.Load()
}

// spare kills no process any more. It returns how many were killed.
func (r *relay) spare() int64 { return r.killAt(0, false, nil, func() {}) }

// written is how many writes there were since killAt or spare.
func (r *relay) written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return -r.countdown
}

// rests is nil when nothing was written for a while.
func (r *relay) rests(long time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if since := time.Since(r.last); since < long {
		return fmt.Errorf("it has written %s ago", since)
	}
	return nil
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
	r, s := newRelay(t, f), somebodyElse{t: t, cluster: shared, ns: f.ns, names: []string{"web", "other"}}
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
		return r.rests(500 * time.Millisecond)
	}
	parts := func() {
		s.change("ConfigMap", "web", `{"data": {"text": "theirs"}}`)
		s.change("Deployment", "web", "")
		s.change("ConfigMap", "other", `{"metadata": {"managedFields": [{}]}}`)
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
	// An object without managedFields is applied, one that is gone is created: the digest is another
	// one each time, and is written. No process repairs an object three times, which would be contested.
	for n, killed := 1, true; killed; n++ {
		killed = false
		for _, change := range []func(){parts, all} {
			f.eventually("it rests", settled)
			before := r.killAt(n, after, f.process.Kill, change)
			f.eventually("all is as it was, or the process is killed", func() error {
				if r.killed.Load() > before {
					return nil
				}
				return settled()
			})
			killed = r.spare() > before || killed
			again()
		}
	}
	f.eventually("all is as it was", settled)
	r.spare()
	again()
	f.eventually("it rests for long", func() error { return r.rests(2 * time.Second) })
	f.eventually("nothing differs", settled)
	if n := r.written(); n > 0 {
		t.Errorf("a start of what was put right has written %d times", n)
	}
	f.waitRevision(f.ns, "web", 1)
	t.Logf("killed at %q", r.at)
	if !slices.Contains(r.at, "PATCH configmaps/starling-releases") {
		t.Error("no process was killed at the write of the digest")
	}
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
