package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The tree of a process that stands by may be another one for a while. A request for a hook that it does not know goes
// to the process that leads, which has registered the hook.

// forwardedHeader says of a request that it was handed on: it goes no further.
const forwardedHeader = "Starling-Forwarded"

// connectWithin bounds how long the process that leads may take to take up a connection.
const connectWithin = 2 * time.Second

// forwarder asks the process that leads.
type forwarder struct {
	// leader is where that one listens; "" when it is this one, or not known.
	leader func() string
	name   string // that its certificate is for
	roots  atomic.Pointer[x509.CertPool]
	client *http.Client

	mu sync.Mutex
	// failed are hooks that fail here, which the one that leads has been asked about, and when.
	failed map[string]time.Time
}

// askAgain is how long a hook fails before the one that leads is asked once more.
const askAgain = 2 * time.Second

// newForwarder makes a forwarder to servers with a certificate for this name.
func newForwarder(leader func() string, name string) *forwarder {
	f := &forwarder{leader: leader, name: name, failed: map[string]time.Time{}}
	f.client = &http.Client{Transport: &http.Transport{DialTLSContext: f.dial, MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second}}
	return f
}

// trust has certificates of these authorities count from now on.
func (f *forwarder) trust(bundle []byte) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	f.roots.Store(roots)
}

// dial connects with a server that is checked as the API server does: by a name that is not that of the address, and
// authorities that change.
func (f *forwarder) dial(ctx context.Context, network, address string) (net.Conn, error) {
	roots := f.roots.Load()
	if roots == nil {
		return nil, errors.New("there is no certificate yet")
	}
	c, err := (&tls.Dialer{
		NetDialer: &net.Dialer{Timeout: connectWithin}, // the handshake counts, too
		Config:    &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: f.name},
	}).DialContext(ctx, network, address)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("it does not take up the connection within %s", connectWithin)
	}
	return c, err
}

// elsewhere returns the route of a path that the process that leads may know.
func (s *server) elsewhere(r *http.Request) (route, bool) {
	convert := strings.HasPrefix(r.URL.Path, "/convert/")
	review := strings.HasPrefix(r.URL.Path, "/validate/") || strings.HasPrefix(r.URL.Path, "/mutate/")
	// Where the API server must show a certificate nobody can ask in its place; for conversions it shows none.
	if s.forwarder == nil || !convert && (!review || s.clients != nil) || r.Header.Get(forwardedHeader) != "" {
		return route{}, false
	}
	leader := s.forwarder.leader()
	return route{leader: leader, convert: convert}, leader != ""
}

// news says whether the process that leads shall answer too: its status shows what fails here, until it has answered
// as well.
func (f *forwarder) news(hook string, fails bool, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, failing := f.failed[hook]
	switch {
	case !fails:
		delete(f.failed, hook)
		return failing
	case now.Sub(at) < askAgain:
		return false
	}
	f.failed[hook] = now
	return true
}

// tell has the process that leads answer a request that this one has answered, or has failed to. Its answer counts
// where there is none.
func (s *server) tell(ctx context.Context, to route, r *http.Request, data, answer []byte, failed error) ([]byte, error) {
	there, is := s.elsewhere(r)
	if !is || errors.As(failed, new(*badRequest)) || !s.forwarder.news(to.hook, failed != nil, time.Now()) {
		return answer, failed
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultWait)
	defer cancel()
	if other, err := s.forward(late, there, r, data); err == nil && failed != nil {
		return other, nil
	}
	return answer, failed
}

// forward has the process that leads answer a request.
func (s *server) forward(ctx context.Context, to route, r *http.Request, data []byte) ([]byte, error) {
	at := url.URL{Scheme: "https", Host: to.leader, Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	asked, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	asked.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	asked.Header.Set(forwardedHeader, "1")
	resp, err := s.forwarder.client.Do(asked)
	if err != nil {
		return nil, badf(http.StatusBadGateway, "this process does not have the hook, and the one that holds the lease gives no answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 2*maxConversion))
	switch {
	case err != nil:
		return nil, badf(http.StatusBadGateway, "this process does not have the hook, and the answer of the one that holds the lease breaks off: %v", err)
	case resp.StatusCode != http.StatusOK:
		return nil, badf(resp.StatusCode, "%s", strings.TrimPrefix(strings.TrimSpace(string(body)), "starling: "))
	}
	return body, nil
}
