package httpclient

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/pki"
)

// clientCert is a certificate of a client that is its own authority, and its key.
func clientCert(t *testing.T) (cert, key string) {
	t.Helper()
	made, err := pki.Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "hook"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	crt, private, err := pki.PEM(made)
	if err != nil {
		t.Fatal(err)
	}
	return string(crt), string(private)
}

func TestClientCertificates(t *testing.T) {
	cert, key := clientCert(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.TLS.PeerCertificates[0].Subject.CommonName)
	}))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(cert))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MaxVersion: tls.VersionTLS12} // which ends the handshake where no certificate comes
	s.Config.ErrorLog = nil
	s.StartTLS()
	defer s.Close()
	c := New(Options{})
	r := request(t, s.URL, "127.0.0.1")
	r.CA = ca(s)
	_, err := c.Fetch(t.Context(), r)
	wantError(t, err, "tls: ", false)
	r.Cert, r.CertKey = cert, key
	if got, err := c.Fetch(t.Context(), r); err != nil || string(got.Body) != "hook" {
		t.Errorf("%s, %v", got.Body, err)
	}
	if err := c.Send(t.Context(), r); err != nil {
		t.Errorf("sent: %v", err)
	}
	_, other := clientCert(t)
	r.CertKey = other
	_, err = c.Fetch(t.Context(), r)
	wantError(t, err, "cert and key are no certificate with its key", true)
	if strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("%q shows a key", err)
	}
}

// The certificate of httptest is for example.com and 127.0.0.1.
func TestServerNames(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	s.Config.ErrorLog = nil
	c := New(Options{})
	for _, test := range []struct {
		name     string
		insecure bool
		ca       string
		err      string
	}{
		{"", false, ca(s), ""},
		{"example.com", false, ca(s), ""},
		{"other.example", false, ca(s), "other.example"},
		{"", false, "", "certificate"},
		{"", true, "", ""},
	} {
		r := request(t, s.URL, "127.0.0.1")
		r.ServerName, r.Insecure, r.CA = test.name, test.insecure, test.ca
		_, err := c.Fetch(t.Context(), r)
		sent := c.Send(t.Context(), r)
		if test.err == "" {
			if err != nil || sent != nil {
				t.Errorf("%+v: %v, sent: %v", test, err, sent)
			}
			continue
		}
		wantError(t, err, test.err, false)
		wantError(t, sent, test.err, false)
	}
}

// A request that is set up for one server goes to no other, even a listed one, and the hook
// hears of that as of a server without an answer.
func TestRedirectsOfRequestsForOneServer(t *testing.T) {
	reached := 0
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	s := httptest.NewTLSServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer s.Close()
	r := request(t, s.URL, "127.0.0.1")
	r.Insecure = true
	_, err := New(Options{}).Fetch(t.Context(), r)
	wantError(t, err, "a redirect to another host is not followed with cert, server_name or insecure", false)
	if !errors.As(err, new(*builtins.NoAnswerError)) || reached > 0 {
		t.Errorf("%v; the other server was reached %d times", err, reached)
	}
	away := serve(t, http.RedirectHandler("http://evil.example/hush", http.StatusFound).ServeHTTP)
	if _, err = New(Options{}).Fetch(t.Context(), request(t, away.URL, "127.0.0.1")); !errors.As(err, new(*builtins.NoAnswerError)) {
		t.Errorf("a server that redirects to a host that is not listed: %v", err)
	}
	if _, err = New(Options{}).Fetch(t.Context(), request(t, away.URL, "10.0.0.1")); err == nil || errors.As(err, new(*builtins.NoAnswerError)) {
		t.Errorf("a host that is not listed itself: %v", err)
	}
}

func TestAnswersHaveTheSizeThatIsAskedFor(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(append([]byte(r.Method+" "), body...))
	})
	r := request(t, s.URL, "127.0.0.1")
	r.Method, r.Body, r.MaxBytes = "PUT", []byte("\xff\x00"), 6
	if got, err := New(Options{}).Fetch(t.Context(), r); err != nil || string(got.Body) != "PUT \xff\x00" {
		t.Errorf("%q, %v", got.Body, err)
	}
	r.MaxBytes = 5
	_, err := New(Options{}).Fetch(t.Context(), r)
	wantError(t, err, "the answer is larger than 5 bytes", false)
}

// Commands that only look let nothing leave that may change something.
func TestReadOnly(t *testing.T) {
	reached := ""
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { reached += r.Method + " " })
	c := New(Options{ReadOnly: true})
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"} {
		r := request(t, s.URL, "127.0.0.1")
		r.Method = method
		_, err := c.Fetch(t.Context(), r)
		if err != nil && !errors.As(err, new(*builtins.NoAnswerError)) {
			t.Errorf("%s: %v", method, err)
		}
	}
	if reached != "GET HEAD OPTIONS " {
		t.Errorf("reached with %s", reached)
	}
}

func TestGatherKeepsTheOrder(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	var requests []effect.Request
	for _, path := range []string{"/a", "/b", "/c"} {
		requests = append(requests, request(t, s.URL+path, "127.0.0.1"))
	}
	requests[1].Hosts = nil
	got := New(Options{}).Gather(t.Context(), requests, 2)
	if len(got) != 3 || string(got[0].Body) != "/a" || got[1].Err == nil || string(got[2].Body) != "/c" {
		t.Errorf("%+v", got)
	}
}

func TestGatherAsksSideBySide(t *testing.T) {
	arrived, release := make(chan string, 10), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.URL.Path
		<-release
	})
	requests := make([]effect.Request, 5)
	for i := range requests {
		requests[i] = request(t, s.URL, "127.0.0.1")
	}
	done := make(chan []builtins.Gathered)
	go func() { done <- New(Options{}).Gather(t.Context(), requests, 3) }()
	for range 3 {
		<-arrived
	}
	select {
	case <-arrived:
		t.Error("a fourth request is under way")
	default:
	}
	close(release)
	for i, a := range <-done {
		if a.Err != nil || a.Status != 200 {
			t.Errorf("%d: %+v", i, a)
		}
	}
}

func TestGatheredAnswersHaveABoundTogether(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for range MaxAnswer >> 20 {
			w.Write(bytes.Repeat([]byte("x"), 1<<20))
		}
	})
	requests := make([]effect.Request, maxTogether/MaxAnswer+1)
	for i := range requests {
		requests[i] = request(t, s.URL, "127.0.0.1")
	}
	got := New(Options{}).Gather(t.Context(), requests, 1)
	for i, a := range got[:len(got)-1] {
		if a.Err != nil {
			t.Errorf("%d: %v", i, a.Err)
		}
	}
	wantError(t, got[len(got)-1].Err, "the answers are larger than 64 MiB together", false)
}

// A hook waits no longer than timeout=, and reads no more than max_bytes=, of servers without an end.
func TestServersWithoutEnd(t *testing.T) {
	sent := make(chan int64, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/drips": // something always comes
			for r.Context().Err() == nil {
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		case "/gigabyte":
			w.Header().Set("Content-Length", "1073741824")
			n := int64(0)
			for chunk := bytes.Repeat([]byte("x"), 1<<20); n < 1<<30; n += 1 << 20 {
				if _, err := w.Write(chunk); err != nil {
					break
				}
			}
			sent <- n
		}
	})
	r := request(t, s.URL+"/drips", "127.0.0.1")
	r.Timeout = 100 * time.Millisecond
	_, err := New(Options{}).Fetch(t.Context(), r)
	wantError(t, err, "no whole answer within 100ms", false)
	_, err = New(Options{}).Fetch(t.Context(), request(t, s.URL+"/gigabyte", "127.0.0.1"))
	wantError(t, err, "the answer is larger than 8 MiB", false)
	if n := <-sent; n == 1<<30 {
		t.Error("the server could send all of it")
	}
}

// A server that is reached by a name which its certificate does not have has not answered.
func TestServersOfOtherNames(t *testing.T) {
	reached := false
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	r := request(t, strings.Replace(s.URL, "127.0.0.1", "wrong.test", 1), "wrong.test", "127.0.0.1")
	r.CA = ca(s)
	_, err := New(Options{Resolver: resolver(t, map[string]string{"wrong.test.": "127.0.0.1"})}).Fetch(t.Context(), r)
	wantError(t, err, "not wrong.test", false)
	if !errors.As(err, new(*builtins.NoAnswerError)) || reached {
		t.Errorf("%v; reached: %t", err, reached)
	}
}
