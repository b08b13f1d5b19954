package httpclient

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// A connection serves the next request of the same kind, and no other.
func TestConnectionsAreKept(t *testing.T) {
	made := atomic.Int32{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Resolver: resolver(t, map[string]string{"api.example.": "127.0.0.1"})})
	t.Cleanup(c.Close)
	where := "http://api.example:" + at.Port()
	ask := func(method string, want int32, hosts ...string) {
		t.Helper()
		r := request(t, where, hosts...)
		r.Method = method
		before := made.Load()
		if _, err := c.Fetch(t.Context(), r); err != nil {
			t.Error(err)
		}
		if got := made.Load() - before; got != want {
			t.Errorf("%s to %v: %d new connections, want %d", method, hosts, got, want)
		}
	}
	ask("GET", 1, "api.example", "127.0.0.1")
	ask("GET", 0, "api.example", "127.0.0.1")
	ask("HEAD", 0, "api.example", "127.0.0.1")
	ask("POST", 1, "api.example", "127.0.0.1") // such a request is not made twice, so a kept one may fail it
	ask("POST", 1, "api.example", "127.0.0.1")
	ask("GET", 0, "api.example", "127.0.0.1")
	ask("GET", 1, "api.example", "127.0.0.0/8") // another module
	_, err = c.Fetch(t.Context(), request(t, where, "api.example"))
	wantError(t, err, "api.example leads to 127.0.0.1", true) // whatever others have opened
	c.Close()
	ask("GET", 1, "api.example", "127.0.0.1")
}

func TestKindsOfConnections(t *testing.T) {
	seen := map[kind]effect.Request{}
	for _, hosts := range [][]string{nil, {"a"}, {"a", "b"}, {"a:80"}} {
		base := request(t, "http://a", hosts...)
		for _, change := range []func(*effect.Request){
			func(*effect.Request) {}, func(r *effect.Request) { r.CA = "x" }, func(r *effect.Request) { r.Cert = "x" },
			func(r *effect.Request) { r.CertKey = "x" }, func(r *effect.Request) { r.ServerName = "x" }, func(r *effect.Request) { r.Insecure = true },
		} {
			r := base
			change(&r)
			if other, twice := seen[kindOf(r)]; twice {
				t.Errorf("%+v and %+v have one connection", r, other)
			}
			seen[kindOf(r)] = r
			r.URL, r.Timeout, r.Headers = "http://b", 1, nil
			if _, same := seen[kindOf(r)]; !same {
				t.Errorf("%+v has another connection for its URL or headers", r)
			}
		}
	}
}

func TestKindsOfConnectionsAreBounded(t *testing.T) {
	c := New(Options{})
	first := request(t, "http://a", "a")
	for i := range 3 * maxTransports {
		r := request(t, "http://a", strings.Repeat("a", i%60+1), fmt.Sprintf("h%d", i))
		for _, r := range []effect.Request{r, first} {
			if _, err := c.transport(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(c.kept.of); n != maxTransports || len(c.kept.used) != n || c.kept.of[kindOf(first)] == nil {
		t.Errorf("%d transports, %d used, the first one: %v", n, len(c.kept.used), c.kept.of[kindOf(first)])
	}
}
