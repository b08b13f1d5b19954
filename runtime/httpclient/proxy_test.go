package httpclient

import (
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// forward is a proxy that notes what it is asked for, and goes nowhere but to one server.
func forward(t *testing.T, to string) (*httptest.Server, *[]string) {
	t.Helper()
	asked := &[]string{}
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		if r.Method != http.MethodConnect {
			io.WriteString(w, "of the proxy: "+r.URL.String())
			return
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		client, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			server.Close()
			return
		}
		io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() {
			io.Copy(server, client)
			server.Close()
		}()
		io.Copy(client, server)
		client.Close()
	}), asked
}

// A proxy of the environment may have any address; the hosts are those of the list all the same.
func TestProxies(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "of the server") }))
	defer s.Close()
	s.Config.ErrorLog = nil
	proxy, asked := forward(t, s.Listener.Addr().String())
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword("user", "hush")
	c := New(Options{Proxy: http.ProxyURL(at), Resolver: resolver(t, nil)}) // names are the proxy's to look up
	got, err := c.Fetch(t.Context(), request(t, "http://api.example", "api.example"))
	if err != nil || string(got.Body) != "of the proxy: http://api.example/?token=hush" && string(got.Body) != "of the proxy: http://api.example?token=hush" {
		t.Errorf("%s, %v", got.Body, err)
	}
	r := request(t, "https://example.com", "example.com") // for which the certificate of httptest is
	r.CA = ca(s)
	if got, err = c.Fetch(t.Context(), r); err != nil || string(got.Body) != "of the server" {
		t.Errorf("%s, %v", got.Body, err)
	}
	password := " Basic " + base64.StdEncoding.EncodeToString([]byte("user:hush"))
	if want := "GET api.example" + password + ", CONNECT example.com:443" + password; strings.Join(*asked, ", ") != want {
		t.Errorf("the proxy was asked for %q, want %s", *asked, want)
	}
	*asked = nil
	for _, hosts := range [][]string{nil, {"other.example"}} {
		_, err := c.Fetch(t.Context(), request(t, "http://api.example", hosts...))
		wantError(t, err, "is not listed", true)
	}
	_, err = c.Fetch(t.Context(), request(t, "http://169.254.169.254", "api.example"))
	wantError(t, err, "is not listed", true)
	if len(*asked) > 0 {
		t.Errorf("the proxy was asked for %q", *asked)
	}
	// Hosts without a proxy are checked as ever.
	c = New(Options{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, Resolver: resolver(t, map[string]string{"api.example.": "127.0.0.1"})})
	_, err = c.Fetch(t.Context(), request(t, "http://api.example", "api.example"))
	wantError(t, err, "api.example leads to 127.0.0.1", true)
}

func TestProxiesThatCannotBeUsed(t *testing.T) {
	c := New(Options{Proxy: func(*http.Request) (*url.URL, error) {
		return nil, errors.New(`invalid proxy address "http://user:hush@["`)
	}})
	_, err := c.Fetch(t.Context(), request(t, "http://api.example", "api.example"))
	wantError(t, err, "the proxy that the environment names (HTTP_PROXY, HTTPS_PROXY) is no URL", true)
	c = New(Options{Proxy: http.ProxyURL(&url.URL{Scheme: "https", Host: "proxy.example"})})
	r := request(t, "https://api.example", "api.example")
	r.Insecure = true
	_, err = c.Fetch(t.Context(), r)
	wantError(t, err, "cannot go by way of a proxy that speaks https", true)
	down := httptest.NewServer(nil)
	down.Close()
	at, _ := url.Parse(down.URL)
	_, err = New(Options{Proxy: http.ProxyURL(at)}).Fetch(t.Context(), request(t, "https://api.example", "api.example"))
	wantError(t, err, "connection refused", false)
}

func TestAddressesOfProxies(t *testing.T) {
	for text, want := range map[string]string{
		"http://proxy": "proxy:80", "https://proxy": "proxy:443", "socks5://proxy": "proxy:1080", "http://proxy:3128/": "proxy:3128", "http://[fd00::1]": "[fd00::1]:80",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := addressOf(u); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
