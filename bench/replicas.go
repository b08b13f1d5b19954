package main

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/starling-operator/starling/e2e/balancer"
	"github.com/starling-operator/starling/e2e/cluster"
)

const replicasNamespace = "bench-replicas"

// replicasTree has a hook that writes an object at each change of another one, one that reads many objects, and
// one that answers reviews. It says whose tree it is.
func replicasTree(whose string) map[string]string {
	return map[string]string{
		"beat/module.star":     moduleWith(mayApply(replicasNamespace)),
		"beat/hooks/beat.star": text("beat.star", "PROCESS", whose),
		"many/module.star":     plainModule,
		"many/hooks/many.star": text("many.star"),
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
	wrote    *witness    // by whom an object was first seen to be written
}

// replica is one of them.
type replica struct {
	*starling
	whose, address string
}

// replicas measures how one process follows another, what two cost, and whether reviews fail meanwhile.
func (b *bench) replicas() {
	if b.needsLinux("a process that stands by") {
		return
	}
	r := &replicas{bench: b}
	b.namespaces(replicasNamespace)
	b.Cleanup(b.removeWebhooks)
	r.certs, r.pool = b.makeCerts("replicas.certs")
	var err error
	r.balancer, err = balancer.Start()
	b.check(err)
	b.Cleanup(r.balancer.Close)
	r.work()
	leads := r.follow(nil)
	leads = r.takeOvers(leads, "", b.size(10, 2), b.size(5, 1))
	stands := r.start()
	r.rest(leads, stands)
	r.share(leads, stands)
	leads, stands = r.rollouts(leads, stands, b.size(10, 1))
	stands.stop()
	objects := b.size(5000, 100)
	r.each(20, objects, func(i int) error {
		data := map[string]string{"text": strings.Repeat("x", 1024)}
		return b.createConfigMap(replicasNamespace, fmt.Sprint("many-", i), "bench", "many", data)
	})
	leads = r.takeOvers(leads, fmt.Sprintf(", with %d watched objects", objects), b.size(5, 1), 0)
	r.rest(leads, r.start())
}

// work has there be something to do all the time, and notes who does it first.
func (r *replicas) work() {
	r.check(r.createConfigMap(replicasNamespace, "work", "bench", "work", map[string]string{"text": "0"}))
	r.wrote = observe(r.bench, r.configMaps(replicasNamespace), "", func(cm *corev1.ConfigMap) []string {
		if cm.Name != "beat" {
			return nil
		}
		return []string{cm.Data["by"]}
	})
	over, done := make(chan struct{}), make(chan struct{})
	r.Cleanup(func() { close(over); <-done })
	go func() {
		defer close(done)
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for n := 1; ; n++ {
			select {
			case <-over:
				return
			case <-ticks.C:
			}
			if !r.idle.Load() {
				// One that fails is followed by the next.
				_ = r.patchConfigMap(replicasNamespace, "work", `{"data":{"text":"%d"}}`, n)
			}
		}
	}()
}

// start starts one more process, and waits until it can serve.
func (r *replicas) start() *replica {
	r.count++
	p := &replica{whose: fmt.Sprint("process-", r.count), address: r.freeAddress()}
	p.starling = r.bench.start(instance{name: "replicas", folder: p.whose, tree: replicasTree(p.whose), args: []string{
		"--webhook-address", p.address, "--webhook-url", "https://" + r.balancer.Address(), "--webhook-cert-dir", r.certs,
	}})
	r.wait("a process can serve", func() bool { return p.page("/readyz") != "" })
	return p
}

// follow starts a process, has the one before it end by end, nil for none, and waits until the new one has written.
func (r *replicas) follow(end func()) *replica {
	next := r.start()
	r.balancer.Lead(next.address)
	if end != nil {
		r.pause(time.Second)
		end()
	}
	r.wrote.all(next.whose)
	return next
}

// takeOvers ends the process that leads again and again, and says how long it took until another one has written.
func (r *replicas) takeOvers(leads *replica, with string, stops, kills int) *replica {
	measure := func(signal syscall.Signal, rounds int) (took []time.Duration) {
		for range rounds {
			last, began := leads.Process(), time.Time{}
			leads = r.follow(func() {
				began = time.Now()
				last.Signal(signal)
			})
			took = append(took, r.wrote.at(leads.whose).Sub(began))
			r.say("%s: %s", signal, seconds(took[len(took)-1]))
			<-last.Done()
		}
		return took
	}
	took := measure(syscall.SIGTERM, stops)
	p50, worst := middle(took), slices.Max(took)
	what := "SIGTERM of the process that leads to the next write%s, p50 of %d (worst %s)"
	r.add(fmt.Sprintf(what, with, stops, seconds(worst)), seconds(p50), verdict("≤ 0.3 s", p50 <= 300*time.Millisecond))
	if kills == 0 {
		return leads
	}
	worst = slices.Max(measure(syscall.SIGKILL, kills))
	r.add(fmt.Sprintf("kill -9 to the next write%s, worst of %d", with, kills), seconds(worst),
		verdict("≤ 10 s", worst <= 10*time.Second))
	return leads
}

// rest measures what a process that stands by costs while there is nothing to do.
func (r *replicas) rest(leads, stands *replica) {
	r.idle.Store(true)
	defer r.idle.Store(false)
	r.settle()
	lasts := r.lasts(30, 2)
	used := r.cpuOf(func() { r.pause(lasts) }, stands.Process()).Seconds() / lasts.Seconds()
	one, other := r.memory(leads.PID()).Own(), r.memory(stands.PID()).Own()
	r.add(fmt.Sprintf("a process that stands by, at rest for %s, of a core", wholeSeconds(lasts)), percent(used),
		verdict("≤ 0.10 %", used <= 0.001))
	addBeside(r.bench, "… its resident memory without the program file, beside the one that leads",
		mebibytes, other, one, 1)
}

// processes are those of replicas.
func processes(all ...*replica) (out []*cluster.Process) {
	for _, p := range all {
		out = append(out, p.Process())
	}
	return out
}
