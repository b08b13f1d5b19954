package httpclient

import (
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/starling-operator/starling/runtime/effect"
)

// proxies are those by way of which one request, with its redirects, goes. The operator has
// named them in the environment, so they may have any address.
type proxies struct {
	mu sync.Mutex
	at map[string]bool // "host:port"
}

// of is the choice of a proxy for one request; nil without one. An error of choose may hold
// a password, and is not shown.
func (p *proxies) of(choose func(*http.Request) (*url.URL, error), r effect.Request) func(*http.Request) (*url.URL, error) {
	if choose == nil {
		return nil
	}
	return func(req *http.Request) (*url.URL, error) {
		proxy, err := choose(req)
		switch {
		case err != nil:
			return nil, &RefusedError{msg: "the proxy that the environment names (HTTP_PROXY, HTTPS_PROXY) is no URL"}
		case proxy == nil:
			return nil, nil
		case proxy.Scheme == "https" && (r.CA != "" || r.Special()):
			// They would be for the proxy, too.
			return nil, &RefusedError{msg: "a request with ca, cert, server_name or insecure cannot go by way of a proxy that speaks https; name its host in NO_PROXY, or the proxy with http://"}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.at == nil {
			p.at = map[string]bool{}
		}
		p.at[addressOf(proxy)] = true
		return proxy, nil
	}
}

// has says whether a connection goes to a proxy.
func (p *proxies) has(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[address]
}

// addressOf is "host:port" of a proxy, as it is dialed.
func addressOf(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}
