package record

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
	"github.com/starling-operator/starling/runtime/object"
)

// Trace is one run: what it was given, what it has asked the world, and what came of
// it. It holds pointers to data that nobody changes, and is itself not changed any more
// once it is handed over, but by the queue that it waits in.
type Trace struct {
	// Run is the engine's number of the run.
	Run uint64
	// Generation is the number of the module tree.
	Generation int
	// Took is how long the run took.
	Took time.Duration

	request hook.Request
	result  hook.Result

	mu     sync.Mutex
	reads  []reading
	random []byte
	logs   []Line
	// composed are the numbers of changes with which the values were asked for, and
	// ops the longest list of these. Each list begins with the one before it.
	composed []int
	ops      []effect.ValueOp
	// weight is how much memory the run holds on to that may be nobody else's, in KiB.
	weight int
	// refused is why what the run asked for was not committed, or "".
	refused string
}

// reading is one thing that a run has asked, with its answer.
type reading struct {
	question
	answer any
	err    error
}

// Start begins the trace of a run: from now on the request goes by way of it. Nil
// takes: the request stays as it is, and there is no trace.
func Start(take func(*Trace), run uint64, generation int, r *hook.Request) *Trace {
	if take == nil {
		return nil
	}
	t := &Trace{Run: run, Generation: generation, request: *r}
	asked := (*tap)(t)
	if r.Reader != nil {
		r.Reader = asked
	}
	if r.HTTP != nil {
		r.HTTP = asked
	}
	if r.Answerer != nil {
		r.Answerer = asked
	}
	if r.Env != nil {
		r.Env = t.env
	}
	r.Random, r.Log = asked, asked
	if r.Compose != nil {
		r.Compose = t.compose
	}
	if r.Scope != nil {
		r.Scope = t.scope
	}
	if r.Rows != nil {
		r.Rows = t.rows
	}
	return t
}

// End ends a trace and hands it over. A nil trace does nothing.
func (t *Trace) End(take func(*Trace), result hook.Result, took time.Duration) {
	if t == nil {
		return
	}
	t.result, t.Took = result, took
	t.weight += (weighRequest(&t.request) + result.Size) >> 10
	take(t)
}

func (t *Trace) note(q question, answer any, err error, weight int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads = append(t.reads, reading{q, answer, err})
	t.weight += weight
}

// given is what the run was given, but for what a record makes of it.
func (t *Trace) given() *given {
	g := &given{request: t.request, reads: t.reads}
	if t.request.Secrets != nil {
		g.known = append(g.known, t.request.Secrets()...) // nil for none
	}
	for _, w := range t.result.Wanted { // what goes into Secrets is hidden, written or not
		if w.Object["kind"] == "Secret" {
			g.hidden = append(g.hidden, w.Object)
		}
	}
	return g
}

// failed says that the run failed.
func (t *Trace) failed() bool { return t.result.Err != nil || t.refused != "" }

func (t *Trace) compose(own []effect.ValueOp) (map[string]any, error) {
	t.mu.Lock()
	t.composed = append(t.composed, len(own))
	if len(own) >= len(t.ops) {
		t.ops = own
	}
	t.mu.Unlock()
	return t.request.Compose(own)
}

func (t *Trace) scope(apiVersion, kind string) (bool, error) {
	namespaced, err := t.request.Scope(apiVersion, kind)
	t.note(scopeQuestion(apiVersion, kind), namespaced, err, 0)
	return namespaced, err
}

func (t *Trace) env(name string) (string, error) {
	text, err := t.request.Env(name)
	t.note(envQuestion(name), text, err, 1+len(text)>>10)
	return text, err
}

// rows are those of a watch, which holds them anyway.
func (t *Trace) rows(l effect.Lookup) ([]starlark.Value, error) {
	found, err := t.request.Rows(l)
	t.note(rowsQuestion(l), found, err, 1+len(found)>>6)
	return found, err
}

// tap is the trace itself, as what a run asks: a run costs no more memory than that.
type tap Trace

// Get implements [builtins.Reader].
func (r *tap) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	m, err := r.request.Reader.Get(ctx, ref)
	(*Trace)(r).note(getQuestion(ref), m, err, 1+object.PlainSize(m)>>10)
	return m, err
}

// List implements [builtins.Reader].
func (r *tap) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	found, err := r.request.Reader.List(ctx, apiVersion, kind, namespaces, labels, fields)
	size := 0
	for _, m := range found {
		size += object.PlainSize(m)
	}
	(*Trace)(r).note(listQuestion(apiVersion, kind, namespaces, labels, fields), found, err, 1+size>>10)
	return found, err
}

// Gather implements [builtins.Fetcher]. Answers are noted in the order of the requests,
// whichever has come first: so a replay gives each request its own.
func (h *tap) Gather(ctx context.Context, requests []effect.Request, parallel int) []builtins.Gathered {
	got := h.request.HTTP.Gather(ctx, requests, parallel)
	for i, a := range got {
		(*Trace)(h).note(httpQuestion(requests[i]), a.Fetched, a.Err, 1+len(a.Body)>>10)
	}
	return got
}

// Read implements [io.Reader].
func (r *tap) Read(p []byte) (int, error) {
	source := r.request.Random
	if source == nil {
		source = rand.Reader
	}
	n, err := source.Read(p)
	r.mu.Lock()
	r.random = append(r.random, p[:n]...)
	r.mu.Unlock()
	return n, err
}

// Log implements [builtins.Logger].
func (l *tap) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.mu.Lock()
	l.logs = append(l.logs, Line{Level: level, Text: msg, Fields: fields})
	l.mu.Unlock()
	l.request.Log.Log(level, msg, fields)
}

// question is what a run asks the world: what kind of question, and all that its
// answer depends on.
type question struct {
	// Verb is "get", "list", "http", "exec", "logs", "ask", "token", "env", "kind" or "rows".
	Verb string `cbor:"verb"`
	// About names it for people, without what may be secret.
	About string `cbor:"about"`
	// Rest is what else the answer depends on, or nil.
	Rest any `cbor:"rest,omitempty"`
}

func getQuestion(ref effect.Ref) question {
	return question{Verb: "get", About: ref.APIVersion + " " + ref.String()}
}

func listQuestion(apiVersion, kind string, namespaces []string, labels, fields string) question {
	about := apiVersion + " " + kind
	switch {
	case namespaces == nil:
		about += " in all namespaces"
	default:
		about += " in " + strings.Join(namespaces, ", ")
	}
	if labels != "" {
		about += ", labels " + labels
	}
	if fields != "" {
		about += ", fields " + fields
	}
	return question{Verb: "list", About: about}
}

// httpQuestion holds of a body and of a key no more than their digests. Parts that a request
// does not have are left out, so that records of before have the same questions.
func httpQuestion(r effect.Request) question {
	headers := map[string]any{}
	for k, v := range r.Headers {
		headers[k] = v
	}
	rest := map[string]any{"url": r.URL, "headers": headers, "ca": r.CA}
	if len(r.Body) > 0 {
		rest["body"] = digestOf(r.Body)
	}
	if r.Cert != "" {
		rest["cert"], rest["key"] = r.Cert, digestOf([]byte(r.CertKey))
	}
	if r.ServerName != "" {
		rest["serverName"] = r.ServerName
	}
	if r.Insecure {
		rest["insecure"] = true
	}
	if r.MaxBytes > 0 {
		rest["maxBytes"] = int64(r.MaxBytes)
	}
	return question{Verb: "http", About: r.Where(), Rest: rest}
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func scopeQuestion(apiVersion, kind string) question {
	return question{Verb: "kind", About: apiVersion + " " + kind}
}

func envQuestion(name string) question { return question{Verb: "env", About: name} }

// rowsQuestion is that of a controller for rows of its reads=. About is the binding, Rest the place.
func rowsQuestion(l effect.Lookup) question {
	return question{Verb: "rows", About: l.Watch, Rest: l.At}
}

// String names the question as a hook asks it.
func (q question) String() string {
	switch q.Verb {
	case "get", "list", "exec", "logs", "ask", "token":
		return "k8s." + q.Verb + " of " + q.About
	case "http":
		if strings.HasPrefix(q.About, "GET ") {
			return "http.get of " + q.About
		}
		return "http.request of " + q.About
	case "env":
		return "env of " + q.About
	case "rows":
		at, _ := q.Rest.(string)
		return builtins.LookupText(effect.Lookup{Watch: q.About, At: at}, true)
	}
	return "whether " + q.About + " has namespaces"
}
