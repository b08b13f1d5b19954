package record

import (
	"context"
	"crypto/rand"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/hook"
)

// Trace is one run: what it was given, what it has asked the world, and what came of
// it. It holds pointers to data that nobody changes, and is itself not changed any more
// once it is handed over.
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
	weight   int
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
	if r.Reader != nil {
		r.Reader = tapReader{t, r.Reader}
	}
	if r.HTTP != nil {
		r.HTTP = tapHTTP{t, r.HTTP}
	}
	source := r.Random
	if source == nil {
		source = rand.Reader
	}
	r.Random = tapRandom{t, source}
	if compose := r.Compose; compose != nil {
		r.Compose = func(own []effect.ValueOp) (map[string]any, error) {
			t.mu.Lock()
			t.composed = append(t.composed, len(own))
			if len(own) >= len(t.ops) {
				t.ops = own
			}
			t.mu.Unlock()
			return compose(own)
		}
	}
	if scope := r.Scope; scope != nil {
		r.Scope = func(apiVersion, kind string) (bool, error) {
			namespaced, err := scope(apiVersion, kind)
			t.note(scopeQuestion(apiVersion, kind), namespaced, err, 0)
			return namespaced, err
		}
	}
	r.Log = tapLog{t, r.Log}
	return t
}

// End ends a trace and hands it over. A nil trace does nothing.
func (t *Trace) End(take func(*Trace), result hook.Result, took time.Duration) {
	if t == nil {
		return
	}
	t.result, t.Took = result, took
	take(t)
}

func (t *Trace) note(q question, answer any, err error, weight int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads = append(t.reads, reading{q, answer, err})
	t.weight += weight
}

// failed says that the run failed.
func (t *Trace) failed() bool { return t.result.Err != nil }

type tapReader struct {
	t    *Trace
	next builtins.Reader
}

// Get implements [builtins.Reader].
func (r tapReader) Get(ctx context.Context, ref effect.Ref) (map[string]any, error) {
	m, err := r.next.Get(ctx, ref)
	r.t.note(getQuestion(ref), m, err, 1)
	return m, err
}

// List implements [builtins.Reader].
func (r tapReader) List(ctx context.Context, apiVersion, kind string, namespaces []string, labels, fields string) ([]map[string]any, error) {
	found, err := r.next.List(ctx, apiVersion, kind, namespaces, labels, fields)
	r.t.note(listQuestion(apiVersion, kind, namespaces, labels, fields), found, err, len(found))
	return found, err
}

type tapHTTP struct {
	t    *Trace
	next builtins.Fetcher
}

// Fetch implements [builtins.Fetcher].
func (h tapHTTP) Fetch(ctx context.Context, r effect.Request) (builtins.Fetched, error) {
	got, err := h.next.Fetch(ctx, r)
	h.t.note(httpQuestion(r), got, err, 1+len(got.Body)>>10)
	return got, err
}

type tapRandom struct {
	t    *Trace
	next io.Reader
}

// Read implements [io.Reader].
func (r tapRandom) Read(p []byte) (int, error) {
	n, err := r.next.Read(p)
	r.t.mu.Lock()
	r.t.random = append(r.t.random, p[:n]...)
	r.t.mu.Unlock()
	return n, err
}

type tapLog struct {
	t    *Trace
	next builtins.Logger
}

// Log implements [builtins.Logger].
func (l tapLog) Log(level builtins.Level, msg string, fields []builtins.Field) {
	l.t.mu.Lock()
	l.t.logs = append(l.t.logs, Line{Level: level, Text: msg, Fields: fields})
	l.t.mu.Unlock()
	l.next.Log(level, msg, fields)
}

// question is what a run asks the world: what kind of question, and all that its
// answer depends on.
type question struct {
	// Verb is "get", "list", "http" or "kind".
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

func httpQuestion(r effect.Request) question {
	headers := map[string]any{}
	for k, v := range r.Headers {
		headers[k] = v
	}
	return question{Verb: "http", About: r.Where(), Rest: map[string]any{"url": r.URL, "headers": headers, "ca": r.CA}}
}

func scopeQuestion(apiVersion, kind string) question {
	return question{Verb: "kind", About: apiVersion + " " + kind}
}

// String names the question as a hook asks it.
func (q question) String() string {
	switch q.Verb {
	case "get", "list":
		return "k8s." + q.Verb + " of " + q.About
	case "http":
		return "http.get: " + q.About
	}
	return "whether " + q.About + " has namespaces"
}
