package httpserver

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/starling-operator/starling/builtins"
)

// two are a process that leads, and one that hands requests to it.
func two(t *testing.T, certs [2]string, bindings func() []*builtins.ReceiveBinding) (leads, stands *world) {
	t.Helper()
	leads, stands = newWorld(t, bindings()...), newWorld(t, bindings()...)
	leads.name = "a_1"
	ln, err := Listen("127.0.0.1:0", certs[0])
	if err != nil {
		t.Fatal(err)
	}
	leads.s.Start(ln)
	t.Cleanup(leads.s.Stop)
	own, err := Listen("127.0.0.1:0", certs[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { own.Close() })
	f := NewForwarder(own)
	t.Cleanup(f.Close)
	stands.other = func(ctx context.Context, in Incoming) (builtins.Response, error) {
		return f.Forward(ctx, Peer{Name: "a_1", Address: ln.Addr().String()}, in)
	}
	return leads, stands
}

func TestRequestsAreForwardedAsTheyCame(t *testing.T) {
	leads, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding {
		return []*builtins.ReceiveBinding{
			{Path: "/a b", Signature: builtins.SignatureGitHub, Secret: ref("token"), Once: time.Hour}, {Path: "/open", Methods: []string{"PUT"}},
		}
	})
	signed := func(body string) []string {
		return []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(sum(body, token)), "X-Event", "push", "Connection", "X-Hop", "X-Hop", "1"}
	}
	leads.answer = func(r *builtins.Request) (builtins.Response, error) {
		return builtins.Response{Reply: &builtins.Reply{Status: 201, ContentType: "application/json", Body: []byte(`{"made":1}`)}}, nil
	}
	resp, text := stands.do("POST", "/a%20b?x=1&y=%2F", `{"n":1}`, signed(`{"n":1}`)...)
	if resp.StatusCode != 201 || text != `{"made":1}` || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s, %v", resp.StatusCode, text, resp.Header)
	}
	got := leads.asked[0].Received
	if got.Path != "/a b" || got.Method != "POST" || got.Query["x"] != "1" || got.Query["y"] != "/" || got.Body != `{"n":1}` || got.Headers["x-event"] != "push" {
		t.Errorf("the hook sees %+v", got)
	}
	for name := range got.Headers {
		if strings.HasPrefix(name, "starling-") || name == "x-hop" || name == "user-agent" || name == "accept-encoding" {
			t.Errorf("the hook sees the header %s", name)
		}
	}
	if resp, text := stands.do("POST", "/a%20b", `{"n":1}`, signed(`{"n":1}`)...); resp.StatusCode != 200 || text != "this request was taken before" {
		t.Errorf("once more: %d %s", resp.StatusCode, text)
	}

	// Both check: the one that hands requests on asks nobody about one that is not signed.
	if resp, _ := stands.do("POST", "/a%20b", `{"n":2}`, signed(`{"n":1}`)...); resp.StatusCode != 401 {
		t.Errorf("a wrong signature: %d", resp.StatusCode)
	}
	if len(leads.observed) != 1 {
		t.Errorf("%q", leads.observed)
	}

	leads.answer = func(*builtins.Request) (builtins.Response, error) { return builtins.Response{}, nil }
	if resp, text := stands.do("PUT", "/open", ""); resp.StatusCode != 200 || text != "" || len(resp.Header.Values("Content-Type")) > 0 {
		t.Errorf("an answer without anything: %d %q %v", resp.StatusCode, text, resp.Header)
	}
	leads.answer = func(*builtins.Request) (builtins.Response, error) {
		return builtins.Response{}, &builtins.FailError{RetryAfter: 7 * time.Second}
	}
	if resp, text := stands.do("PUT", "/open", "x"); resp.StatusCode != 503 || text != "try again later" || resp.Header.Get("Retry-After") != "7" {
		t.Errorf("a hook that fails: %d %q %v", resp.StatusCode, text, resp.Header)
	}
	if len(resp.Header.Values(forwardedHeader)) > 0 {
		t.Error("senders see that a request was handed on")
	}
}

// The process that leads trusts nobody: it checks each signature once more.
func TestForwardedRequestsAreChecked(t *testing.T) {
	leads, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding {
		return []*builtins.ReceiveBinding{{Path: "/github", Signature: builtins.SignatureGitHub, Secret: ref("token")}}
	})
	leads.secret = "another one"
	resp, text := stands.do("POST", "/github", "{}", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum("{}", token)))
	if resp.StatusCode != 401 || !strings.Contains(text, "the signature is missing, wrong or too old") || len(leads.asked) > 0 {
		t.Errorf("got %d %s, and the hook has seen %d", resp.StatusCode, text, len(leads.asked))
	}
}

// A token goes no further than to the process that has checked it: the next one gets a proof, for this request alone.
func TestTokensAreNotForwarded(t *testing.T) {
	for _, kind := range []struct {
		signature     builtins.Signature
		header, value string
	}{
		{builtins.SignatureBearer, "Authorization", "Bearer " + token}, {builtins.SignatureGitLab, "X-Gitlab-Token", token}, {"", "Authorization", "Bearer " + token},
	} {
		bindings := func() []*builtins.ReceiveBinding {
			b := &builtins.ReceiveBinding{Path: "/a b", Signature: kind.signature, Once: time.Hour}
			if kind.signature != "" {
				b.Secret = ref("token")
			}
			return []*builtins.ReceiveBinding{b, {Path: "/other", Signature: kind.signature, Secret: b.Secret}}
		}
		leads, stands := two(t, [2]string{}, bindings)
		var seen *http.Request
		handler := leads.s.http.Handler
		leads.s.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r.Clone(context.Background())
			handler.ServeHTTP(w, r)
		})
		for range 2 { // the same once more is another request
			if resp, text := stands.do("POST", "/a%20b?", "{}", kind.header, kind.value, "Cookie", "x="+token); resp.StatusCode != 200 || text != "" {
				t.Errorf("%s: %d %s", kind.signature, resp.StatusCode, text)
			}
		}
		if text := fmt.Sprint(seen.Header); len(leads.asked) != 2 || strings.Contains(text, token) {
			t.Errorf("%s: the hook has seen %d, headers %s", kind.signature, len(leads.asked), text)
		}
		if kind.signature == "" {
			continue
		}
		if text := fmt.Sprint(leads.asked[0].Received.Headers); strings.Contains(text, "proof") {
			t.Errorf("%s: the hook sees %s", kind.signature, text)
		}
		proof, to := seen.Header.Get(tokenHeader), seen.Header.Get(forwardedHeader)
		for what, r := range map[string][]string{
			"another body": {"POST", "/a%20b", "{1}", to, proof}, "another path": {"POST", "/other", "{}", to, proof}, "another query": {"POST", "/a%20b?x", "{}", to, proof},
			"a broken proof": {"POST", "/a%20b", "{}", to, "%"}, "no process": {"POST", "/a%20b", "{}", "", proof},
		} {
			headers := []string{tokenHeader, r[4]}
			if r[3] != "" {
				headers = append(headers, forwardedHeader, r[3])
			}
			if resp, _ := leads.do(r[0], r[1], r[2], headers...); resp.StatusCode != 401 {
				t.Errorf("%s, %s: %d", kind.signature, what, resp.StatusCode)
			}
		}
		leads.name = "a_2"
		if resp, _ := leads.do("POST", "/a%20b", "{}", tokenHeader, proof, forwardedHeader, "a_2"); resp.StatusCode != 401 {
			t.Errorf("%s, to another process: %d", kind.signature, resp.StatusCode)
		}
		leads, stands = two(t, [2]string{}, bindings)
		leads.secret = "another one" // or an older version, which asks for the token
		if resp, _ := stands.do("POST", "/a%20b", "{}", kind.header, kind.value); resp.StatusCode != 503 {
			t.Errorf("%s, which the other process refuses: %d", kind.signature, resp.StatusCode)
		}
	}
}

// A signature is no secret: it is handed on in whatever header it is.
func TestSignaturesInAnyHeaderAreForwarded(t *testing.T) {
	for _, header := range secretHeaders {
		leads, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding {
			return []*builtins.ReceiveBinding{{Path: "/x", Signature: builtins.SignatureHMAC, Header: header, Secret: ref("token")}}
		})
		resp, text := stands.do("POST", "/x", "{}", header, hex.EncodeToString(sum("{}", token)))
		if resp.StatusCode != 200 || len(leads.asked) != 1 {
			t.Errorf("%s: %d %s", header, resp.StatusCode, text)
		}
	}
}

// A request that was handed on is answered by the process that was meant, or by nobody: it goes nowhere else.
func TestAForwardedRequestIsNeverForwardedAgain(t *testing.T) {
	leads, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding { return []*builtins.ReceiveBinding{{Path: "/open"}} })
	leads.other = func(context.Context, Incoming) (builtins.Response, error) {
		t.Error("it is handed on again")
		return builtins.Response{}, nil
	}
	resp, _ := stands.do("POST", "/open", "")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d, %v", resp.StatusCode, resp.Header)
	}
	leads.other, leads.name = nil, "a_2" // another process of this address
	if resp, _ := stands.do("POST", "/open", ""); resp.StatusCode != 503 || len(leads.asked) > 0 {
		t.Errorf("got %d, and the hook has seen %d", resp.StatusCode, len(leads.asked))
	}
	if resp, _ := leads.do("POST", "/open", ""); resp.StatusCode != 200 {
		t.Errorf("a request of a sender: %d", resp.StatusCode)
	}
	if log := stands.log.String(); strings.Count(log, "is answered nowhere") != 1 {
		t.Errorf("log: %s", log)
	}
}

// An error of forwarding says nothing of the query.
func TestForwardingFails(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	f := NewForwarder(&Listener{})
	r, err := http.NewRequest("POST", "/open?token=hush", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{ln.Addr().String(), "127.0.0.1:1"} {
		_, err = f.Forward(t.Context(), Peer{Address: address}, Incoming{HTTP: r})
		if !errors.Is(err, ErrAway) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Over TLS a request goes to a process with the same certificate alone.
func TestForwardingOverTLS(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	writeCert(t, one, "one.example")
	writeCert(t, other, "one.example")
	for dir, want := range map[string]int{one: 200, other: 503} {
		_, stands := two(t, [2]string{one, dir}, func() []*builtins.ReceiveBinding { return []*builtins.ReceiveBinding{{Path: "/open"}} })
		if resp, _ := stands.do("POST", "/open", ""); resp.StatusCode != want {
			t.Errorf("got %d, want %d", resp.StatusCode, want)
		}
	}
}

// A path that the process that leads lacks, as its tree is another one, may be there soon: the sender tries again.
func TestAPathThatOnlyAStandbyHas(t *testing.T) {
	paths := []string{"/new", "/old"} // of the one that leads last
	_, stands := two(t, [2]string{}, func() []*builtins.ReceiveBinding {
		path := paths[len(paths)-1]
		paths = paths[:len(paths)-1]
		return []*builtins.ReceiveBinding{{Path: path}}
	})
	if resp, text := stands.do("POST", "/new", "{}"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, %v", resp.StatusCode, text, resp.Header)
	}
}
