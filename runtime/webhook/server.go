package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/httplimit"
	"github.com/starling-operator/starling/runtime/tlsfiles"
)

const (
	// maxReview bounds the body of an admission request: an object and what it was
	// before, of 3 MiB each at most, and what is said about them.
	maxReview = 8 << 20
	// maxConversion bounds the body of a conversion request: a whole page of a list comes at once.
	maxConversion = 64 << 20
	// maxParallel is how many requests are worked on at once: of one client address three quarters, of one module a
	// quarter, half of that of one address. The API server has one address, and each Pod that is made may ask one hook.
	maxParallel = 128
	// smallBody is what most reviews are smaller than. Bodies have room for themselves up to here, and past it in the room
	// for large reviews or for conversions: so neither keeps small ones from being read. One client address may have half
	// of a room, one module too, one address of one module a quarter: none takes all of a module's.
	smallBody       = 1 << 20
	smallRoom       = 16 << 20
	reviewRoom      = 32 << 20
	conversionsRoom = 80 << 20
	// readGrace and readPace are how fast a client must send.
	readGrace = 3 * time.Second
	readPace  = 1 << 20
	// defaultWait is how long the API server waits unless it says otherwise; it never waits longer than maxWait.
	defaultWait = 10 * time.Second
	maxWait     = 30 * time.Second
	// clientsFlag names the file of authorities of clients in errors.
	clientsFlag = "--webhook-client-ca"
)

// Answer has a hook, by its id, answer a request.
type Answer func(ctx context.Context, hook string, r *builtins.Request) (builtins.Response, error)

// Observation is one request that was answered.
type Observation struct {
	Module, Hook string
	// Result is "allowed", "denied", "changed", "converted" or "error".
	Result string
	Took   time.Duration
}

// route is what a path of the server leads to.
type route struct {
	module, hook, binding string
	// modules: it leads to no hook, but to the check of Module objects.
	modules bool
	convert bool
	mutate  bool
	// leader is where it is answered; "": here.
	leader string
}

// served is a certificate that a server shows.
type served struct{ cert *tls.Certificate }

func (s *served) same(o *served) bool {
	return s != nil && o != nil && bytes.Equal(s.cert.Certificate[0], o.cert.Certificate[0])
}

// server answers the API server over TLS.
type server struct {
	// own is whose objects no hook reviews.
	own    effect.Instance
	others func(effect.Ref) bool // what other instances go by: no hook changes it
	answer Answer
	// checkModule is nil where there are no Module objects.
	checkModule CheckModule
	observe     func(Observation)
	log         zerolog.Logger

	routes atomic.Pointer[map[string]route]
	cert   atomic.Pointer[served]
	// shown is closed with the first certificate. waiting clients have come before, which lacks tells of.
	shown           chan struct{}
	first           sync.Once
	waiting         atomic.Int32
	lacks           func()
	patience, grace time.Duration // of those clients; readGrace but in tests

	// small, reviews and conversions are the rooms for bodies. Only what is read has one of the slots.
	small, reviews, conversions, slots *httplimit.Room
	// clients are the authorities of which clients must show a certificate; nil: anybody may ask.
	clients *tlsfiles.Authorities
	// forwarder asks the process that leads; nil: nobody is asked.
	forwarder *forwarder
	http      *http.Server
	end       *httplimit.Ending
	address   atomic.Value // where it listens, a string
}

func newServer(own effect.Instance, others func(effect.Ref) bool, answer Answer, observe func(Observation), log zerolog.Logger) *server {
	s := &server{own: own, others: others, answer: answer, observe: observe, log: log,
		small: httplimit.NewRoom(smallRoom), reviews: httplimit.NewRoom(reviewRoom), conversions: httplimit.NewRoom(conversionsRoom),
		slots: httplimit.NewRoom(maxParallel), shown: make(chan struct{}),
		lacks: func() {}, patience: certificateWithin, grace: readGrace}
	s.routes.Store(&map[string]route{})
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       maxWait,
		WriteTimeout:      2 * maxWait,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		// TLS errors of clients are not logged: the API server tells of those that it has.
		ErrorLog: stdlog.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: s.certificate,
		},
	}
	s.end = httplimit.Ends(s.http)
	return s
}

// start serves on a listener until stop.
func (s *server) start(ln net.Listener) {
	s.address.Store(ln.Addr().String())
	ln = httplimit.Listener(ln, httplimit.MostConnections)
	s.end.Serve(func() error { return s.http.ServeTLS(ln, "", "") }, func(err error) {
		s.log.Error().Err(err).Msg("webhooks: the server has stopped")
	})
}

// ServeHTTP answers one request. A failure is an error of HTTP: the API server then does what the failure policy says.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	to, known := (*s.routes.Load())[r.URL.Path]
	if !known {
		to, known = s.elsewhere(r)
	}
	if !known && !strings.HasPrefix(r.URL.Path, "/convert/") {
		http.Error(w, "starling: no hook answers here; it may be gone, or not run yet", http.StatusNotFound)
		return
	}
	to.convert = to.convert || !known // a definition still points here
	if r.Method != http.MethodPost {
		http.Error(w, "starling: the API server asks by POST", http.StatusMethodNotAllowed)
		return
	}
	if s.clients != nil && !to.convert && !tlsfiles.Known(r.TLS) {
		http.Error(w, "starling: the client shows no certificate of "+clientsFlag, http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), waits(r, to.convert))
	defer cancel()
	result, body, err := s.handle(ctx, to, w, r)
	if err != nil {
		result = "error"
	}
	if body == nil {
		code := http.StatusInternalServerError
		if bad, ok := errors.AsType[*badRequest](err); ok {
			code = bad.code
		}
		http.Error(w, "starling: "+err.Error(), code)
	} else {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // who hung up needs no answer
	}
	if known && to.leader == "" {
		s.observe(Observation{Module: to.module, Hook: to.hook, Result: result, Took: time.Since(began)})
	}
}

// waits is how long the API server waits for the answer. It does not say so for conversions, and waits without end.
func waits(r *http.Request, convert bool) time.Duration {
	switch d, err := time.ParseDuration(r.URL.Query().Get("timeout")); {
	case err == nil && d > 0:
		return min(d, maxWait)
	case convert:
		return maxWait
	}
	return defaultWait
}

// badRequest is an error of the client.
type badRequest struct {
	code int
	msg  string
}

func (e *badRequest) Error() string { return e.msg }

func badf(code int, format string, args ...any) error {
	return &badRequest{code, fmt.Sprintf(format, args...)}
}

// handle reads the request, has it answered and returns the body of the answer.
func (s *server) handle(ctx context.Context, to route, w http.ResponseWriter, r *http.Request) (result string, body []byte, err error) {
	data, release, err := s.read(ctx, to, w, r)
	defer release()
	if err != nil {
		return "", nil, err
	}
	slot := s.slots.Hold(shares(r, maxParallel*3/4, maxParallel/4)...)
	defer slot.Release()
	if slot.Take(ctx, 1) != nil {
		return "", nil, badf(http.StatusTooManyRequests, "too many requests at once")
	}
	switch {
	case to.leader != "":
		body, err = s.forward(ctx, to, r, data)
		return "", body, err
	case to.convert:
		result, body, err = s.convert(ctx, to, moduleOf(r), data)
	default:
		result, body, err = s.review(ctx, to, data)
	}
	if err != nil {
		result = "error" // here, though the one that leads may have an answer
	}
	body, err = s.tell(ctx, to, r, data, body, err)
	return result, body, err
}

// shares are those of a client, of a module, and of both.
func shares(r *http.Request, client, module int64) []httplimit.Share {
	from, to := httplimit.Remote(r), moduleOf(r)
	return []httplimit.Share{{Of: from, Most: client}, {Of: to, Most: module}, {Of: from + to, Most: module / 2}}
}

// moduleOf is the module that a request is for: "/validate/web/…" is for one, with a slash before its name, which no
// address has.
func moduleOf(r *http.Request) string {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	module, _, _ := strings.Cut(path, "/")
	return "/" + module
}

// read reads the body. release must be called when the body is no longer used: it gives
// back the room that was taken for it.
func (s *server) read(ctx context.Context, to route, w http.ResponseWriter, r *http.Request) (body []byte, release func(), err error) {
	limit, room, bytes := int64(maxReview), s.reviews, int64(reviewRoom)
	if to.convert {
		limit, room, bytes = maxConversion, s.conversions, conversionsRoom
	}
	small, large := s.small.Hold(shares(r, smallRoom/2, smallRoom/2)...), room.Hold(shares(r, bytes/2, bytes/2)...)
	release = func() { small.Release(); large.Release() }
	var has int64
	body, err = httplimit.Body(w, r, httplimit.BodyOptions{
		Limit: limit, Grace: s.grace, PerSecond: readPace, Within: maxWait,
		Take: func(more int64) error {
			switch has += more; {
			case has <= smallBody:
				return small.Try(more)
			case has-more <= smallBody: // the whole at once: two halves would wait for each other
				whole := limit
				if r.ContentLength >= 0 {
					whole = r.ContentLength
				}
				return large.Take(ctx, whole)
			}
			return nil
		},
	})
	switch {
	case errors.Is(err, httplimit.ErrFull):
		err = badf(http.StatusTooManyRequests, "too many requests at once: there is no room for the body")
	case errors.Is(err, httplimit.ErrTooLarge):
		err = badf(http.StatusRequestEntityTooLarge, "the request is larger than %d MiB", limit>>20)
	case errors.Is(err, httplimit.ErrTooSlow):
		err = badf(http.StatusRequestTimeout, "the request comes in too slowly")
	case err != nil:
		err = badf(http.StatusBadRequest, "the request cannot be read to its end")
	}
	return body, release, err
}

// require asks clients for a certificate; whether one is there at all is seen with the path.
func (s *server) require(clients *tlsfiles.Authorities) {
	s.clients = clients
	s.http.TLSConfig = clients.Ask(s.http.TLSConfig, "h2", "http/1.1")
}

// setRoutes says what is answered from now on.
func (s *server) setRoutes(routes map[string]route) { s.routes.Store(&routes) }

// ends is when the certificate ends.
func (s *served) ends() time.Time { return s.cert.Leaf.NotAfter }
