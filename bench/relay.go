package main

import (
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// relay stands between a Starling and the API server, and notes each request.
type relay struct {
	server     *http.Server
	kubeconfig string

	mu    sync.Mutex
	plays *played  // what it serves itself; nil: nothing
	asked []string // method and URL
	last  time.Time
}

// startRelay starts a relay, which close ends.
func (b *bench) startRelay() (*relay, error) {
	config, err := adminConfig(b.kubeconfig)
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	certs := filepath.Join(b.dir, "relay.certs")
	if _, err := makeCerts(certs); err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{}
	if r.kubeconfig, err = b.kubeconfigOf("relay", "https://"+ln.Addr().String(), ca); err != nil {
		return nil, err
	}
	quiet := stdlog.New(io.Discard, "", 0)
	r.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, ErrorLog: quiet, Handler: r.noting(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) },
	})}
	go func() {
		_ = r.server.ServeTLS(ln, filepath.Join(certs, "tls.crt"), filepath.Join(certs, "tls.key")) // close ends it
	}()
	return r, nil
}

// noting notes requests before next serves them. The Lease is renewed all the time, for
// no module.
func (r *relay) noting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		plays := r.plays
		r.mu.Unlock()
		if plays.serves(w, req) {
			return
		}
		if !strings.Contains(req.URL.Path, "/leases/") {
			r.mu.Lock()
			r.asked, r.last = append(r.asked, req.Method+" "+req.URL.String()), time.Now()
			r.mu.Unlock()
		}
		next.ServeHTTP(w, req)
	})
}

// idle is how long ago the last request came.
func (r *relay) idle() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.last)
}

// take returns the requests since it was last called.
func (r *relay) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := slices.Clone(r.asked)
	r.asked = nil
	return asked
}

func (r *relay) close() error { return r.server.Close() }

// kubeconfigOf writes a kubeconfig that leads to another address, which shows a certificate
// of the authority ca; with nil that of the API server.
func (b *bench) kubeconfigOf(name, server string, ca []byte) (string, error) {
	config, err := clientcmd.LoadFromFile(b.kubeconfig)
	if err != nil {
		return "", err
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
		if ca != nil {
			cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", ca
		}
	}
	path := filepath.Join(b.dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// through has all that is started reach the API server by another kubeconfig, until the
// function that it returns is called. The client of the bench keeps its way.
func (b *bench) through(kubeconfig string) (back func()) {
	before := b.kubeconfig
	b.kubeconfig = kubeconfig
	return func() { b.kubeconfig = before }
}
