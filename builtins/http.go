package builtins

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// HTTP to the outside: http.get asks in the run, http.send speaks after the commit.
// Where to is decided by module(http = […]); what goes with it may be secret, and no
// error shows more of it than [effect.Request.Where].

const (
	// defaultHTTPTimeout is timeout= of http.get and http.send.
	defaultHTTPTimeout = 10 * time.Second
	// maxHTTPTimeout bounds it.
	maxHTTPTimeout = 5 * time.Minute
	// maxURL and maxHeaders bound what goes with a request, in bytes.
	maxURL     = 8 << 10
	maxHeaders = 64 << 10
	// maxMessage is the largest body of a message.
	maxMessage = 1 << 20
	// maxMessages is how many messages one run may send.
	maxMessages = 100
)

// Fetcher makes the requests of http.get. Errors tell nothing of the request. One
// that a server may cause is a [NoAnswerError].
type Fetcher interface {
	Fetch(ctx context.Context, r effect.Request) (Fetched, error)
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

func httpSpecs() []Spec {
	url := Param{Name: "url", Type: TypeSecretText, Doc: "An http or https URL, whose host module(http = […]) lists. A secret one is shown by its host alone."}
	headers := Param{Name: "headers", Type: TypeDict, Default: "{}", Keyword: true, Doc: "Headers, each a text or a secret."}
	timeout := Param{Name: "timeout", Type: TypeDuration, Default: `"10s"`, Keyword: true, Doc: "How long the request and its answer may take, at most 5m."}
	ca := Param{Name: "ca", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "Certificates in PEM to trust instead of the system's."}
	return []Spec{
		{Name: "http.get", Phases: PhaseRun | PhaseReview, Effect: EffectRead, call: callHTTPGet,
			Returns: "the answer, frozen: .status (int), .headers (dict, names in lower case), .body (text), .json() (what the body holds)",
			Doc:     "Asks a server with GET. Any status is an answer; no answer within the timeout, or one larger than 8 MiB, is an error unless default is given. At most five redirects are followed, to listed hosts only.",
			Params: []Param{url, headers, timeout, ca,
				{Name: "default", Type: TypeAny, Default: "None", Keyword: true, Doc: "The result when there is no answer, for a server that may be down; not given: that is an error. Without a cluster (starling plan --offline) nobody answers. A host that is not listed, or an address that may not be reached, stays an error."}}},
		{Name: "http.send", Phases: PhaseRun, Effect: EffectWrite, call: callHTTPSend,
			Doc: "Sends a message once the run has succeeded and all that it wrote is written. It is sent again, with growing delays, for an hour, until the server answers 2xx (or 303); an answer 4xx, other than 408, 425 and 429, ends it at once. Messages that wait when Starling is killed are lost. At most 100 messages per run.",
			Params: []Param{
				{Name: "method", Type: TypeString, Doc: "GET, POST, PUT, PATCH or DELETE."},
				url,
				{Name: "json", Type: TypeAny, Default: "None", Keyword: true, Doc: "The body as data, sent as JSON, at most 1 MiB. Secrets in it are sent as their text."},
				{Name: "body", Type: TypeSecretText, Default: "None", Keyword: true, Doc: "The body as text, instead of json."},
				headers,
				{Name: "key", Type: TypeString, Default: "None", Keyword: true, Doc: "A name: while a message of the hook waits, a later one with the same key takes its place. None: each is sent."},
				timeout, ca,
			}},
	}
}

func callHTTPGet(c *call) (starlark.Value, error) {
	r, err := c.httpRequest("GET")
	if err != nil {
		return nil, err
	}
	if c.run.HTTP == nil {
		if c.arg("default") != nil {
			return c.arg("default"), nil
		}
		return nil, fmt.Errorf("%s: nobody answers without a cluster; default= says what holds then", r.Where())
	}
	got, err := c.run.HTTP.Fetch(c.run.context(), r)
	switch {
	case errors.As(err, new(*NoAnswerError)) && c.arg("default") != nil:
		return c.arg("default"), nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.Where(), err)
	}
	return newResponse(got), nil
}

func callHTTPSend(c *call) (starlark.Value, error) {
	method := c.str("method")
	if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, method) {
		return nil, fmt.Errorf("method: %q is none; use GET, POST, PUT, PATCH or DELETE", clip(method))
	}
	r, err := c.httpRequest(method)
	if err != nil {
		return nil, err
	}
	contentType := ""
	switch v := c.arg("json"); {
	case v != nil && v != starlark.None && c.arg("body") != nil:
		return nil, errors.New("json and body exclude each other")
	case v != nil && v != starlark.None:
		plain, err := object.ToPlainAt(v, []string{"json"})
		if err != nil {
			return nil, err
		}
		text, err := encodeJSON(plain)
		if err != nil {
			return nil, err
		}
		r.Body, contentType = []byte(text), "application/json"
	case c.arg("body") != nil:
		r.Body, contentType = []byte(c.text("body")), "text/plain; charset=utf-8"
	}
	if len(r.Body) > maxMessage {
		return nil, fmt.Errorf("the body is larger than %d MiB", maxMessage>>20)
	}
	if contentType != "" && r.Headers["Content-Type"] == "" {
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		r.Headers["Content-Type"] = contentType
	}
	m := effect.Message{Request: r, Key: c.str("key"), Pos: c.pos()}
	switch {
	case c.arg("key") != nil && m.Key == "":
		return nil, errors.New("key: is empty; leave it out for a message without one")
	case len(m.Key) > 200:
		return nil, errors.New("key: is longer than 200 characters")
	}
	if len(c.run.Effects.Messages) >= maxMessages {
		return nil, &LimitError{Limit: "effects", Detail: fmt.Sprintf("more than %d messages in one run", maxMessages)}
	}
	if err := c.run.spend(len(c.run.Effects.Messages), "messages", m.Size()+len(m.Key)); err != nil {
		return nil, err
	}
	c.run.Effects.Messages = append(c.run.Effects.Messages, m)
	return nil, nil
}

// httpRequest reads url, headers, timeout and ca, and makes sure that the host is
// listed.
func (c *call) httpRequest(method string) (effect.Request, error) {
	r := effect.Request{Method: method, Timeout: c.durationOr("timeout", defaultHTTPTimeout), Hosts: c.run.Hosts}
	if r.Timeout == 0 || r.Timeout > maxHTTPTimeout {
		return r, fmt.Errorf("timeout: %s is not between 0 and %s", r.Timeout, maxHTTPTimeout)
	}
	_, r.Hidden = c.arg("url").(*object.Secret)
	var err error
	if r.URL, err = listedURL(c.text("url"), r.Hidden, c.run.Hosts); err != nil {
		return r, fmt.Errorf("url: %w", err)
	}
	if r.Headers, err = httpHeaders(c.arg("headers")); err != nil {
		return r, fmt.Errorf("headers: %w", err)
	}
	if c.arg("ca") != nil {
		r.CA = c.text("ca")
		if _, err := parseCerts(r.CA); err != nil {
			return r, fmt.Errorf("ca: %w", err)
		}
	}
	return r, nil
}

// listedURL returns the URL as it is sent. Of a hidden one errors show nothing.
func listedURL(text string, hidden bool, hosts effect.Hosts) (string, error) {
	shown := "it"
	if !hidden {
		shown = strconv.Quote(clip(text))
	}
	if len(text) > maxURL {
		return "", fmt.Errorf("is longer than %d KiB", maxURL>>10)
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Opaque != "" {
		return "", fmt.Errorf(`%s is no http or https URL with a host, as "https://api.example.com/path"`, shown)
	}
	if u.User != nil {
		return "", errors.New("a user or password does not belong into it; use headers")
	}
	u.Fragment, u.RawFragment = "", ""
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.ParseUint(p, 10, 16); err != nil || port == 0 {
			return "", fmt.Errorf("%s has a port that is none", shown)
		}
	}
	if !hosts.Allow(u.Hostname(), uint16(port)) {
		if hidden {
			return "", errors.New("its host is not listed; add it to module(http = […]) in module.star")
		}
		return "", fmt.Errorf("the host %s is not listed; add %q to module(http = […]) in module.star", clip(u.Host), clip(u.Host))
	}
	return u.String(), nil
}

// ownHeaders are those that follow from the request, and would be wrong if set.
var ownHeaders = [...]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Expect", "Accept-Encoding"}

// httpHeaders reads headers=. Errors name headers, and never show what they hold.
func httpHeaders(v starlark.Value) (map[string]string, error) {
	m, ok := v.(starlark.IterableMapping)
	if !ok {
		return nil, nil
	}
	out, size := map[string]string{}, 0
	for k, e := range starlark.Entries(m) {
		name, ok := starlark.AsString(k)
		if !ok || !isHeaderName(name) {
			return nil, fmt.Errorf("%s is no name of a header", clip(k.String()))
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		value, ok := openText(e)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want %s", name, e.Type(), TypeSecretText)
		}
		_, twice := out[name]
		switch {
		case slices.Contains(ownHeaders[:], name) || strings.HasPrefix(name, "Proxy-"):
			return nil, fmt.Errorf("%s is set by Starling; leave it out", name)
		case twice:
			return nil, fmt.Errorf("%s is given twice", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, fmt.Errorf("%s: a header holds no line ends or other control characters", name)
		}
		out[name] = value
		if size += len(name) + len(value); size > maxHeaders {
			return nil, fmt.Errorf("are larger than %d KiB together", maxHeaders>>10)
		}
	}
	return out, nil
}

func isHeaderName(name string) bool {
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && !strings.ContainsRune("-_!#$%&'*+.^`|~", r)
	})
}

// response is what http.get returns.
type response struct {
	status  starlark.Int
	headers starlark.Value
	body    starlark.String
}

var _ starlark.HasAttrs = (*response)(nil)

func newResponse(f Fetched) *response {
	headers := make(map[string]any, len(f.Headers))
	for k, v := range f.Headers {
		headers[k] = strings.ToValidUTF8(v, "\uFFFD")
	}
	return &response{
		status: starlark.MakeInt(f.Status), headers: object.FromPlain(headers),
		body: starlark.String(strings.ToValidUTF8(string(f.Body), "\uFFFD")),
	}
}

func (r *response) String() string        { return "<response " + r.status.String() + ">" }
func (r *response) Type() string          { return "response" }
func (r *response) Freeze()               {}
func (r *response) Truth() starlark.Bool  { return true }
func (r *response) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: response") }
func (r *response) AttrNames() []string   { return []string{"body", "headers", "json", "status"} }

// Attr returns what the server answered.
func (r *response) Attr(name string) (starlark.Value, error) {
	switch name {
	case "status":
		return r.status, nil
	case "headers":
		return r.headers, nil
	case "body":
		return r.body, nil
	case "json":
		return starlark.NewBuiltin("json", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
				return nil, err
			}
			v, err := decodeFrozenJSON(t, string(r.body))
			if err != nil {
				return nil, fmt.Errorf("response.json: status %s: the body is no JSON: %w", r.status, err)
			}
			return v, nil
		}), nil
	}
	return nil, nil // go.starlark.net says so, and suggests
}

// decodeFrozenJSON is json.decode, with its limits, of text from outside.
func decodeFrozenJSON(t *starlark.Thread, text string) (starlark.Value, error) {
	v, err := callJSONDecode(&call{
		thread: t, args: []starlark.Value{starlark.String(text), nil},
		spec: &Spec{Name: "json.decode", Params: []Param{{Name: "x"}, {Name: "default"}}},
	})
	if err == nil {
		v.Freeze()
	}
	return v, err
}
