package httpclient

import (
	"github.com/starling-operator/starling/builtins"

	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/starling-operator/starling/runtime/effect"
)

const (
	// maxTransports is how many kinds of connections are kept, maxIdle how many of each, and
	// keptFor how long one that nobody uses.
	maxTransports = 64
	maxIdle       = 32
	keptFor       = 30 * time.Second
)

// kind is the digest of all that decides what a connection is: where it may lead, and its TLS.
type kind [sha256.Size]byte

func kindOf(r effect.Request) kind {
	return sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %t", r.Hosts, r.CA, r.Cert, r.CertKey, r.ServerName, r.Insecure))
}

// transports keep connections for the next request of the same kind.
type transports struct {
	mu   sync.Mutex
	of   map[kind]*http.Transport
	used []kind // the last one was used last
}

// transport returns that of a request. One that may change something has a new connection: the
// server may be about to close a kept one, and such a request is not made a second time.
func (c *Client) transport(r effect.Request) (*http.Transport, error) {
	if !slices.Contains(builtins.ReadMethods, r.Method) {
		t, err := c.newTransport(r)
		if err == nil {
			t.DisableKeepAlives = true
		}
		return t, err
	}
	return c.kept.get(kindOf(r), func() (*http.Transport, error) { return c.newTransport(r) })
}

func (c *Client) newTransport(r effect.Request) (*http.Transport, error) {
	config, err := tlsConfig(r)
	if err != nil {
		return nil, err
	}
	via := &proxies{}
	return &http.Transport{
		Proxy:                  via.of(c.o.Proxy, r),
		DialContext:            c.dialer(r.Hosts, via),
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    maxIdle,
		MaxIdleConns:           maxIdle,
		IdleConnTimeout:        keptFor,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswerHeaders,
	}, nil
}

// get returns the transport of a kind; the one that was not used for longest goes.
func (t *transports) get(k kind, open func() (*http.Transport, error)) (*http.Transport, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.of[k]
	if found == nil {
		var err error
		if found, err = open(); err != nil {
			return nil, err
		}
		if t.of == nil {
			t.of = map[kind]*http.Transport{}
		}
		t.of[k] = found
	}
	t.used = append(slices.DeleteFunc(t.used, func(other kind) bool { return other == k }), k)
	if len(t.used) > maxTransports {
		t.of[t.used[0]].CloseIdleConnections()
		delete(t.of, t.used[0])
		t.used = t.used[1:]
	}
	return found, nil
}

// Close closes the connections that are kept.
func (c *Client) Close() {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	for _, t := range c.kept.of {
		t.CloseIdleConnections()
	}
}
