package httpclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
)

// request is a GET to the URL of a test, in which a token stands that no error may show.
func request(t *testing.T, url string, hosts ...string) effect.Request {
	t.Helper()
	list, err := effect.ParseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return effect.Request{Method: "GET", URL: url + "?token=hush", Timeout: time.Minute, Hosts: list,
		Headers: map[string]string{"X-Token": "hush", "Authorization": "hush"}}
}

func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s
}

func wantError(t *testing.T, err error, want string, permanent bool) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("no error, want %q", want)
	case !strings.Contains(err.Error(), want):
		t.Errorf("got %q, want %q", err, want)
	case strings.Contains(err.Error(), "hush"):
		t.Errorf("%q shows the token", err)
	case Permanent(err) != permanent:
		t.Errorf("%q: permanent is %v", err, !permanent)
	}
}

func TestFetch(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // the client alone does not look at it
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("X-Many", "a")
		w.Header().Add("X-Many", "b")
		w.WriteHeader(404)
		io.WriteString(w, r.Method+" "+r.Header.Get("X-Token")+" "+r.UserAgent()+" "+r.URL.RawQuery)
	})
	got, err := New(Options{UserAgent: "starling/test"}).Fetch(t.Context(), request(t, s.URL, "127.0.0.1"))
	if err != nil || got.Status != 404 || got.Headers["x-many"] != "a, b" || string(got.Body) != "GET hush starling/test token=hush" {
		t.Errorf("%+v, %s, %v", got, got.Body, err)
	}
}

func TestOnlyListedHostsAreReached(t *testing.T) {
	reached := 0
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached++ })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New(Options{Resolver: resolver(t, map[string]string{
		"inside.example.": "127.0.0.1", "metadata.example.": "169.254.169.254", "mapped.example.": "0.0.0.0",
	})})
	for _, test := range []struct {
		url   string
		hosts []string
		want  string
	}{
		{s.URL, nil, "the host 127.0.0.1:" + port + " is not listed in module(http = […])"},
		{s.URL, []string{"example.com"}, "is not listed"},
		{s.URL, []string{"127.0.0.1:1"}, "is not listed"},
		{s.URL, []string{"127.0.0.0/8"}, ""},
		{"http://localhost:" + port, []string{"127.0.0.1"}, "is not listed"},
		{"http://localhost:" + port, []string{"localhost"}, ""},
		// A listed name that leads to what is not listed.
		{"http://inside.example:" + port, []string{"inside.example"}, "inside.example leads to 127.0.0.1, which is no public address; add \"127.0.0.1\""},
		{"http://metadata.example", []string{"metadata.example", "10.0.0.0/8"}, "leads to 169.254.169.254"},
		{"http://mapped.example:" + port, []string{"mapped.example"}, "leads to 0.0.0.0"},
		{"http://inside.example:" + port, []string{"inside.example", "127.0.0.0/8"}, ""},
		{"http://inside.example:" + port, []string{"127.0.0.0/8"}, "is not listed"}, // a range lists no names
		{"file:///etc/passwd", []string{"127.0.0.1"}, "only http and https"},
	} {
		before := reached
		_, err := c.Fetch(t.Context(), request(t, test.url, test.hosts...))
		if test.want == "" {
			if err != nil || reached != before+1 {
				t.Errorf("%s, %v: %v", test.url, test.hosts, err)
			}
			continue
		}
		wantError(t, err, test.want, true)
		if reached != before {
			t.Errorf("%s, %v: reached", test.url, test.hosts)
		}
	}
}

// A name that a user has written, and that leads to this machine or to the link by now, is not asked.
func TestNamesThatAreFoundMayLeadElsewhereLater(t *testing.T) {
	reached := 0
	s := serve(t, func(http.ResponseWriter, *http.Request) { reached++ })
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	c := New(Options{Resolver: resolver(t, map[string]string{"ldap.corp.": "127.0.0.1", "link.corp.": "169.254.169.254"})})
	for url, want := range map[string]string{"http://ldap.corp:" + port: "ldap.corp leads to 127.0.0.1", "http://link.corp": "link.corp leads to 169.254.169.254"} {
		found, err := effect.FoundText(url)
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, url)
		r.Hosts = effect.Hosts{found}
		_, err = c.Fetch(t.Context(), r)
		wantError(t, err, want, true)
	}
	if reached > 0 {
		t.Error("reached")
	}
}

func TestRedirects(t *testing.T) {
	type seen struct{ path, token, authorization, referer, body string }
	var got []seen
	note := func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, seen{r.URL.Path, r.Header.Get("X-Token"), r.Header.Get("Authorization"), r.Referer(), string(body)})
	}
	var first *httptest.Server
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		if r.URL.Path == "/back" {
			http.Redirect(w, r, first.URL+"/end", http.StatusTemporaryRedirect)
		}
	})
	first = serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		switch to := strings.TrimPrefix(r.URL.Path, "/"); to {
		case "self":
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
		case "found":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "see":
			http.Redirect(w, r, "/end", http.StatusSeeOther)
		case "loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "other", "back":
			http.Redirect(w, r, other.URL+"/"+to, http.StatusTemporaryRedirect)
		case "evil":
			http.Redirect(w, r, "http://evil.example/hush", http.StatusFound)
		case "file":
			http.Redirect(w, r, "file:///hush", http.StatusFound)
		case "broken":
			w.Header().Set("Location", "http://[hush")
			w.WriteHeader(http.StatusFound)
		}
	})
	c := New(Options{})
	hosts := []string{strings.TrimPrefix(first.URL, "http://"), strings.TrimPrefix(other.URL, "http://")}
	const token = "hush"
	for _, test := range []struct {
		path, body string
		err        string
		permanent  bool
		last       seen
	}{
		{"self", "", "", false, seen{"/end", token, token, "", ""}},
		{"found", "", "", false, seen{"/end", token, token, "", ""}},
		{"self", "text", "", false, seen{"/end", token, token, "", "text"}},
		{"found", "text", "the server answered 302 Found", true, seen{"/found", token, token, "", "text"}},
		{"see", "text", "", false, seen{"/see", token, token, "", "text"}},
		{"other", "", "", false, seen{"/other", "", "", "", ""}},
		{"back", "", "", false, seen{"/end", "", "", "", ""}},
		{"other", "text", "a redirect to another host is not followed with a body", true, seen{"/other", token, token, "", "text"}},
		{"evil", "", "a redirect is not followed: the host evil.example is not listed", true, seen{"/evil", token, token, "", ""}},
		{"file", "", "a redirect is not followed: only http and https", true, seen{"/file", token, token, "", ""}},
		{"loop", "", "more than 5 redirects", true, seen{"/loop", token, token, "", ""}},
		{"broken", "", "the server redirects to no URL", false, seen{"/broken", token, token, "", ""}},
	} {
		got = nil
		r := request(t, first.URL+"/"+test.path, hosts...)
		if test.body != "" {
			r.Method, r.Body = "POST", []byte(test.body)
		}
		err := c.Send(t.Context(), r)
		if test.err != "" {
			wantError(t, err, test.err, test.permanent)
		} else if err != nil {
			t.Errorf("%s: %v", test.path, err)
		}
		if n := len(got); n == 0 || n > 6 || got[n-1] != test.last {
			t.Errorf("%s: got %+v, want %+v at last", test.path, got, test.last)
		}
	}

	secure := httptest.NewTLSServer(http.RedirectHandler(first.URL, http.StatusFound))
	defer secure.Close()
	r := request(t, secure.URL, append(hosts, "127.0.0.1")...)
	r.CA = ca(secure)
	wantError(t, c.Send(t.Context(), r), "a redirect from https to http is not followed", true)
}

func ca(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestServersAreVerified(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	s.Config.ErrorLog = nil
	c := New(Options{})
	r := request(t, s.URL, "127.0.0.1")
	_, err := c.Fetch(t.Context(), r)
	wantError(t, err, "certificate", false)
	r.CA = ca(s)
	if _, err := c.Fetch(t.Context(), r); err != nil {
		t.Error(err)
	}
	r.CA = "hush"
	_, err = c.Fetch(t.Context(), r)
	wantError(t, err, "ca holds no certificate", true)
}

func TestBadAnswers(t *testing.T) {
	hang := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			for range MaxAnswer>>20 + 1 {
				w.Write(bytes.Repeat([]byte("x"), 1<<20))
			}
		case "/headers":
			w.Header().Set("X", strings.Repeat("x", maxAnswerHeaders+1))
		case "/hang":
			<-hang
		case "/malformed":
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "hush hush\r\n\r\n")
			conn.Close()
		}
	})
	c := New(Options{})
	for path, want := range map[string]string{
		"large": "the answer is larger than 8 MiB", "headers": "exceeded", "malformed": "the server does not answer in HTTP",
	} {
		_, err := c.Fetch(t.Context(), request(t, s.URL+"/"+path, "127.0.0.1"))
		wantError(t, err, want, false)
	}
	r := request(t, s.URL+"/hang", "127.0.0.1")
	r.Timeout = 50 * time.Millisecond
	_, err := c.Fetch(t.Context(), r)
	wantError(t, err, "no whole answer within 50ms", false)
	close(hang)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Fetch(ended, request(t, s.URL, "127.0.0.1"))
	wantError(t, err, "context canceled", false)
	if errors.As(err, new(*builtins.NoAnswerError)) {
		t.Error("a run that is over gets the default of http.get")
	}
	_, err = c.Fetch(t.Context(), request(t, strings.Replace(s.URL, "http:", "https:", 1), "127.0.0.1"))
	wantError(t, err, "the server speaks http, not https", false)
	s.Close()
	_, err = c.Fetch(t.Context(), request(t, s.URL, "127.0.0.1"))
	wantError(t, err, "connection refused", false)
	if !errors.As(err, new(*builtins.NoAnswerError)) {
		t.Error("a server that is down is not one that has not answered")
	}
	_, err = New(Options{Resolver: resolver(t, nil)}).Fetch(t.Context(), request(t, "http://gone.example", "gone.example"))
	wantError(t, err, "no such host", false)
}

// A server may ask for a day, as where a quota is used up, and it may say so by a date.
func TestWhenAServerWantsToBeAskedAgain(t *testing.T) {
	later := time.Now().Add(24 * time.Hour).UTC().Format(http.TimeFormat)
	for text, least := range map[string]time.Duration{"": 0, "soon": 0, "-5": 0, "7": 7 * time.Second, "86400": 24 * time.Hour, "1" + strings.Repeat("0", 30): 24 * time.Hour,
		later: 23 * time.Hour, "Sun, 06 Nov 1994 08:49:37 GMT": 0} {
		if got := retryAfter(text); got < least || (got > 0) != (least > 0) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestSend(t *testing.T) {
	status, after := 200, ""
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	})
	for _, test := range []struct {
		status    int
		after     string
		err       string
		permanent bool
		retry     time.Duration
	}{
		{200, "", "", false, 0}, {204, "", "", false, 0}, {303, "", "", false, 0},
		{304, "", "304 Not Modified", true, 0}, {400, "", "400 Bad Request", true, 0}, {404, "9", "404", true, 9 * time.Second},
		{408, "", "408", false, 0}, {425, "", "425", false, 0}, {429, "120", "429 Too Many Requests", false, 2 * time.Minute},
		{500, "soon", "500", false, 0}, {503, "-1", "503", false, 0},
	} {
		status, after = test.status, test.after
		r := request(t, s.URL, "127.0.0.1")
		r.Method, r.Body = "POST", []byte("hush")
		err := New(Options{}).Send(t.Context(), r)
		if test.err == "" {
			if err != nil {
				t.Errorf("%d: %v", test.status, err)
			}
			continue
		}
		wantError(t, err, test.err, test.permanent)
		var of *StatusError
		if !errors.As(err, &of) || of.RetryAfter != test.retry {
			t.Errorf("%d: retry after %+v", test.status, of)
		}
	}
}

// resolver answers questions for IPv4 addresses out of a table, by names that end in
// a dot, without a network.
func resolver(t *testing.T, table map[string]string) *net.Resolver {
	t.Helper()
	answer := func(question []byte) []byte {
		end, name := 12, ""
		for question[end] != 0 {
			n := int(question[end])
			name += string(question[end+1:end+1+n]) + "."
			end += 1 + n
		}
		kind := binary.BigEndian.Uint16(question[end+1:])
		out := append([]byte{}, question[:2]...)
		addr, known := table[strings.ToLower(name)]
		switch {
		case !known:
			out = append(out, 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0)
		case kind != 1: // no A
			out = append(out, 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
		default:
			out = append(out, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0)
		}
		out = append(out, question[12:end+5]...)
		if known && kind == 1 {
			out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
			out = append(out, netip.MustParseAddr(addr).AsSlice()...)
		}
		return out
	}
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		go func() { // as over TCP: each message with its length before it
			defer there.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(there, size[:]); err != nil {
					return
				}
				question := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(there, question); err != nil {
					return
				}
				reply := answer(question)
				if _, err := there.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
					return
				}
			}
		}()
		return here, nil
	}}
}
