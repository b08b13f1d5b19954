package builtins

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
)

// HTTP to the outside: http.request, and http.get that is made of it, ask in the run;
// http.send speaks after the commit. Where to is decided by module(http = […]); what goes
// with it may be secret, and no error shows more of it than [effect.Request.Where].

const (
	// defaultHTTPTimeout is timeout= of all requests.
	defaultHTTPTimeout = 10 * time.Second
	// maxHTTPTimeout bounds it.
	maxHTTPTimeout = 5 * time.Minute
	// maxURL and maxHeaders bound what goes with a request, in bytes.
	maxURL     = 8 << 10
	maxHeaders = 64 << 10
	// maxHTTPBody is the largest body of a request that is made in the run, and of its answer.
	maxHTTPBody = spec.MaxText
	// maxGathered is how many requests one call of http.gather makes, and maxSideBySide how many of them at a time.
	maxGathered   = 1000
	maxSideBySide = 32
	// maxMessage is the largest body of a message.
	maxMessage = 1 << 20
	// maxMessages is how many messages one run may send.
	maxMessages = 100
)

// ReadMethods change nothing at the server.
var ReadMethods = []string{"GET", "HEAD", "OPTIONS"}

// Fetcher makes the requests of runs.
type Fetcher interface {
	// Gather makes requests, up to parallel of them at a time, and returns the answer to
	// each, in their order. Errors tell nothing of the requests.
	Gather(ctx context.Context, requests []effect.Request, parallel int) []Gathered
}

// Gathered is what became of a request.
type Gathered struct {
	Fetched
	// Err says why nothing was fetched. One that a server may cause is a [NoAnswerError].
	Err error
}

// InTurn is [Fetcher].Gather of those who ask one server after the other.
func InTurn(requests []effect.Request, fetch func(effect.Request) (Fetched, error)) []Gathered {
	out := make([]Gathered, len(requests))
	for i, r := range requests {
		out[i].Fetched, out[i].Err = fetch(r)
	}
	return out
}

// NoAnswerError says that a server which may be asked has not answered, or not with
// something of use. http.get returns its default then.
type NoAnswerError struct{ Reason string }

func (e *NoAnswerError) Error() string { return e.Reason }

// Fetched is what a server answered, whatever its status. The tags are its names in the record of a run.
type Fetched struct {
	Status int `cbor:"status"`
	// Headers are by their names in lower case; several values of one are joined by ", ".
	Headers map[string]string `cbor:"headers,omitempty"`
	Body    []byte            `cbor:"body,omitempty"`
}

// The parameters of all requests, and of those that are made in the run.
func httpParams() (url, headers, timeout, ca spec.Param) {
	return spec.Required("url", spec.SecretText),
		spec.Keyword("headers", spec.Dict, "{}"),
		spec.Keyword("timeout", spec.Duration, `"10s"`).UpTo(maxHTTPTimeout),
		spec.Keyword("ca", spec.SecretText, "None")
}

// serverParams are those that say which certificate the server must have.
func serverParams() (serverName, insecure spec.Param) {
	return spec.Keyword("server_name", spec.String, "None"),
		spec.Keyword("insecure", spec.Bool, "False")
}

func askedParams() []spec.Param {
	_, headers, timeout, ca := httpParams()
	serverName, insecure := serverParams()
	return []spec.Param{
		headers, timeout, ca, spec.Keyword("cert", spec.SecretText, "None"), spec.Keyword("key", spec.SecretText, "None"),
		serverName, insecure, spec.Keyword("max_bytes", spec.Int, "8388608").Between(1, maxHTTPBody),
	}
}

func requestParams() []spec.Param {
	url, _, _, _ := httpParams()
	return append([]spec.Param{
		spec.Required("method", spec.String), url, spec.Keyword("json", spec.Any, "None"),
		spec.Keyword("body", spec.SecretText, "None"),
	}, append(askedParams(), spec.Keyword("reads", spec.Bool, "False"))...)
}

func httpSpecs() []spec.Spec {
	url, headers, timeout, ca := httpParams()
	serverName, insecure := serverParams()
	return []spec.Spec{
		declare("http.get", spec.InRun|spec.InReview, spec.Reads, callHTTPGet,
			append(append([]spec.Param{url}, askedParams()...), spec.Keyword("default", spec.Any, "None"))...),
		declare("http.request", spec.InRun|spec.InReview, spec.Reads, callHTTPRequest, requestParams()...),
		declare("http.gather", spec.InRun|spec.InReview, spec.Reads, callHTTPGather, spec.Required("requests", spec.List),
			spec.Keyword("parallel", spec.Int, "8").Between(1, maxSideBySide)),
		declare("http.send", spec.InRun, spec.Writes, callHTTPSend, spec.Required("method", spec.String), url,
			spec.Keyword("json", spec.Any, "None"), spec.Keyword("body", spec.SecretText, "None"), headers,
			spec.Keyword("key", spec.String, "None"), timeout, ca, spec.Keyword("cert", spec.SecretText, "None"),
			spec.Keyword("cert_key", spec.SecretText, "None"), serverName, insecure),
	}
}

func callHTTPRequest(c *call) (starlark.Value, error) {
	r, err := c.asked()
	if err != nil {
		return nil, err
	}
	got, err := c.answer(r)
	if err != nil {
		return nil, err
	}
	return responseOf(got), nil
}

func callHTTPGet(c *call) (starlark.Value, error) {
	r, err := c.askedWith("GET")
	if err != nil {
		return nil, err
	}
	got, err := c.answer(r)
	switch {
	case err != nil:
		return nil, err
	case got.Err == nil:
		return responseOf(got), nil
	case c.Arg("default") != nil:
		return c.Arg("default"), nil
	case c.run.HTTP == nil:
		return nil, fmt.Errorf("%w; default= says what holds then", got.Err)
	}
	return nil, got.Err
}

func (c *call) answer(r effect.Request) (Gathered, error) {
	all, err := c.answers([]effect.Request{r}, 1)
	if err != nil {
		return Gathered{}, err
	}
	return all[0], nil
}

// answers makes requests. That a server does not answer is no error, but the Err of what it returns.
func (c *call) answers(requests []effect.Request, parallel int) ([]Gathered, error) {
	for _, r := range requests {
		if c.ctx.Phase == spec.InObserve && !c.run.Calls && !r.Reads && !slices.Contains(ReadMethods, r.Method) {
			return nil, fmt.Errorf("%s may change something; say reads = True, or let act return it in call(…)", r.Where())
		}
	}
	fetcher := c.run.HTTP
	if fetcher == nil {
		fetcher = nobody{}
	}
	got := slices.Clone(fetcher.Gather(c.run.context(), requests, parallel))
	size := 0
	for i, a := range got {
		if a.Err != nil {
			got[i].Err = fmt.Errorf("%s: %w", requests[i].Where(), a.Err)
		}
		if a.Err != nil && !Unanswered(a.Err) {
			return nil, got[i].Err
		}
		size += len(a.Body)
	}
	return got, c.Room(size)
}

// nobody answers where there is no cluster.
type nobody struct{}

func (nobody) Gather(_ context.Context, requests []effect.Request, _ int) []Gathered {
	return InTurn(requests, func(effect.Request) (Fetched, error) {
		return Fetched{}, &NoAnswerError{"nobody answers without a cluster"}
	})
}
