package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/e2e/balancer"
)

const replicasNamespace = "bench-replicas"

// replicasTree has a hook that writes an object at each change of another one, one that reads many objects, and
// one that answers reviews. It says whose tree it is.
func replicasTree(whose string) map[string]string {
	return map[string]string{
		"beat/module.star": fmt.Sprintf("module(enabled = True, grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], namespaces = [%q])])\n", replicasNamespace),
		"beat/hooks/beat.star": fmt.Sprintf(`def beat(ctx):
    k8s.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beat", "namespace": %q}, "data": {"by": %q, "work": ",".join(ctx.snapshots["work"])}})

hook(beat, on = [k8s.watch("v1", "ConfigMap", name = "work", namespaces = [%q], labels = {"bench": "work"}, filter = lambda o: o.data["text"])])
`, replicasNamespace, whose, replicasNamespace),
		"many/module.star": "module(enabled = True)\n",
		"many/hooks/many.star": fmt.Sprintf(`def look(ctx):
    values.set("count", len(ctx.snapshots["many"]))

hook(look, on = [k8s.watch("v1", "ConfigMap", name = "many", namespaces = [%q], labels = {"bench": "many"})])

def check(ctx):
    if not ctx.request.object.get("metadata.labels.team"):
        return deny("label team is missing")

hook(check, name = "check", on = [k8s.validate("v1", "ConfigMap", namespaces = [%q], labels = {"bench": "reviewed"}, failure_policy = "fail", timeout = "5s")])
`, replicasNamespace, replicasNamespace),
	}
}

// replicas are the processes of one instance, and what is done to them.
type replicas struct {
	*bench
	certs    string
	pool     *x509.CertPool
	balancer *balancer.Balancer
	count    int
	idle     atomic.Bool // there is no work for now

	mu    sync.Mutex
	wrote map[string]time.Time // when each process has first been seen to write
}

// replica is one of them.
type replica struct {
	*starling
	whose, address string
}

// measureReplicas measures how one process follows another, what two cost, and whether reviews fail meanwhile.
func measureReplicas(ctx context.Context, b *bench) error {
	r := &replicas{bench: b, certs: filepath.Join(b.dir, "replicas.certs"), wrote: map[string]time.Time{}}
	err := b.makeNamespaces(ctx, replicasNamespace)
	if err != nil {
		return err
	}
	if r.pool, err = makeCerts(r.certs); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if r.balancer, err = balancer.Start(); err != nil {
		return err
	}
	defer r.balancer.Close()
	done, err := r.work(ctx)
	if err != nil {
		return err
	}
	defer func() { stop(); <-done }()
	leads, err := r.follow(ctx, nil)
	if err != nil {
		return err
	}
	if leads, err = r.takeOvers(ctx, leads, "", b.least(10, 2), b.least(5, 1)); err != nil {
		return err
	}
	stands, err := r.start(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(r.rest(ctx, leads, stands), r.share(ctx, leads, stands)); err != nil {
		return err
	}
	if leads, stands, err = r.rollouts(ctx, leads, stands, b.least(10, 1)); err != nil {
		return err
	}
	if err := stands.stop(); err != nil {
		return err
	}
	objects := b.least(5000, 100)
	if err := r.objects(ctx, objects); err != nil {
		return err
	}
	if leads, err = r.takeOvers(ctx, leads, fmt.Sprintf(", with %d watched objects", objects), b.least(5, 1), 0); err != nil {
		return err
	}
	if stands, err = r.start(ctx); err != nil {
		return err
	}
	if err := r.rest(ctx, leads, stands); err != nil {
		return err
	}
	if err := errors.Join(stands.stop(), leads.stop()); err != nil {
		return err
	}
	return errors.Join(b.removeWebhook(ctx), b.removeNamespaces(ctx, replicasNamespace))
}

// least is n, or a few of them.
func (b *bench) least(n, few int) int {
	if b.quick {
		return few
	}
	return n
}

// work has there be something to do all the time, and notes who does it first. done is closed after ctx.
func (r *replicas) work(ctx context.Context) (done chan struct{}, err error) {
	maps := r.client.CoreV1().ConfigMaps(replicasNamespace)
	work := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "work", Labels: map[string]string{"bench": "work"}}, Data: map[string]string{"text": "0"}}
	if work, err = maps.Create(ctx, work, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	seen, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=beat", ResourceVersion: work.ResourceVersion, TimeoutSeconds: new(int64(3600))})
	if err != nil {
		return nil, err
	}
	done = make(chan struct{})
	go func() {
		for ev := range seen.ResultChan() {
			if cm, is := ev.Object.(*corev1.ConfigMap); is {
				r.mu.Lock()
				if by := cm.Data["by"]; r.wrote[by].IsZero() {
					r.wrote[by] = time.Now()
				}
				r.mu.Unlock()
			}
		}
	}()
	go func() {
		defer close(done)
		defer seen.Stop()
		for n := 1; pause(ctx, 100*time.Millisecond) == nil; n++ {
			if r.idle.Load() {
				continue
			}
			// One that fails is followed by the next.
			_, _ = maps.Patch(ctx, "work", types.MergePatchType, fmt.Appendf(nil, `{"data":{"text":"%d"}}`, n), metav1.PatchOptions{})
		}
	}()
	return done, nil
}

// start starts one more process, and waits until it can serve.
func (r *replicas) start(ctx context.Context) (*replica, error) {
	r.count++
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &replica{whose: fmt.Sprint("process-", r.count), address: address}
	p.starling, err = r.startProcess(ctx, "replicas", p.whose, replicasTree(p.whose),
		"--webhook-address", address, "--webhook-url", "https://"+r.balancer.Address(), "--webhook-cert-dir", r.certs)
	if err != nil {
		return nil, err
	}
	return p, wait(ctx, func() bool { return p.says("/readyz") })
}

// says whether the process answers a path with 200.
func (p *replica) says(path string) bool {
	resp, err := http.Get("http://" + p.listen + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// follow starts a process, has the one before it end by end, nil for none, and waits until the new one has written.
func (r *replicas) follow(ctx context.Context, end func() error) (*replica, error) {
	next, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	r.balancer.Lead(next.address)
	if end != nil {
		if err := pause(ctx, time.Second); err != nil {
			return nil, err
		}
		if err := end(); err != nil {
			return nil, err
		}
	}
	return next, wait(ctx, func() bool { return !r.firstWrite(next.whose).IsZero() })
}

func (r *replicas) firstWrite(whose string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrote[whose]
}

// takeOvers ends the process that leads again and again, and says how long it took until another one has written.
func (r *replicas) takeOvers(ctx context.Context, leads *replica, with string, stops, kills int) (*replica, error) {
	measure := func(signal syscall.Signal, rounds int) (took []time.Duration, err error) {
		for range rounds {
			last, began := leads, time.Time{}
			if leads, err = r.follow(ctx, func() error {
				began = time.Now()
				last.asked.Store(true)
				return last.cmd.Process.Signal(signal)
			}); err != nil {
				return nil, err
			}
			took = append(took, r.firstWrite(leads.whose).Sub(began))
			r.say("%s: %s", signal, seconds(took[len(took)-1]))
			<-last.ended
		}
		return took, nil
	}
	took, err := measure(syscall.SIGTERM, stops)
	if err != nil {
		return nil, err
	}
	p50, worst := percentile(took, 0.5), slices.Max(took)
	r.table.add(row{what: fmt.Sprintf("SIGTERM of the process that leads to the next write%s, p50 of %d (worst %s)", with, stops, seconds(worst)),
		starling: seconds(p50), aim: verdict("≤ 0.3 s", p50 <= 300*time.Millisecond)})
	if took, err = measure(syscall.SIGKILL, kills); err != nil || kills == 0 {
		return leads, err
	}
	worst = slices.Max(took)
	r.table.add(row{what: fmt.Sprintf("kill -9 to the next write%s, worst of %d", with, kills),
		starling: seconds(worst), aim: verdict("≤ 10 s", worst <= 10*time.Second)})
	return leads, nil
}

// rest measures what a process that stands by costs while there is nothing to do.
func (r *replicas) rest(ctx context.Context, leads, stands *replica) error {
	r.idle.Store(true)
	defer r.idle.Store(false)
	if err := r.settle(ctx); err != nil {
		return err
	}
	lasts := time.Duration(r.least(30, 2)) * time.Second
	before, err := stands.cpu()
	if err != nil {
		return err
	}
	if err := pause(ctx, lasts); err != nil {
		return err
	}
	after, err := stands.cpu()
	if err != nil {
		return err
	}
	one, err := leads.memory()
	if err != nil {
		return err
	}
	other, err := stands.memory()
	if err != nil {
		return err
	}
	used, ratio := (after-before).Seconds()/lasts.Seconds(), float64(other.now-other.file)/float64(one.now-one.file)
	r.table.add(row{what: fmt.Sprintf("a process that stands by, at rest for %.0f s, of a core", lasts.Seconds()), starling: percent(used),
		aim: verdict("≤ 0.10 %", used <= 0.001)})
	r.table.add(row{what: "… its resident memory without the program file, beside the one that leads", starling: mebibytes(other.now - other.file),
		bare: mebibytes(one.now - one.file), ratio: times(ratio), aim: verdict("≤ 1×", ratio <= 1)})
	return nil
}
