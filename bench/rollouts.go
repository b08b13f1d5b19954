package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// reviewRate is how many objects are created in a second while replicas are replaced.
	reviewRate = 200
	// forgottenIn is how long a Service needs to forget a pod; deploy/ has pods wait for so long before they end.
	forgottenIn = 3 * time.Second
)

// share asks one process, and then both, as many reviews.
func (r *replicas) share(leads, stands *replica) {
	at, err := url.Parse(r.webhookURL())
	r.check(err)
	ask := newAsker(r.bench, r.pool)
	var took, used [2]time.Duration
	rounds, each := r.size(6, 2), r.size(100, 10)
	for round := range rounds + 1 {
		for i, to := range [][]string{{leads.address}, {leads.address, stands.address}} {
			for n, address := range to {
				to[n] = "https://" + address + at.Path
			}
			began := time.Now()
			u := r.cpuOf(func() { ask.all(each, to...) }, processes(leads, stands)...)
			if round > 0 { // the first one makes the connections
				took[i], used[i] = took[i]+time.Since(began), used[i]+u
			}
		}
	}
	reviews := rounds * each * askers
	rate := func(took time.Duration) string { return perSecond(float64(reviews) / took.Seconds()) }
	r.add("reviews of one process, per second", rate(took[0]), "")
	r.addRow(row{
		what: "… of two, on two addresses", starling: rate(took[1]), ratio: times(took[0].Seconds() / took[1].Seconds()),
	})
	one, two := used[0]/time.Duration(reviews), used[1]/time.Duration(reviews)
	addBeside(r.bench, "… processor time of a review of two, beside one", micros, two, one, 0)
}

// rollouts replaces both processes again and again, as a Deployment does, while objects are created that are
// reviewed, each of which must be let in.
func (r *replicas) rollouts(leads, stands *replica, rounds int) (*replica, *replica) {
	old := []*replica{leads, stands}
	r.balancer.Lead(leads.address, stands.address)
	load, stop := context.WithCancel(r.ctx)
	defer stop()
	var failed []string
	began, asked, ended := time.Now(), 0, make(chan struct{})
	go func() {
		defer close(ended)
		asked, failed = r.create(load)
	}()
	for n := range rounds {
		for i, p := range old {
			next := r.start()
			r.balancer.Lead(next.address, old[1-i].address)
			r.pause(forgottenIn)
			p.stop()
			old[i] = next
		}
		r.say("rollout %d of %d", n+1, rounds)
	}
	lasted := time.Since(began)
	stop()
	<-ended
	r.addExact(fmt.Sprintf("%d rollouts of two in %s, %.0f reviews per second, reviews that failed",
		rounds, wholeSeconds(lasted), float64(asked)/lasted.Seconds()), len(failed), 0)
	if len(failed) > 0 {
		r.say("the first failure: %s", failed[0])
	}
	// The one that was replaced last stands by, unless the other one came later to the Lease.
	if !strings.Contains(old[0].page("/metrics"), "starling_leader 1") {
		old[0], old[1] = old[1], old[0]
	}
	return old[0], old[1]
}

// create creates objects until ctx ends, and says how many, and why some were not. Nothing is left of them.
func (r *replicas) create(ctx context.Context) (asked int, failed []string) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "reviewed-", Labels: map[string]string{"bench": "reviewed", "team": "web"},
	}}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var mu sync.Mutex
	var under sync.WaitGroup
	ticks := time.NewTicker(time.Second / reviewRate)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			under.Wait()
			return asked, failed
		case <-ticks.C:
		}
		under.Go(func() {
			// Not with ctx: each that was begun is waited for.
			_, err := r.configMaps(replicasNamespace).Create(context.WithoutCancel(ctx), cm, dry)
			mu.Lock()
			defer mu.Unlock()
			if asked++; err != nil {
				failed = append(failed, err.Error())
			}
		})
	}
}
