package builtins

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// HTTP from the outside: http.receive triggers a hook, whose reply is the answer.

// ReceiveBinding is http.receive(...).
type ReceiveBinding struct {
	// Path is the path of the URL: "/github".
	Path string
	// Methods are in capital letters, at least one.
	Methods []string
	// Secret is what requests are signed with; nil: anybody may send them.
	Secret    *SecretRef
	Signature Signature
	// Header holds the signature; canonical, only for [SignatureHMAC].
	Header string
	// Timestamp is the header of the time that is signed with the body; canonical, only for [SignatureHMAC].
	Timestamp string
	// Once is how long a request that was taken is not taken again; 0: it is.
	Once time.Duration
	// MaxBytes bounds the body.
	MaxBytes int
	// Rate is how many requests a second are let through in the mean, Burst how many at once.
	Rate, Burst int
	Pos         string
}

// SecretRef is secret_ref(name, key, namespace).
type SecretRef struct {
	Name, Key string
	Namespace string // "": the module's, of global hooks the operator's
}

// Signature says how a request shows that its sender knows the secret.
type Signature string

const (
	// SignatureGitHub: X-Hub-Signature-256 holds "sha256=" and the HMAC-SHA256 of the body in hex.
	SignatureGitHub Signature = "github"
	// SignatureGitLab: X-Gitlab-Token holds the secret.
	SignatureGitLab Signature = "gitlab"
	// SignatureHMAC: a header holds the HMAC-SHA256 of the body in hex, with or without "sha256=", or in base64.
	SignatureHMAC Signature = "hmac"
	// SignatureStripe: Stripe-Signature holds "t=" and the time, and "v1=" and the
	// HMAC-SHA256 of time, "." and body in hex.
	SignatureStripe Signature = "stripe"
	// SignatureSlack: X-Slack-Signature holds "v0=" and the HMAC-SHA256 of "v0:", the
	// time in X-Slack-Request-Timestamp, ":" and body in hex.
	SignatureSlack Signature = "slack"
	// SignatureBearer: Authorization holds "Bearer " and the secret.
	SignatureBearer Signature = "bearer"
)

const (
	defaultReceiveBytes = 1 << 20
	// MaxReceiveBytes, in bytes, is the most that max_bytes may be.
	MaxReceiveBytes = 10 << 20
	maxReply        = 1 << 20
)

func receiveSpecs() []spec.Spec {
	return []spec.Spec{
		declare("http.receive", spec.InLoad, spec.NoEffect, callReceive, spec.Required("path", spec.String),
			spec.Optional("secret", spec.SecretRef, "None"), spec.Keyword("signature", spec.String, `"github"`),
			spec.Keyword("header", spec.String, "None"), spec.Keyword("timestamp", spec.String, "None"),
			spec.Keyword("once", spec.Duration, "None"), spec.Keyword("public", spec.Bool, "False"),
			spec.Keyword("methods", spec.Strings, `["POST"]`), spec.Keyword("max_bytes", spec.Int, "1048576"),
			spec.Keyword("rate", spec.Int, "10"), spec.Keyword("burst", spec.Int, "50"),
			spec.Keyword("name", spec.String, "None")),
		declare("secret_ref", spec.InLoad, spec.NoEffect, callSecretRef, spec.Required("name", spec.String),
			spec.Required("key", spec.String), spec.Optional("namespace", spec.String, "None")),
		declare("reply", spec.InReceive, spec.NoEffect, callReply, spec.Required("status", spec.Int),
			spec.Optional("body", spec.Any, "None")),
	}
}

var (
	receivePath      = regexp.MustCompile(`^/[A-Za-z0-9._~/-]*$`)
	secretKeyPattern = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
)

func callReceive(c *call) (starlark.Value, error) {
	b := &ReceiveBinding{
		Path: c.Str("path"), Methods: []string{"POST"}, Signature: Signature(c.StrOr("signature", string(SignatureGitHub))),
		MaxBytes: c.IntOr("max_bytes", defaultReceiveBytes), Rate: c.IntOr("rate", 10), Burst: c.IntOr("burst", 50),
		Pos: c.Pos(),
	}
	if !receivePath.MatchString(b.Path) || path.Clean(b.Path) != b.Path || len(b.Path) > 200 {
		return nil, fmt.Errorf(`path: %q is none; write it as "/github": letters, digits and . _ ~ - between slashes`, spec.Clip(b.Path))
	}
	name, err := c.shortName("name")
	if err != nil {
		return nil, err
	}
	if err := c.receiveSecret(b); err != nil {
		return nil, err
	}
	if c.Arg("methods") != nil {
		b.Methods = c.Strings("methods")
	}
	if len(b.Methods) == 0 {
		return nil, errors.New("methods: the list is empty, so nothing would be received")
	}
	for _, m := range b.Methods {
		if !slices.Contains([]string{"GET", "POST", "PUT", "PATCH", "DELETE"}, m) {
			return nil, fmt.Errorf("methods: %q is none; use GET, POST, PUT, PATCH or DELETE", spec.Clip(m))
		}
	}
	for _, n := range []struct {
		param     string
		got, most int
	}{{"max_bytes", b.MaxBytes, MaxReceiveBytes}, {"rate", b.Rate, 1000}, {"burst", b.Burst, 10_000}} {
		if n.got < 1 || n.got > n.most {
			return nil, fmt.Errorf("%s: got %d, want 1 to %d", n.param, n.got, n.most)
		}
	}
	return binding(Binding{Name: name, Receive: b})
}

// receiveSecret reads what says who may send requests. To leave it out is no answer.
func (c *call) receiveSecret(b *ReceiveBinding) error {
	public := c.BoolOr("public", false)
	ref, given := c.Arg("secret").(*declared[SecretRef])
	switch {
	case given && public:
		return errors.New("secret and public exclude each other")
	case !given && !public:
		return errors.New("secret: is missing: give secret = secret_ref(…), or public = True if anybody may send requests")
	case public && (c.Arg("signature") != nil || c.Arg("header") != nil):
		return errors.New("signature and header mean nothing with public")
	case public && (c.Arg("timestamp") != nil || c.Arg("once") != nil):
		return errors.New("timestamp and once mean nothing with public: nothing is signed")
	case public:
		return nil
	}
	b.Secret = &ref.val
	header := c.Str("header")
	switch b.Signature {
	case SignatureGitHub, SignatureGitLab, SignatureBearer, SignatureStripe, SignatureSlack:
		if c.Arg("header") != nil {
			return fmt.Errorf("header: %q has its own; only \"hmac\" takes one", string(b.Signature))
		}
	case SignatureHMAC:
		if !isHeaderName(header) {
			return errors.New(`header: "hmac" needs the name of the header that holds the signature`)
		}
		b.Header = header
	default:
		return fmt.Errorf(`signature: %q is none; use "github", "gitlab", "hmac", "stripe", "slack" or "bearer"`, spec.Clip(string(b.Signature)))
	}
	return c.receiveOnce(b)
}

// maxOnce bounds how long requests that were taken are remembered.
const maxOnce = 24 * time.Hour

// receiveOnce reads what keeps a request from being taken twice.
func (c *call) receiveOnce(b *ReceiveBinding) error {
	if c.Arg("timestamp") != nil {
		if b.Signature != SignatureHMAC {
			return fmt.Errorf("timestamp: %q has none, or its own; only \"hmac\" takes one", string(b.Signature))
		}
		if b.Timestamp = c.Str("timestamp"); !isHeaderName(b.Timestamp) {
			return fmt.Errorf("timestamp: %q is no name of a header", spec.Clip(b.Timestamp))
		}
	}
	if c.Arg("once") == nil {
		return nil
	}
	b.Once = c.DurationOr("once", 0)
	switch {
	case b.Signature != SignatureGitHub && b.Signature != SignatureHMAC || b.Timestamp != "":
		return errors.New("once: is for \"github\", and \"hmac\" without a timestamp: with the time in the signature a request is taken once anyway, and \"gitlab\" and \"bearer\" sign nothing of it")
	case b.Once <= 0 || b.Once > maxOnce:
		return fmt.Errorf("once: got %s, want more than 0 and at most 24h", b.Once)
	}
	return nil
}

func callSecretRef(c *call) (starlark.Value, error) {
	r := SecretRef{Name: c.Str("name"), Key: c.Str("key"), Namespace: c.Str("namespace")}
	if err := checkName(r.Name); err != nil {
		return nil, fmt.Errorf("name: %w", err)
	}
	if !secretKeyPattern.MatchString(r.Key) {
		return nil, fmt.Errorf("key: %q is no key of a Secret", spec.Clip(r.Key))
	}
	if c.Arg("namespace") != nil {
		if err := spec.DNSLabel(r.Namespace, 63); err != nil {
			return nil, fmt.Errorf("namespace: %w", err)
		}
	}
	return &declared[SecretRef]{"secret_ref", r}, nil
}

func callReply(c *call) (starlark.Value, error) {
	r := Reply{Status: c.IntOr("status", 200)}
	if r.Status < 200 || r.Status > 599 {
		return nil, fmt.Errorf("status: got %d, want 200 to 599", r.Status)
	}
	switch v := c.Arg("body").(type) {
	case nil, starlark.NoneType:
	case starlark.String:
		r.Body, r.ContentType = []byte(v), "text/plain; charset=utf-8"
	default:
		tree, err := object.ToTree(v) // refuses secrets
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		text, err := spec.EncodeJSON(tree)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		r.Body, r.ContentType = []byte(text), "application/json"
	}
	switch {
	case len(r.Body) > maxReply:
		return nil, fmt.Errorf("body: is larger than %d MiB", maxReply>>20)
	case len(r.Body) > 0 && (r.Status == 204 || r.Status == 304):
		return nil, fmt.Errorf("body: an answer %d has none", r.Status)
	}
	return &declared[Reply]{"reply", r}, nil
}

// respondReceive reads what a hook of http.receive returned.
func (r *Run) respondReceive(v starlark.Value) error {
	switch v := v.(type) {
	case nil, starlark.NoneType:
		return nil
	case *declared[Reply]:
		r.Response.Reply = &v.val
		return nil
	}
	return fmt.Errorf("the hook returned %s; a hook of http.receive must return reply(…) or None", v.Type())
}

// Received is an HTTP request as a hook sees it.
type Received struct {
	Method, Path string
	// Query by name, of several values the first; Headers by name in lower case.
	Query, Headers map[string]string
	Body           string
}

// Request makes the request that a hook answers at the binding of that name.
func (r *Received) Request(binding string) *Request {
	fields := starlark.StringDict{
		"method": starlark.String(r.Method), "path": starlark.String(r.Path),
		"query": object.FromPlain(plainTexts(r.Query)), "headers": object.FromPlain(plainTexts(r.Headers)),
		"body": starlark.String(validText(r.Body)),
	}
	return &Request{Binding: binding, Fields: fields, Received: r}
}
