// Package httpserver takes HTTP requests from outside for the hooks of http.receive: it
// finds the hook by the path, checks size, signature and rate, and answers what the
// hook replies once all that it wrote is written.
package httpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/httplimit"
)

const (
	// maxHeld bounds the bodies of all requests that are being read or answered, as far as
	// they have come. A path may have a quarter of it, a module and a client address half.
	maxHeld = 64 << 20
	// readGrace and readPace are how fast a client must send.
	readGrace = 3 * time.Second
	readPace  = 64 << 10
	// readWithin is how long a client may take for its request.
	readWithin = 15 * time.Second
	// AnswerWithin is how long a request waits for its hook.
	AnswerWithin = 60 * time.Second
	// tryAgain is what clients are told when a hook does not answer now.
	tryAgain = 10 * time.Second
)

// Incoming is a request that a hook shall answer.
type Incoming struct {
	// Hook is its id, "" when no hook of this process has the path: then the process that leads is asked.
	Hook    string
	Request *builtins.Request // nil without a hook
	// HTTP is the request as it came, and Body what was read of it.
	HTTP *http.Request
	Body []byte
	// token is a secret that the headers of HTTP hold, as it was checked.
	token string
	// sum is the header that holds the signature, where the hook has named one: that is no secret.
	sum string
}

// Options configures a [Server]. All fields are required.
type Options struct {
	// Answer has a hook answer a request, here or elsewhere. It returns when that is done, or
	// when no hook answers any more; then [Server.Stop] may be called.
	Answer func(ctx context.Context, in Incoming) (builtins.Response, error)
	// Moves says that hooks answer elsewhere, or soon here: all requests go to Answer.
	Moves func() bool
	// Stands says that another process leads, which may have another tree.
	Stands func() bool
	// Leads says whether this process leads, under a name.
	Leads func(name string) bool
	// Reader reads the Secrets that requests are signed with.
	Reader builtins.Reader
	// Namespace is the operator's: where the Secrets of modules without a namespace are.
	Namespace string
	// Observe counts an answer to a request at a path that a hook has.
	Observe func(module, hook string, code int)
	Log     zerolog.Logger
}

// Server answers requests between [Server.Start] and [Server.Stop].
type Server struct {
	o    Options
	held *httplimit.Room
	http *http.Server
	end  *httplimit.Ending
	busy sync.WaitGroup // what hooks are asked
	// strange is the route of requests that no hook of this process can answer; each has one of the slots.
	strange *route
	slots   chan struct{}

	mu     sync.Mutex
	routes map[string]*route
	// active are the hooks that answer now, by module.
	active map[string][]string
}

// route is a path that a hook has.
type route struct {
	module, hook, binding string
	decl                  *builtins.ReceiveBinding
	secret                *secret // nil: public
	limit                 *rate.Limiter
	taken                 *taken
	// refusals and troubles keep the log short.
	refusals, troubles rate.Sometimes
}

// New makes a server that knows no path.
func New(o Options) *Server {
	s := &Server{o: o, held: httplimit.NewRoom(maxHeld), strange: strange(), slots: make(chan struct{}, maxStrange),
		routes: map[string]*route{}, active: map[string][]string{}}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       readWithin,
		WriteTimeout:      readWithin + AnswerWithin + 10*time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          stdlog.New(io.Discard, "", 0), // what strangers do is no news
	}
	s.end = httplimit.Ends(s.http)
	return s
}

// Start serves on a listener.
func (s *Server) Start(ln net.Listener) {
	s.end.Serve(func() error { return s.http.Serve(ln) }, func(err error) {
		s.o.Log.Error().Err(err).Msg("http.receive: the server has stopped")
	})
}

// Drain takes no more requests once clients have closed their connections, and waits until those under way are
// answered, or ctx ends.
func (s *Server) Drain(ctx context.Context) { s.end.Drain(ctx) }

// Stop lets answers that are being written end, for a moment.
func (s *Server) Stop() {
	s.end.Stop()
	s.busy.Wait()
}

// Know tells which paths there are. Until their hooks answer, requests to them are told
// to come again. A path that was known keeps count of its requests.
func (s *Server) Know(g *generation.Generation) {
	routes := map[string]*route{}
	for m, h := range g.Hooks() {
		for i := range h.Bindings {
			if b := &h.Bindings[i]; b.Receive != nil {
				routes[b.Receive.Path] = s.route(m, h, b)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, r := range routes {
		old := s.routes[path]
		if old == nil || old.hook != r.hook {
			continue
		}
		r.taken = old.taken
		if old.decl.Rate == r.decl.Rate && old.decl.Burst == r.decl.Burst {
			r.limit = old.limit
		}
	}
	s.routes = routes
	maps.DeleteFunc(s.active, func(module string, _ []string) bool { return module != globalName && g.Modules[module] == nil })
}

// globalName is the module of global hooks.
const globalName = "global"

func (s *Server) route(m *generation.Module, h *generation.Hook, b *builtins.Binding) *route {
	r := &route{
		module: m.Name, hook: h.ID, binding: b.Name, decl: b.Receive, taken: &taken{},
		limit:    rate.NewLimiter(rate.Limit(b.Receive.Rate), b.Receive.Burst),
		refusals: rate.Sometimes{First: 1, Interval: time.Minute}, troubles: rate.Sometimes{First: 1, Interval: time.Minute},
	}
	if ref := b.Receive.Secret; ref != nil {
		ns := cmp.Or(ref.Namespace, m.Decl.Namespace)
		ns = cmp.Or(ns, s.o.Namespace)
		r.secret = &secret{reader: s.o.Reader, key: ref.Key,
			ref: effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: ns, Name: ref.Name}}
	}
	return r
}

// Serve tells which hooks of a module answer from now on.
func (s *Server) Serve(module *generation.Module, hooks []*generation.Hook) {
	ids := make([]string, 0, len(hooks))
	for _, h := range hooks {
		ids = append(ids, h.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[module.Name] = ids
}

// find returns the route of a path, nil when there is none, and whether its hook
// answers now.
func (s *Server) find(path string) (*route, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.routes[path]
	return r, r != nil && slices.Contains(s.active[r.module], r.hook)
}

// refusal is an answer without a run.
type refusal struct {
	code  int
	text  string
	after time.Duration // Retry-After; 0: none
}

func (r *refusal) Error() string { return r.text }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	to, ready := s.find(r.URL.Path)
	if to == nil {
		to = s.strange
	}
	var code int
	reply, err := s.handle(w, r, to, ready)
	switch {
	case err != nil:
		why := s.refusalOf(to, err)
		code = why.code
		if r.Header.Get(forwardedHeader) != "" {
			w.Header().Set(forwardedHeader, saysOf(err))
		}
		refuse(w, why)
	case reply == nil:
		code = http.StatusOK
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(code)
	default:
		code = reply.Status
		if reply.ContentType != "" {
			w.Header().Set("Content-Type", reply.ContentType)
		}
		w.WriteHeader(code)
		_, _ = w.Write(reply.Body) // a client that has gone needs no answer
	}
	if to != s.strange {
		s.o.Observe(to.module, to.hook, code)
	}
}

func refuse(w http.ResponseWriter, r *refusal) {
	if r.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((r.after+time.Second-1)/time.Second)))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(r.code)
	_, _ = io.WriteString(w, r.text+"\n")
}

// handle checks a request and has the hook answer it.
func (s *Server) handle(w http.ResponseWriter, r *http.Request, to *route, ready bool) (*builtins.Reply, error) {
	if name := r.Header.Get(forwardedHeader); name != "" && !s.o.Leads(name) {
		return nil, ErrAway
	}
	if to == s.strange {
		return s.handOn(w, r)
	}
	if !ready && !s.o.Moves() {
		return nil, &refusal{http.StatusServiceUnavailable, "this path is not served now, try again later", tryAgain}
	}
	if !slices.Contains(to.decl.Methods, r.Method) {
		w.Header().Set("Allow", strings.Join(to.decl.Methods, ", "))
		return nil, &refusal{code: http.StatusMethodNotAllowed, text: "another method is needed"}
	}
	proof, err := s.precheck(r, to)
	if err != nil {
		return nil, err
	}
	shares := []httplimit.Share{{Of: "path " + to.decl.Path, Most: maxHeld / 4},
		{Of: "module " + to.module, Most: maxHeld / 2}, {Of: "client " + httplimit.Remote(r), Most: maxHeld / 2}}
	if to.secret == nil { // anybody can fill these, and senders with a secret need the rest
		shares = append(shares, httplimit.Share{Of: "public paths of " + to.module, Most: maxHeld / 4})
	}
	hold := s.held.Hold(shares...)
	body, err := s.read(w, r, to, hold)
	var mark *request
	if err == nil {
		mark, err = s.check(r, to, proof, body)
	}
	// After the signature: those that have none cannot use up what others may send.
	if err == nil && !to.limit.Allow() {
		err = &refusal{http.StatusTooManyRequests, "too many requests, try again later", time.Second}
	}
	if err != nil {
		to.taken.end(mark, false)
		hold.Release()
		return nil, err
	}
	return s.answer(Incoming{Hook: to.hook, Request: Received(r, body).Request(to.binding), HTTP: r, Body: body, token: proof.token, sum: to.decl.Header}, func(ok bool) {
		to.taken.end(mark, ok)
		hold.Release()
	})
}

// answer waits for the hook, but not longer than the client, or than AnswerWithin. The
// request stays in line then, and counts until it has been worked on: then done is called.
func (s *Server) answer(in Incoming, done func(ok bool)) (reply *builtins.Reply, err error) {
	type answer struct {
		reply *builtins.Reply
		err   error
	}
	answered := make(chan answer, 1)
	s.busy.Go(func() {
		taken := false
		end := sync.OnceFunc(func() { done(taken) })
		defer end()
		response, err := s.o.Answer(context.WithoutCancel(in.HTTP.Context()), in)
		// A sender tries again what is answered so.
		taken = err == nil && (response.Reply == nil || response.Reply.Status < 500 && response.Reply.Status != http.StatusTooManyRequests)
		end() // before the sender hears of it, who may try again at once
		answered <- answer{response.Reply, err}
	})
	late := time.NewTimer(AnswerWithin)
	defer late.Stop()
	select {
	case a := <-answered:
		return a.reply, a.err
	case <-in.HTTP.Context().Done():
		return nil, in.HTTP.Context().Err()
	case <-late.C:
		return nil, context.DeadlineExceeded
	}
}

// refusalOf says what a client is told of an error: nothing of its cause.
func (s *Server) refusalOf(to *route, err error) *refusal {
	var refused *refusal
	var failed *builtins.FailError
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, ErrNoPath):
		return &refusal{code: http.StatusNotFound, text: ErrNoPath.Error()}
	case errors.Is(err, httplimit.ErrFull):
		return &refusal{http.StatusServiceUnavailable, "too many requests at once, try again later", time.Second}
	case errors.Is(err, httplimit.ErrTooLarge):
		return &refusal{code: http.StatusRequestEntityTooLarge, text: fmt.Sprintf("the body is larger than %d bytes", to.decl.MaxBytes)}
	case errors.Is(err, httplimit.ErrTooSlow):
		return &refusal{code: http.StatusRequestTimeout, text: "the request comes in too slowly"}
	case errors.Is(err, httplimit.ErrCut):
		return &refusal{code: http.StatusBadRequest, text: "the request ends too early"}
	case errors.As(err, &failed) && failed.RetryAfter > 0:
		return &refusal{http.StatusServiceUnavailable, "try again later", failed.RetryAfter}
	case errors.Is(err, engine.ErrBusy):
		return &refusal{http.StatusServiceUnavailable, "too many requests wait, try again later", time.Second}
	case errors.Is(err, ErrAway):
		to.troubles.Do(func() {
			path := cmp.Or(to.decl.Path, "a path that no hook of this process has")
			s.o.Log.Warn().Str("module", to.module).Str("hook", to.hook).Err(err).Msg("a request to " + path + " is answered nowhere, and refused")
		})
		return &refusal{http.StatusServiceUnavailable, "there is no answer now, try again later", time.Second}
	case errors.Is(err, engine.ErrNotReady), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &refusal{http.StatusServiceUnavailable, "there is no answer now, try again later", tryAgain}
	}
	return &refusal{code: http.StatusInternalServerError, text: "the hook failed"}
}

// hiddenHeaders are what a hook does not see: secrets, and what net/http takes out of a request.
var hiddenHeaders = append([]string{forwardedHeader, tokenHeader, "Host", "Transfer-Encoding", "Trailer"}, secretHeaders[:]...)

// Received is the request as the hook sees it.
func Received(r *http.Request, body []byte) *builtins.Received {
	out := &builtins.Received{Method: r.Method, Path: r.URL.Path, Query: map[string]string{}, Headers: map[string]string{}, Body: string(body)}
	for name, values := range r.URL.Query() {
		out.Query[name] = values[0]
	}
	for name, values := range r.Header {
		if !slices.Contains(hiddenHeaders, name) {
			out.Headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return out
}
