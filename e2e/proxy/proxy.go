// Package proxy stands between a client and an API server, and does to requests, answers and watches what
// networks, overloaded servers and old caches do to them. Where a fault strikes is drawn by lot, from a seed.
package proxy

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Fault is what becomes of some requests.
type Fault struct {
	// Name is what [Proxy.Told] calls it.
	Name string
	// On says which requests it is for; nil: all.
	On func(*http.Request) bool
	// Percent is how many of those it strikes; 0 and 100: each.
	Percent int
	// Strike deals with one of those.
	Strike Striker
}

// Proxy passes on what comes, but for the faults in force. It may be used by parallel requests.
type Proxy struct {
	next        http.Handler
	seed        uint64
	server      *httptest.Server
	certificate atomic.Pointer[tls.Certificate] // nil: the first one

	mu     sync.Mutex
	faults []Fault
	drawn  map[string]uint64 // how often lots were drawn for a fault and a kind of request
	struck map[string]int    // how often each fault has struck
	came   int               // how many requests there were
	codes  map[int]int       // how often the server has answered with a code
	under  map[int]underWay
	number int // of the last request
}

// New makes a proxy to the server of a kubeconfig file, and returns it with a kubeconfig file that goes by
// it: with the same token or certificate, so with the same rights. It ends with the test.
func New(t testing.TB, kubeconfig string, seed uint64) (*Proxy, string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	// A certificate of the client ends at the proxy; a token is in each request.
	user, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{seed: seed, drawn: map[string]uint64{}, struck: map[string]int{}, codes: map[int]int{}, under: map[int]underWay{}}
	quiet := log.New(io.Discard, "", 0)
	server := httptest.NewUnstartedServer(p)
	server.EnableHTTP2, server.Config.ErrorLog = true, quiet
	server.TLS = &tls.Config{GetConfigForClient: p.shown}
	server.StartTLS()
	p.server = server
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	t.Cleanup(func() { p.Cut(nil) })
	for _, c := range config.Clusters {
		target, err := url.Parse(c.Server)
		if err != nil {
			t.Fatal(err)
		}
		transport, err := rest.TransportFor(&rest.Config{Host: c.Server, TLSClientConfig: user.TLSClientConfig})
		if err != nil {
			t.Fatal(err)
		}
		p.next = &httputil.ReverseProxy{
			Transport: transport, FlushInterval: -1, ErrorLog: quiet,
			Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
			ModifyResponse: func(r *http.Response) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.codes[r.StatusCode]++
				return nil
			},
		}
		c.Server = server.URL
		c.CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return p, file
}

// Inject puts faults in force, in the place of those before; none: all passes. A request may meet several,
// the first one outside. Requests under way, watches among them, stay under the faults of before: see
// [Proxy.Cut].
func (p *Proxy) Inject(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = faults
}

// Cut ends those requests under way that on says, or all when it is nil, without an answer.
func (p *Proxy) Cut(on func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.under {
		if on == nil || on(u.request) {
			u.cancel()
		}
	}
}

// underWay is a request that has no whole answer yet.
type underWay struct {
	request *http.Request
	cancel  context.CancelFunc
}

// Requests is how many requests have come.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.came
}

// Struck is how often a fault has struck.
func (p *Proxy) Struck(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck[name]
}

// Answered is how often the server has answered with a code.
func (p *Proxy) Answered(code int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.codes[code]
}

// Told says how often each fault has struck.
func (p *Proxy) Told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := []string{fmt.Sprintf("%d requests", p.came)}
	for _, name := range slices.Sorted(maps.Keys(p.struck)) {
		told = append(told, fmt.Sprintf("%s %d", name, p.struck[name]))
	}
	return strings.Join(told, ", ")
}

// note counts a fault that a request has met in the midst of its answer.
func (p *Proxy) note(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.struck[name]++
}

// ServeHTTP implements [http.Handler].
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(context.WithValue(r.Context(), proxyKey{}, p))
	defer cancel()
	p.mu.Lock()
	p.came++
	p.number++
	number := p.number
	p.under[number] = underWay{r, cancel}
	h := p.next
	for _, fault := range slices.Backward(p.faults) {
		if fault.On != nil && !fault.On(r) {
			continue
		}
		dice := p.dice(fault, r)
		if fault.Percent > 0 && dice.IntN(100) >= fault.Percent {
			continue
		}
		p.struck[fault.Name]++
		next := h
		h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fault.Strike(w, r, next, dice) })
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.under, number)
	}()
	h.ServeHTTP(w, r.WithContext(ctx))
}

type proxyKey struct{}

// of is the proxy that a request came to.
func of(r *http.Request) *Proxy { return r.Context().Value(proxyKey{}).(*Proxy) }

var namespace = regexp.MustCompile(`/namespaces/[^/]+`)

// dice are those of one request: they depend on the seed, the fault, and how many such requests there were,
// and so neither on what other requests do meanwhile nor on the name of the namespace. Called with p.mu held.
func (p *Proxy) dice(fault Fault, r *http.Request) *rand.Rand {
	key := fmt.Sprint(fault.Name, " ", r.Method, " ", namespace.ReplaceAllString(r.URL.Path, ""), " ", Watches(r))
	p.drawn[key]++
	hash := fnv.New64a()
	fmt.Fprint(hash, key, " ", p.drawn[key])
	return rand.New(rand.NewPCG(p.seed, hash.Sum64()))
}

// Watches says that a request is a watch.
func Watches(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}

// Resumes says that a watch goes on where an earlier one has ended.
func Resumes(r *http.Request) bool {
	return Watches(r) && !Streams(r) && r.URL.Query().Get("resourceVersion") != ""
}

// Streams says that a watch begins with the objects that there are.
func Streams(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }

// Lists says that a request lists objects in pages, as lists for a watch do.
func Lists(r *http.Request) bool {
	return r.Method == http.MethodGet && !Watches(r) && r.URL.Query().Has("limit")
}

// Continues says that a request asks for a later page of a list.
func Continues(r *http.Request) bool { return Lists(r) && r.URL.Query().Has("continue") }

// Writes says that a request may change something.
func Writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// Leases says that a request is about a Lease.
func Leases(r *http.Request) bool { return strings.Contains(r.URL.Path, "/leases") }

// But is a selector of requests for which yes holds, or all when it is nil, and none of not.
func But(yes func(*http.Request) bool, not ...func(*http.Request) bool) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return (yes == nil || yes(r)) && !slices.ContainsFunc(not, func(no func(*http.Request) bool) bool { return no(r) })
	}
}
