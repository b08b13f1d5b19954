package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
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
func (r *replicas) share(ctx context.Context, leads, stands *replica) error {
	to, err := r.guardURL(ctx)
	if err != nil {
		return err
	}
	at, err := url.Parse(to.url)
	if err != nil {
		return err
	}
	body, err := podReview()
	if err != nil {
		return err
	}
	clients := make([]*http.Client, askers)
	for i := range clients {
		clients[i] = &http.Client{Timeout: patience, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: r.pool, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 1}}
	}
	ask := func(n int, each ...*replica) (took, used time.Duration, err error) {
		var before, after time.Duration
		for _, p := range []*replica{leads, stands} {
			t, err := p.cpu()
			if err != nil {
				return 0, 0, err
			}
			before += t
		}
		began := time.Now()
		err = parallel(ctx, askers, askers, func(i int) error {
			_, err := askAll(ctx, clients[i:i+1], "https://"+each[i%len(each)].address+at.Path, body, n)
			return err
		})
		took = time.Since(began)
		for _, p := range []*replica{leads, stands} {
			t, err := p.cpu()
			if err != nil {
				return 0, 0, err
			}
			after += t
		}
		return took, after - before, err
	}
	var took, used [2]time.Duration
	rounds, each := r.least(6, 2), r.least(100, 10)
	for round := range rounds + 1 {
		for i, to := range [][]*replica{{leads}, {leads, stands}} {
			t, u, err := ask(each, to...)
			if err != nil {
				return err
			}
			if round > 0 { // the first one makes the connections
				took[i], used[i] = took[i]+t, used[i]+u
			}
		}
	}
	reviews := rounds * each * askers
	for i, what := range []string{"reviews of one process, per second", "… of two, on two addresses"} {
		out := row{what: what, starling: perSecond(float64(reviews) / took[i].Seconds())}
		if i == 1 {
			out.ratio = times(took[0].Seconds() / took[1].Seconds())
		}
		r.table.add(out)
	}
	one, two := used[0]/time.Duration(reviews), used[1]/time.Duration(reviews)
	r.table.add(row{what: "… processor time of a review of two, beside one", starling: micros(two), bare: micros(one), ratio: times(float64(two) / float64(one))})
	return nil
}

// rollouts replaces both processes again and again, as a Deployment does, while objects are created that are
// reviewed, each of which must be let in.
func (r *replicas) rollouts(ctx context.Context, leads, stands *replica, rounds int) (*replica, *replica, error) {
	old := []*replica{leads, stands}
	r.balancer.Lead(leads.address, stands.address)
	load, stop := context.WithCancel(ctx)
	defer stop()
	var failed []string
	began, asked, ended := time.Now(), 0, make(chan struct{})
	go func() {
		defer close(ended)
		asked, failed = r.create(load)
	}()
	for n := range rounds {
		for i, p := range old {
			next, err := r.start(ctx)
			if err != nil {
				return nil, nil, err
			}
			r.balancer.Lead(next.address, old[1-i].address)
			if err := pause(ctx, forgottenIn); err != nil {
				return nil, nil, err
			}
			if err := p.stop(); err != nil {
				return nil, nil, err
			}
			old[i] = next
		}
		r.say("rollout %d of %d", n+1, rounds)
	}
	lasted := time.Since(began)
	stop()
	<-ended
	what := fmt.Sprintf("%d rollouts of two in %.0f s, %.0f reviews per second, reviews that failed", rounds, lasted.Seconds(), float64(asked)/lasted.Seconds())
	r.table.add(row{what: what, starling: fmt.Sprint(len(failed)), aim: verdict("0", len(failed) == 0)})
	if len(failed) > 0 {
		r.say("the first failure: %s", failed[0])
	}
	// The one that was replaced last stands by, unless the other one came later to the Lease.
	if !old[0].leads() {
		old[0], old[1] = old[1], old[0]
	}
	return old[0], old[1], nil
}

// leads says whether the process leads, by its metrics.
func (p *replica) leads() bool {
	resp, err := http.Get("http://" + p.listen + "/metrics")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var text strings.Builder
	_ = resp.Write(&text) // one that is cut says no
	return strings.Contains(text.String(), "starling_leader 1")
}

// create creates objects until ctx ends, and says how many, and why some were not. Nothing is left of them.
func (r *replicas) create(ctx context.Context) (asked int, failed []string) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "reviewed-", Labels: map[string]string{"bench": "reviewed", "team": "web"}}}
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
			_, err := r.client.CoreV1().ConfigMaps(replicasNamespace).Create(context.WithoutCancel(ctx), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			mu.Lock()
			defer mu.Unlock()
			if asked++; err != nil {
				failed = append(failed, err.Error())
			}
		})
	}
}

// objects makes many that a hook watches.
func (r *replicas) objects(ctx context.Context, n int) error {
	text := strings.Repeat("x", 1024)
	return parallel(ctx, 20, n, func(i int) error {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("many-", i), Labels: map[string]string{"bench": "many"}}, Data: map[string]string{"text": text}}
		_, err := r.client.CoreV1().ConfigMaps(replicasNamespace).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
}
