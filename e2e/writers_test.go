package e2e

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/starling-operator/starling/e2e/cluster"
)

// working is a tree whose hook writes an object at each change of another one, and says whose tree it is.
func working(whose string) map[string]string {
	return map[string]string{
		"beat/module.star": "module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"])])\n",
		"beat/hooks/a.star": fmt.Sprintf(`
def beat(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beat"}, "data": {"by": %q, "work": ",".join(ctx.snapshots["work"])}})

hook(beat, on = [startup(), k8s.watch("v1", "ConfigMap", name = "work", namespaces = ["$NS"], labels = {"e2e": "$NS"}, filter = lambda o: o.data["text"])])
`, whose),
	}
}

// sight is one version of the Lease, or of the object that is written.
type sight struct {
	version uint64
	lease   bool
	who     string
}

// observer sees all that happens to the Lease and to the object. Their versions are of one history, so it
// knows who held the Lease as the API server took a write.
type observer struct {
	f    *fixture
	mu   sync.Mutex
	seen []sight
}

func observe(f *fixture) *observer {
	o := &observer{f: f}
	o.follow(func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return shared.Client.CoordinationV1().Leases(f.ns).Watch(ctx, opts)
	}, f.name)
	o.follow(func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		return shared.Client.CoreV1().ConfigMaps(f.ns).Watch(ctx, opts)
	}, "beat")
	return o
}

// follow notes each version of an object from now on, whatever becomes of a watch.
func (o *observer) follow(open func(context.Context, metav1.ListOptions) (watch.Interface, error), name string) {
	o.f.t.Helper()
	now, err := shared.Client.CoreV1().ConfigMaps(o.f.ns).List(o.f.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.f.t.Fatal(err)
	}
	version, ctx := now.ResourceVersion, o.f.t.Context()
	go func() {
		for ctx.Err() == nil {
			w, err := open(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			for ev := range w.ResultChan() {
				if v := o.note(ev.Object); v != "" {
					version = v
				}
			}
		}
	}()
}

// note takes in one version, and returns it.
func (o *observer) note(obj runtime.Object) (version string) {
	var s sight
	switch obj := obj.(type) {
	case *coordinationv1.Lease:
		version, s.lease = obj.ResourceVersion, true
		if h := obj.Spec.HolderIdentity; h != nil {
			s.who = *h
		}
	case *corev1.ConfigMap:
		version, s.who = obj.ResourceVersion, obj.Data["by"]
	default:
		return ""
	}
	s.version, _ = strconv.ParseUint(version, 10, 64)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, s)
	return version
}

// writes is how often a process has written.
func (o *observer) writes(by string) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.seen {
		if !s.lease && s.who == by {
			n++
		}
	}
	return n
}

// awaits waits until a process has written once more, and returns how long that took.
func (o *observer) awaits(by string) time.Duration {
	o.f.t.Helper()
	began, before := time.Now(), o.writes(by)
	for o.writes(by) == before {
		if time.Since(began) > soon {
			o.f.t.Fatalf("%s writes nothing", by)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// check fails for each write of a process that did not hold the Lease: each has held it under one name.
func (o *observer) check() {
	o.f.t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	slices.SortFunc(o.seen, func(a, b sight) int { return cmp.Compare(a.version, b.version) })
	holder, names, writes := "", map[string]string{}, 0
	for _, s := range o.seen {
		if s.lease {
			holder = s.who
			continue
		}
		if writes++; names[s.who] == "" {
			names[s.who] = holder
		}
		if holder == "" || names[s.who] != holder {
			o.f.t.Errorf("version %d: %s writes, which is %q, while the Lease is held by %q", s.version, s.who, names[s.who], holder)
		}
	}
	o.f.t.Logf("%d writes of %d processes", writes, len(names))
}

// replica is one process of the instance, on a separate line.
type replica struct {
	*fixture
	whose string
	line  *cluster.Line
}

// another starts one more process of the instance of f.
func (f *fixture) another(n int) replica {
	f.t.Helper()
	r := replica{fixture: &fixture{t: f.t, ns: f.ns, name: f.name, modules: f.t.TempDir()}, whose: fmt.Sprint("process-", n)}
	r.line, r.kube = cluster.NewLine(f.t, f.kube)
	r.write(working(r.whose))
	r.start()
	f.t.Cleanup(func() {
		if r.process.Alive() { // frozen, it does not hear that it shall end
			_ = syscall.Kill(r.process.PID(), syscall.SIGCONT)
		}
	})
	return r
}

func (r replica) signal(s syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(r.process.PID(), s); err != nil {
		r.t.Error(err)
	}
}

// faults are what becomes of a process that leads: then says what becomes of it once another one works.
var faults = []struct {
	name  string
	begin func(replica)
	then  func(replica)
}{
	{"stopped", func(r replica) { r.signal(syscall.SIGTERM) }, func(r replica) { r.process.Wait(soon) }},
	{"killed", func(r replica) { r.process.Kill() }, func(replica) {}},
	{"frozen", func(r replica) { r.signal(syscall.SIGSTOP) }, func(r replica) { r.signal(syscall.SIGCONT); r.fails("lease") }},
	{"cut off", func(r replica) { r.line.Cut() }, func(r replica) { r.fails("lease") }},
	{"not heard", func(r replica) { r.line.Stall(cluster.Up) }, func(r replica) { r.line.Cut(); r.fails("lease") }},
	{"deaf", func(r replica) { r.line.Stall(cluster.Down) }, func(r replica) { r.line.Cut(); r.fails("lease") }},
}

// Whatever becomes of the process that leads, no two write: each write is that of the process which holds the Lease
// at that moment. FAULTS is how many rounds there are of each fault.
func TestNeverTwoWriters(t *testing.T) {
	t.Parallel()
	rounds := 1
	if text := os.Getenv("FAULTS"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	f := newFixture(t, nil, least{HooksIn: map[string][]rbacv1.PolicyRule{"$NS": {watches("", "configmaps"), allow("", "configmaps", "get", "create", "patch")}}})
	o := observe(f)
	works := make(chan struct{})
	defer func() { <-works }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	f.touch("work", "0")
	go func() {
		defer close(works)
		for n := 1; ctx.Err() == nil; n++ {
			patch := fmt.Appendf(nil, `{"data":{"text":"%d"}}`, n)
			_, _ = shared.Client.CoreV1().ConfigMaps(f.ns).Patch(ctx, "work", "application/merge-patch+json", patch, metav1.PatchOptions{})
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond))))
		}
	}()

	leads := f.another(0)
	leads.waitReady()
	for n := range rounds * len(faults) {
		next := f.another(n + 1)
		next.waitReadyAs(false)
		o.awaits(leads.whose)
		fault := faults[n%len(faults)]
		fault.begin(leads)
		t.Logf("%s: another process writes %s later", fault.name, o.awaits(next.whose).Round(time.Millisecond))
		fault.then(leads)
		leads = next
	}
	o.awaits(leads.whose)
	stop()
	o.check()
}
