package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/runtime/pki"
)

// selfSigned makes a certificate of 127.0.0.1 that is its own authority.
func selfSigned(t *testing.T) (*tls.Certificate, []byte) {
	t.Helper()
	c, err := pki.Issue(&x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, pki.CertificatesPEM(c.Leaf)
}

// Once the server shows a certificate of another authority, the file is read again: the request after the first
// one that has failed is answered, by all clients of a configuration. A file that holds none changes nothing.
func TestAnAuthorityThatIsReplaced(t *testing.T) {
	var shows atomic.Pointer[tls.Certificate]
	show := func(c *tls.Certificate) { shows.Store(c) }
	first, firstPEM := selfSigned(t)
	second, secondPEM := selfSigned(t)
	show(first)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*shows.Load()}}, nil
	}}
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(string(firstPEM))
	c, err := New(Options{Config: &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: file}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease, err := rest.HTTPClientFor(c.UnfencedConfig())
	if err != nil {
		t.Fatal(err)
	}
	ask := func() (wrong []string) {
		if err := c.rest.Get().AbsPath("/version").MaxRetries(0).Do(t.Context()).Error(); err != nil {
			wrong = append(wrong, err.Error())
		}
		resp, err := lease.Get(server.URL)
		if err != nil {
			return append(wrong, err.Error())
		}
		_ = resp.Body.Close()
		return wrong
	}
	fails := func(text string) {
		t.Helper()
		for _, wrong := range ask() {
			if !strings.Contains(wrong, text) {
				t.Error(wrong)
			}
		}
	}
	if wrong := ask(); wrong != nil {
		t.Fatal(wrong)
	}
	show(second)
	server.CloseClientConnections()
	for _, text := range []string{string(firstPEM), "", "none"} {
		write(text)
		if got := len(ask()); got != 2 {
			t.Errorf("with the file %q %d requests failed", text, got)
		}
	}
	fails("unknown authority")
	write(string(secondPEM))
	fails("unknown authority")
	if wrong := ask(); wrong != nil {
		t.Error(wrong)
	}
	// And back.
	show(first)
	server.CloseClientConnections()
	write(string(firstPEM))
	fails("unknown authority")
	if wrong := ask(); wrong != nil {
		t.Error(wrong)
	}
}

// A token that is refused is read again: the request after the first one that has failed has the new one, by all
// clients of a configuration.
func TestATokenThatIsReplaced(t *testing.T) {
	var good atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*good.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "token")
	put := func(token string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("first")
	good.Store(new("first"))
	c, err := New(Options{Config: &rest.Config{Host: server.URL, BearerToken: "first", BearerTokenFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lease, err := rest.HTTPClientFor(c.UnfencedConfig())
	if err != nil {
		t.Fatal(err)
	}
	// ask says of both clients whether they are let in.
	ask := func() (in [2]bool) {
		t.Helper()
		err := c.rest.Get().AbsPath("/version").MaxRetries(0).Do(t.Context()).Error()
		resp, wrong := lease.Get(server.URL)
		if wrong != nil || err != nil && !apierrors.IsUnauthorized(err) {
			t.Fatal(err, wrong)
		}
		_ = resp.Body.Close()
		return [2]bool{err == nil, resp.StatusCode == http.StatusOK}
	}
	yes := [2]bool{true, true}
	if got := ask(); got != yes {
		t.Fatal(got)
	}
	good.Store(new("second"))
	if got := ask(); got != [2]bool{} {
		t.Error(got)
	}
	put("second")
	// Both clients have one source: a token is read once.
	if ask(); ask() != yes {
		t.Errorf("the new token is not used")
	}
}
