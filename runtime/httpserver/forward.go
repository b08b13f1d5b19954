package httpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// forwardedHeader says, of a request, which process it was handed to, by its name in the Lease: no
// other one works on it, and none hands it on. Of an answer it says that no hook has given it.
const forwardedHeader = "Starling-Forwarded"

// tokenHeader, of a request that was handed on, shows that its sender knows the token, which nobody else learns so.
const tokenHeader = "Starling-Token-Proof"

// secretHeaders may hold secrets, and hooks do not see them. Once a request is checked nobody needs them.
var secretHeaders = [...]string{"Authorization", "Proxy-Authorization", "Cookie", "X-Gitlab-Token"}

// The values that an answer has of it.
const (
	saysElsewhere = "elsewhere" // this is not the process that was meant, or it does not lead
	saysRefused   = "refused"
)

const (
	// maxAnswer bounds the body of an answer that is passed on.
	maxAnswer = 2 << 20
	// connectWithin bounds how long another process may take to take up a connection.
	connectWithin = 2 * time.Second
)

// dialer reaches other processes.
var dialer = net.Dialer{Timeout: connectWithin}

// ErrAway says that the process that leads has not got a request, or that its answer is lost. The request may
// be handed on again, and then perhaps twice.
var ErrAway = errors.New("the process that holds the lease gives no answer")

// Peer is the process that leads.
type Peer struct {
	Name    string // in the Lease
	Address string // "host:port" of its listener
}

// Forwarder hands requests to the process that leads.
type Forwarder struct {
	scheme string
	client *http.Client
}

// NewForwarder makes a forwarder to listeners such as this one: with TLS these must have the same certificate.
func NewForwarder(ln *Listener) *Forwarder {
	transport := &http.Transport{
		DialContext: dialer.DialContext, DisableCompression: true,
		MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: connectWithin,
	}
	f := &Forwarder{scheme: "http", client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if ln.pair != nil {
		f.scheme, transport.TLSClientConfig = "https", ln.pair.Peer()
	}
	return f
}

// Close ends connections that wait for more.
func (f *Forwarder) Close() { f.client.CloseIdleConnections() }

// Forward returns what another process answers. It checks the request, too: of a token it gets a proof.
func (f *Forwarder) Forward(ctx context.Context, to Peer, in Incoming) (builtins.Response, error) {
	resp, err := f.client.Do(forwarded(ctx, f.scheme, to, in))
	if about := (*url.Error)(nil); errors.As(err, &about) {
		err = about.Err // the query of the URL may hold a secret
	}
	if err != nil {
		return builtins.Response{}, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return builtins.Response{}, fmt.Errorf("%w: %w", ErrAway, err)
	}
	switch resp.Header.Get(forwardedHeader) {
	case saysElsewhere:
		return builtins.Response{}, fmt.Errorf("%w: %s", ErrAway, bytes.TrimSpace(body))
	case saysRefused:
		if resp.StatusCode == http.StatusUnauthorized && in.token != "" { // an older version does not know the proof
			return builtins.Response{}, fmt.Errorf("%w: it refuses what this process has checked", ErrAway)
		}
		if resp.StatusCode == http.StatusNotFound && in.Hook != "" { // its tree is older, or newer
			return builtins.Response{}, &refusal{http.StatusServiceUnavailable, "this path is not served now, try again later", tryAgain}
		}
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return builtins.Response{}, &refusal{resp.StatusCode, strings.TrimSuffix(string(body), "\n"), time.Duration(after) * time.Second}
	}
	return builtins.Response{Reply: &builtins.Reply{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: body}}, nil
}

// saysOf is what an answer says that no hook has given.
func saysOf(err error) string {
	if errors.Is(err, ErrAway) {
		return saysElsewhere
	}
	return saysRefused
}

// forwarded is a request as another process gets it: as it came, but for what is between two machines.
func forwarded(ctx context.Context, scheme string, to Peer, in Incoming) *http.Request {
	came := in.HTTP
	header := came.Header.Clone()
	for _, names := range came.Header.Values("Connection") {
		for name := range strings.SplitSeq(names, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"} {
		header.Del(name)
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "") // else there is one of Go
	}
	header.Set(forwardedHeader, to.Name)
	header.Del(tokenHeader)
	if in.Hook != "" { // else the other one checks it
		for _, name := range secretHeaders {
			if name != in.sum {
				header.Del(name)
			}
		}
	}
	if in.token != "" {
		sum := proof{before: handedOn(to.Name, came)}.sum(in.Body, []byte(in.token))
		header.Set(tokenHeader, base64.StdEncoding.EncodeToString(sum))
	}
	out := &http.Request{
		Method: came.Method, Host: came.Host, Header: header,
		URL:           &url.URL{Scheme: scheme, Host: to.Address, Path: came.URL.Path, RawPath: came.URL.RawPath, RawQuery: came.URL.RawQuery},
		ContentLength: int64(len(in.Body)), Body: io.NopCloser(bytes.NewReader(in.Body)),
	}
	if len(in.Body) == 0 {
		out.Body = http.NoBody
	}
	return out.WithContext(ctx)
}

// handedOn is what the proof of a token is about, beside the body: nobody can use it for another request, or with
// another process.
func handedOn(to string, r *http.Request) string {
	return strings.Join([]string{"starling", to, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, ""}, "\n")
}
