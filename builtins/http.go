package builtins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.starlark.net/starlark"

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
	// maxHTTPBody is the largest body of a request that is made in the run, and of its
	// answer.
	maxHTTPBody = maxText
	// maxGathered is how many requests one call of http.gather makes, and maxSideBySide how
	// many of them at a time.
	maxGathered   = 1000
	maxSideBySide = 32
	// maxMessage is the largest body of a message.
	maxMessage = 1 << 20
	// maxMessages is how many messages one run may send.
	maxMessages = 100
)

// Fetcher makes the requests of runs.
type Fetcher interface {
	// Gather makes requests, up to parallel of them at a time, and returns the answer to
	// each, in their order. Errors tell nothing of the requests.
	Gather(ctx context.Context, requests []effect.Request, parallel int) []Gathered
}

// Gathered is what became of a request.
type Gathered struct {
	Fetched
	// Err says why nothing was fetched. One that a server may cause is a
	// [NoAnswerError].
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

// Fetched is what a server answered, whatever its status.
type Fetched struct {
	Status int
	// Headers are by their names in lower case; several values of one are joined by
	// ", ".
	Headers map[string]string
	Body    []byte
}

// The parameters of all requests, and of those that are made in the run.
func httpParams() (url, headers, timeout, ca Param) {
	return Param{Name: "url", Type: TypeSecretText, Doc: "An http or https URL, whose host module(http = […]) lists. A secret one is shown by its host alone, and not at all while the host is not listed."},
		Param{Name: "headers", Type: TypeDict, Default: "{}", Keyword: true, Doc: "Headers, each a text or a secret."},
		Param{Name: "timeout", Type: TypeDuration, Default: `"10s"`, Keyword: true, Doc: "How long the request and its answer may take, at most 5m."},
		Param{Name: "ca", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "Certificates in PEM to trust instead of the system's."}
}

// serverParams are those that say which certificate the server must have.
func serverParams() (serverName, insecure Param) {
	return Param{Name: "server_name", Type: TypeString, Default: "None", Keyword: true, Doc: "The name for which the server's certificate must be; None: the host of the URL."},
		Param{Name: "insecure", Type: TypeBool, Default: "False", Keyword: true, Doc: "Whether the server may have any certificate: whoever is on the way can read and change all."}
}

func askedParams() []Param {
	_, headers, timeout, ca := httpParams()
	serverName, insecure := serverParams()
	return []Param{headers, timeout, ca,
		{Name: "cert", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "A client certificate in PEM, with those between it and its authority; with key."},
		{Name: "key", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "The private key of cert in PEM."},
		serverName, insecure,
		{Name: "max_bytes", Type: TypeInt, Default: "8388608", Keyword: true, Doc: "How large the body of the answer may be, at most 32 MiB."},
	}
}

func requestParams() []Param {
	url, _, _, _ := httpParams()
	return append([]Param{
		{Name: "method", Type: TypeString, Doc: "GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS."},
		url,
		{Name: "json", Type: TypeAny, Default: "None", Keyword: true, Doc: "The body as data, sent as JSON, at most 32 MiB. Secrets in it are sent as their text."},
		{Name: "body", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "The body as text or bytes, instead of json."},
	}, askedParams()...)
}

func httpSpecs() []Spec {
	url, headers, timeout, ca := httpParams()
	serverName, insecure := serverParams()
	const answer = ".status (int), .headers (dict, names in lower case), .body (text), .bytes (the body as it came), .json() (what the body holds)"
	return []Spec{
		{Name: "http.get", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callHTTPGet,
			Returns: "the answer, frozen: .ok (whether the status is 2xx), " + answer,
			Doc:     "Asks a server with GET. Any status is an answer; no answer within the timeout, or one larger than max_bytes, is an error unless default is given. At most five redirects are followed, to listed hosts only.",
			Params: append(append([]Param{url}, askedParams()...),
				Param{Name: "default", Type: TypeAny, Default: "None", Keyword: true, Doc: "The result when there is no answer, for a server that may be down; not given: that is an error. Without a cluster (starling plan --offline) nobody answers. A host that is not listed, or an address that may not be reached, stays an error."})},
		{Name: "http.request", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callHTTPRequest,
			Returns: "the answer, frozen: .ok (whether the status is 2xx), .error (why there is no answer, or None), " + answer + "; without an answer .status is 0",
			Doc:     "Asks a server with any method, at once: a run that fails later, or is repeated, has asked all the same; http.send asks once a run has succeeded. That a server does not answer is no error: .error says it. From the simulated cluster of a command only GET, HEAD and OPTIONS requests are made. A host that is not listed, or an address that may not be reached, is an error.",
			Params:  requestParams()},
		{Name: "http.gather", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callHTTPGather,
			Returns: "a list of answers, each as that of http.request, in the order of the requests",
			Doc:     "Makes requests as http.request does, several at a time, and waits for all. Their answers may have 64 MiB together: those that come when so much has come have none.",
			Params: []Param{
				{Name: "requests", Type: TypeList, Doc: "The requests, at most 1000: each a URL, for GET, or a dict with the arguments of http.request, in which method may be left out for GET."},
				{Name: "parallel", Type: TypeInt, Default: "8", Keyword: true, Doc: "How many at a time, at most 32."},
			}},
		{Name: "http.send", Phases: PhaseRun, Effect: EffectWrite, call: callHTTPSend,
			Doc: "Sends a message once the run has succeeded and all that it wrote is written. It is sent again, with growing delays, for an hour, until the server answers 2xx (or 303); an answer 4xx, other than 408, 425 and 429, ends it at once. Messages that wait are kept across restarts, up to 64 KiB of a module's. At most 100 messages per run.",
			Params: []Param{
				{Name: "method", Type: TypeString, Doc: "GET, POST, PUT, PATCH or DELETE."},
				url,
				{Name: "json", Type: TypeAny, Default: "None", Keyword: true, Doc: "The body as data, sent as JSON, at most 1 MiB. Secrets in it are sent as their text."},
				{Name: "body", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "The body as text or bytes, instead of json."},
				headers,
				{Name: "key", Type: TypeString, Default: "None", Keyword: true, Doc: "A name: while a message of the hook waits, a later one with the same key takes its place. None: each is sent."},
				timeout, ca,
				{Name: "cert", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "A client certificate in PEM, with those between it and its authority; with cert_key."},
				{Name: "cert_key", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "The private key of cert in PEM; key is the name of the message."},
				serverName, insecure,
			}},
	}
}

func callHTTPRequest(c *call) (starlark.Value, error) {
	r, err := c.asked()
	if err != nil {
		return nil, err
	}
	return c.answer(r)
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
	case got.err == "":
		return got, nil
	case c.arg("default") != nil:
		return c.arg("default"), nil
	case c.run.HTTP == nil:
		return nil, errors.New(got.err + "; default= says what holds then")
	}
	return nil, errors.New(got.err)
}

func (c *call) answer(r effect.Request) (*response, error) {
	all, err := c.answers([]effect.Request{r}, 1)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// answers makes requests. That a server does not answer is no error.
func (c *call) answers(requests []effect.Request, parallel int) ([]*response, error) {
	fetcher := c.run.HTTP
	if fetcher == nil {
		fetcher = nobody{}
	}
	got := fetcher.Gather(c.run.context(), requests, parallel)
	size := 0
	for i, a := range got {
		if a.Err != nil && !Unanswered(a.Err) {
			return nil, fmt.Errorf("%s: %w", requests[i].Where(), a.Err)
		}
		size += len(a.Body)
	}
	if err := c.room(size); err != nil {
		return nil, err
	}
	out := make([]*response, len(got))
	for i, a := range got {
		if a.Err != nil {
			out[i] = newUnanswered(requests[i].Where() + ": " + a.Err.Error())
		} else {
			out[i] = newResponse(a.Fetched)
		}
	}
	return out, nil
}

// nobody answers where there is no cluster.
type nobody struct{}

func (nobody) Gather(_ context.Context, requests []effect.Request, _ int) []Gathered {
	return InTurn(requests, func(effect.Request) (Fetched, error) {
		return Fetched{}, &NoAnswerError{"nobody answers without a cluster"}
	})
}
