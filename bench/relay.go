package main

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-operator/starling/e2e/proxy"
)

// relay stands between a Starling and the API server, and notes each request.
type relay struct {
	b          *bench
	kubeconfig string
	proxy      *proxy.Proxy

	mu    sync.Mutex
	asked []string // method and URL
	last  time.Time
}

func (b *bench) startRelay() *relay {
	r := &relay{b: b}
	r.proxy, r.kubeconfig = proxy.New(b, b.kubeconfig, 0)
	r.plays(nil)
	return r
}

// plays has the relay serve objects itself; nil: none.
func (r *relay) plays(p *played) {
	// The Lease is renewed all the time, for no module.
	noted := proxy.Fault{Name: "noted", On: proxy.But(nil, proxy.Leases), Strike: r.note}
	if p == nil {
		r.proxy.Inject(noted)
		return
	}
	r.proxy.Inject(proxy.Fault{Name: "played", On: p.serves, Strike: p.serve}, noted)
}

func (r *relay) note(w http.ResponseWriter, req *http.Request, next http.Handler, _ *rand.Rand) {
	r.mu.Lock()
	r.asked, r.last = append(r.asked, req.Method+" "+req.URL.String()), time.Now()
	r.mu.Unlock()
	next.ServeHTTP(w, req)
}

// begin starts an instance that reaches the API server by the relay.
func (r *relay) begin(name string, tree map[string]string) *starling {
	defer r.b.through(r.kubeconfig)()
	return r.b.start(instance{name: name, tree: tree})
}

// start does the same, and waits until the instance is ready and quiet.
func (r *relay) start(name string, tree map[string]string) *starling {
	s := r.begin(name, tree)
	s.ready()
	r.quiet(s)
	return s
}

// quiet waits until a starling has neither asked the API server anything for a while nor
// done anything with a release.
func (r *relay) quiet(s *starling) {
	before := -1
	r.b.waitEvery(0, s.name+" is quiet", func() bool {
		r.b.pause(time.Second) // what was done last may not have begun
		now := s.counted(actionsMetric)
		defer func() { before = now }()
		return now == before && r.idle() >= time.Second
	})
}

// idle returns how long ago the last request came.
func (r *relay) idle() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.last)
}

// take returns the requests since it was last called.
func (r *relay) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := slices.Clone(r.asked)
	r.asked = nil
	return asked
}

// addRest adds the requests of an instance that has nothing to do but watch.
func (r *relay) addRest(what string) {
	r.take()
	lasts := r.b.lasts(60, 3)
	r.b.pause(lasts)
	asked := r.take()
	for _, request := range asked {
		r.b.say("at rest: %s", request)
	}
	r.b.addExact(what+" at rest for "+wholeSeconds(lasts)+", requests but those for the Lease", len(asked), 0)
}
