package httpserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/engine"
	"github.com/starling-operator/starling/runtime/generation"
)

const token = "hush-token-71"

// world is a server with a module web of some bindings, and what it meets.
type world struct {
	s        *Server
	log      bytes.Buffer
	observed []string

	// secret is what the Secret web/hook holds as key token; "": it is not there.
	secret string
	reads  []string
	err    error

	mu     sync.Mutex // of asked and observed, while requests come side by side
	asked  []*builtins.Request
	answer func(*builtins.Request) (builtins.Response, error)

	name string // in the Lease
	// other hands requests to another process; nil: this one leads.
	other func(context.Context, Incoming) (builtins.Response, error)
}

func newWorld(t testing.TB, bindings ...*builtins.ReceiveBinding) *world {
	t.Helper()
	w := &world{secret: token, answer: func(*builtins.Request) (builtins.Response, error) { return builtins.Response{}, nil }}
	w.s = New(Options{
		Namespace: "ops", Reader: w, Log: zerolog.New(&w.log),
		Observe: func(module, hook string, code int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.observed = append(w.observed, fmt.Sprintf("%s %s %d", module, hook, code))
		},
		Answer: func(ctx context.Context, in Incoming) (builtins.Response, error) {
			if w.other != nil {
				return w.other(ctx, in)
			}
			w.mu.Lock()
			w.asked = append(w.asked, in.Request)
			w.mu.Unlock()
			return w.answer(in.Request)
		},
		Moves:  func() bool { return w.other != nil },
		Stands: func() bool { return w.other != nil },
		Leads:  func(name string) bool { return w.other == nil && name == w.name },
	})
	hook := &generation.Hook{HookDecl: &builtins.HookDecl{ID: "a"}, Module: "web", ID: "web/a"}
	for i, b := range bindings {
		if b.Methods == nil {
			b.Methods = []string{"POST"}
		}
		b.MaxBytes, b.Rate, b.Burst = max(b.MaxBytes, 100), max(b.Rate, 1000), max(b.Burst, 1000)
		hook.Bindings = append(hook.Bindings, builtins.Binding{Name: fmt.Sprintf("receive-%d", i), Receive: b})
	}
	m := &generation.Module{Name: "web", Decl: builtins.ModuleDecl{Namespace: "web"}, Hooks: []*generation.Hook{hook}}
	w.s.Know(&generation.Generation{Names: []string{"web"}, Modules: map[string]*generation.Module{"web": m}})
	w.s.Serve(m, m.Hooks)
	return w
}

func (w *world) Get(_ context.Context, ref effect.Ref) (map[string]any, error) {
	w.reads = append(w.reads, ref.String())
	if w.err != nil || w.secret == "" {
		return nil, w.err
	}
	return map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(w.secret)), "empty": "", "broken": "%"}}, nil
}

func (w *world) List(context.Context, string, string, []string, string, string) ([]map[string]any, error) {
	return nil, errors.New("nobody lists Secrets")
}

// do sends a request and returns the answer, the body with its line end cut.
func (w *world) do(method, path, body string, headers ...string) (*http.Response, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.s.ServeHTTP(rec, r)
	resp := rec.Result()
	text, _ := io.ReadAll(resp.Body)
	return resp, strings.TrimSuffix(string(text), "\n")
}

func sum(body, secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return mac.Sum(nil)
}

func ref(key string) *builtins.SecretRef { return &builtins.SecretRef{Name: "hook", Key: key} }

func TestSignatures(t *testing.T) {
	const body = `{"a":1}`
	hexed, based := hex.EncodeToString(sum(body, token)), base64.StdEncoding.EncodeToString(sum(body, token))
	other := hex.EncodeToString(sum(body, "other"))
	binding := map[builtins.Signature]*builtins.ReceiveBinding{}
	var all []*builtins.ReceiveBinding
	for _, s := range []builtins.Signature{builtins.SignatureGitHub, builtins.SignatureGitLab, builtins.SignatureHMAC, builtins.SignatureBearer} {
		b := &builtins.ReceiveBinding{Path: "/" + string(s), Signature: s, Secret: ref("token")}
		if s == builtins.SignatureHMAC {
			b.Header = "x-signature"
		}
		binding[s] = b
		all = append(all, b)
	}
	w := newWorld(t, all...)
	for _, test := range []struct {
		path    string
		headers []string
		ok      bool
	}{
		{"/github", nil, false},
		{"/github", []string{"X-Hub-Signature-256", "sha256=" + hexed}, true},
		{"/github", []string{"X-Hub-Signature-256", "sha256=" + strings.ToUpper(hexed)}, true},
		{"/github", []string{"X-Hub-Signature-256", hexed}, false},
		{"/github", []string{"X-Hub-Signature-256", "sha256=" + other}, false},
		{"/github", []string{"X-Hub-Signature-256", "sha256="}, false},
		{"/github", []string{"X-Hub-Signature-256", "sha256=" + hexed[:62]}, false},
		{"/github", []string{"X-Hub-Signature-256", "sha256=" + hexed, "X-Hub-Signature-256", "x"}, false},
		{"/github", []string{"X-Hub-Signature", "sha256=" + hexed}, false},
		{"/github", []string{"X-Gitlab-Token", token}, false},
		{"/gitlab", []string{"X-Gitlab-Token", token}, true},
		{"/gitlab", []string{"X-Gitlab-Token", token + "x"}, false},
		{"/gitlab", []string{"X-Gitlab-Token", ""}, false},
		{"/gitlab", []string{"X-Hub-Signature-256", "sha256=" + hexed}, false},
		{"/hmac", []string{"X-Signature", hexed}, true},
		{"/hmac", []string{"X-Signature", "sha256=" + hexed}, true},
		{"/hmac", []string{"X-Signature", based}, true},
		{"/hmac", []string{"X-Signature", other}, false},
		{"/hmac", nil, false},
		{"/bearer", []string{"Authorization", "Bearer " + token}, true},
		{"/bearer", []string{"Authorization", "bearer " + token}, true},
		{"/bearer", []string{"Authorization", "Basic " + token}, false},
		{"/bearer", []string{"Authorization", token}, false},
		{"/bearer", []string{"Authorization", "Bearer "}, false},
	} {
		asked := len(w.asked)
		resp, text := w.do("POST", test.path, body, test.headers...)
		if want := map[bool]int{true: 200, false: 401}[test.ok]; resp.StatusCode != want || (len(w.asked) > asked) != test.ok {
			t.Errorf("%s %q: got %d %s", test.path, test.headers, resp.StatusCode, text)
		}
	}
	if said := w.log.String(); strings.Contains(said, token) || strings.Contains(said, other) || strings.Count(said, "is not signed with the secret") != 4 {
		t.Errorf("log: %s", said)
	}
	if w.reads[0] != "Secret web/hook" {
		t.Errorf("read %v", w.reads)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	w := newWorld(t,
		&builtins.ReceiveBinding{Path: "/x", Methods: []string{"POST", "GET"}},
		&builtins.ReceiveBinding{Path: "/slow", Rate: 1, Burst: 1},
		&builtins.ReceiveBinding{Path: "/gone", Signature: builtins.SignatureHMAC, Header: "X-Sign", Secret: &builtins.SecretRef{Name: "hook", Key: "nothing", Namespace: "far"}},
		&builtins.ReceiveBinding{Path: "/empty", Signature: builtins.SignatureHMAC, Header: "X-Sign", Secret: ref("empty")},
		&builtins.ReceiveBinding{Path: "/broken", Signature: builtins.SignatureHMAC, Header: "X-Sign", Secret: ref("broken")},
	)
	for path := range w.s.routes { // as if all time had passed
		if path == "/slow" {
			w.s.routes[path].limit.SetLimit(0)
			w.s.routes[path].limit.SetBurst(1)
		}
	}
	for _, test := range []struct {
		method, path, body string
		code               int
		says, after        string
	}{
		{"POST", "/y", "", 404, "no hook receives requests here", ""},
		{"POST", "/x/", "", 404, "", ""},
		{"POST", "/X", "", 404, "", ""},
		{"POST", "/x?a=1", "x", 200, "", ""},
		{"GET", "/x", "", 200, "", ""},
		{"PUT", "/x", "", 405, "another method", ""},
		{"POST", "/x", strings.Repeat("x", 100), 200, "", ""},
		{"POST", "/x", strings.Repeat("x", 101), 413, "the body is larger than 100 bytes", ""},
		{"POST", "/slow", "", 429, "too many requests", "1"},
		{"POST", "/gone", "", 503, "cannot be checked now", "10"},
		{"POST", "/empty", "", 503, "cannot be checked now", "10"},
		{"POST", "/broken", "", 503, "cannot be checked now", "10"},
	} {
		if test.path == "/slow" {
			w.do("POST", "/slow", "")
		}
		resp, text := w.do(test.method, test.path, test.body, "X-Sign", strings.Repeat("0", 64))
		if resp.StatusCode != test.code || !strings.Contains(text, test.says) || resp.Header.Get("Retry-After") != test.after {
			t.Errorf("%s %s: got %d %q, %v", test.method, test.path, resp.StatusCode, text, resp.Header)
		}
	}
	for _, want := range []string{`Secret far/hook has no key \"nothing\"`, "Secret web/hook: key empty is empty", `key \"broken\" is no base64`} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, w.log.String())
		}
	}
	if w.observed[0] != "web web/a 200" { // 404s are not counted
		t.Errorf("%v", w.observed)
	}
	// A body whose length is not told.
	r := httptest.NewRequest("POST", "/x", io.MultiReader(strings.NewReader(strings.Repeat("x", 101))))
	r.ContentLength = -1
	rec := httptest.NewRecorder()
	w.s.ServeHTTP(rec, r)
	if rec.Code != 413 {
		t.Errorf("got %d", rec.Code)
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t, &builtins.ReceiveBinding{Path: "/x"})
	for _, test := range []struct {
		response    builtins.Response
		err         error
		code        int
		says, after string
	}{
		{builtins.Response{}, nil, 200, "", ""},
		{builtins.Response{Reply: &builtins.Reply{Status: 201, Body: []byte(`{"a":1}`), ContentType: "application/json"}}, nil, 201, `{"a":1}`, ""},
		{builtins.Response{Reply: &builtins.Reply{Status: 204}}, nil, 204, "", ""},
		{builtins.Response{}, errors.New("hush: boom"), 500, "the hook failed", ""},
		{builtins.Response{}, fmt.Errorf("x: %w", &builtins.FailError{Msg: "hush"}), 500, "the hook failed", ""},
		{builtins.Response{}, fmt.Errorf("x: %w", &builtins.FailError{Msg: "hush", RetryAfter: 1500 * time.Millisecond}), 503, "try again later", "2"},
		{builtins.Response{}, fmt.Errorf("hush: %w", engine.ErrBusy), 503, "too many requests wait", "1"},
		{builtins.Response{}, fmt.Errorf("hush: %w", engine.ErrNotReady), 503, "there is no answer now", "10"},
		{builtins.Response{}, context.DeadlineExceeded, 503, "there is no answer now", "10"},
	} {
		w.answer = func(*builtins.Request) (builtins.Response, error) { return test.response, test.err }
		resp, text := w.do("POST", "/x", "x")
		if resp.StatusCode != test.code || text != test.says && !strings.HasPrefix(text, test.says+",") || resp.Header.Get("Retry-After") != test.after {
			t.Errorf("%v: got %d %q, %v", test.err, resp.StatusCode, text, resp.Header)
		}
	}
	// A module that is off, and a process that does not lead.
	w.s.Serve(&generation.Module{Name: "web"}, nil)
	if resp, _ := w.do("POST", "/x", ""); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "10" {
		t.Errorf("got %d", resp.StatusCode)
	}
}

func TestWhatAHookSees(t *testing.T) {
	w := newWorld(t, &builtins.ReceiveBinding{Path: "/x"})
	w.do("POST", "/x?a=1&a=2&b=", "text", "X-Event", "push", "X-Event", "tag", "Authorization", token, "Cookie", token, "X-Gitlab-Token", token)
	f := w.asked[0].Fields
	got := fmt.Sprint(w.asked[0].Binding, f["method"], f["path"], f["query"], f["headers"], f["body"])
	if want := `receive-0"POST""/x"{"a": "1", "b": ""} {"x-event": "push, tag"}"text"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestASecretIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &builtins.ReceiveBinding{Path: "/x", Signature: builtins.SignatureBearer, Secret: ref("token")})
		want := func(code, reads int, secret string) {
			t.Helper()
			resp, _ := w.do("POST", "/x", "", "Authorization", "Bearer "+secret)
			if resp.StatusCode != code || len(w.reads) != reads {
				t.Errorf("got %d after %d reads, want %d after %d", resp.StatusCode, len(w.reads), code, reads)
			}
		}
		want(200, 1, token)
		want(200, 1, token)
		want(401, 1, "wrong") // read a moment ago
		time.Sleep(3 * time.Second)
		want(200, 1, token)
		want(401, 2, "wrong") // it might be a newer one
		want(401, 2, "wrong")
		w.secret = "newer"
		time.Sleep(3 * time.Second)
		want(200, 3, "newer")
		want(401, 3, token)
		w.err = errors.New("the API server is down")
		time.Sleep(20 * time.Second)
		want(200, 3, "newer")
		time.Sleep(20 * time.Second)
		want(503, 4, "newer")
		want(503, 4, "newer")
		w.err, w.secret = nil, ""
		time.Sleep(3 * time.Second)
		want(503, 5, "newer")
		w.secret = "newer"
		time.Sleep(3 * time.Second)
		want(200, 6, "newer")
	})
}

func TestBodiesAreBoundedTogether(t *testing.T) {
	w := newWorld(t, &builtins.ReceiveBinding{Path: "/x"})
	all := w.s.held.Hold()
	if err := all.Try(maxHeld - 11); err != nil {
		t.Fatal("held already")
	}
	if resp, _ := w.do("POST", "/x", "0123456789"); resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if resp, _ := w.do("POST", "/x", "0123456789x"); resp.StatusCode != 503 {
		t.Errorf("got %d", resp.StatusCode)
	}
}

// A client that begins requests and does not go on holds nobody up: not on other paths, not on this
// one. Without a signature that could fit nothing is read at all.
func TestSlowRequestsHoldNobodyUp(t *testing.T) {
	w := newWorld(t, &builtins.ReceiveBinding{Path: "/x", MaxBytes: 1 << 20}, &builtins.ReceiveBinding{Path: "/signed", MaxBytes: 1 << 20, Secret: ref("token"), Signature: builtins.SignatureGitHub})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.s.Start(ln)
	t.Cleanup(w.s.Stop)
	begin := func(path string) net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", path, 1<<20)
		return conn
	}
	var slow []net.Conn
	for range 100 {
		slow = append(slow, begin("/x"))
	}
	status := func(conn net.Conn) string {
		line, _ := bufio.NewReader(conn).ReadString('\n')
		return strings.TrimSpace(line)
	}
	if got := status(begin("/signed")); got != "HTTP/1.1 401 Unauthorized" {
		t.Errorf("without a signature: %s", got)
	}
	body := strings.Repeat("x", 1<<20)
	for _, path := range []string{"/x", "/signed"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+ln.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(body, token)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s beside them: %v, %v", path, resp, err)
		}
		resp.Body.Close()
	}
	for _, conn := range slow {
		if got := status(conn); got != "HTTP/1.1 408 Request Timeout" {
			t.Fatalf("one that sends nothing more: %s", got)
		}
	}
}

// A request that was taken is not taken again, where its signature says that it is the
// same; one that failed may come again.
func TestRequestsAreTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t,
			&builtins.ReceiveBinding{Path: "/again", Secret: ref("token"), Signature: builtins.SignatureGitHub},
			&builtins.ReceiveBinding{Path: "/once", Secret: ref("token"), Signature: builtins.SignatureGitHub, Once: time.Hour},
			&builtins.ReceiveBinding{Path: "/timed", Secret: ref("token"), Signature: builtins.SignatureHMAC, Header: "X-Sign", Timestamp: "X-Time"},
			&builtins.ReceiveBinding{Path: "/slack", Secret: ref("token"), Signature: builtins.SignatureSlack},
			&builtins.ReceiveBinding{Path: "/stripe", Secret: ref("token"), Signature: builtins.SignatureStripe},
		)
		hexed := func(text string) string { return hex.EncodeToString(sum(text, token)) }
		ask := func(what, path, body string, code int, runs bool, headers ...string) {
			t.Helper()
			asked := len(w.asked)
			resp, text := w.do("POST", path, body, headers...)
			if resp.StatusCode != code || (len(w.asked) > asked) != runs {
				t.Errorf("%s: got %d %s, run: %v", what, resp.StatusCode, text, len(w.asked) > asked)
			}
			if code == 200 && !runs && text != "this request was taken before" {
				t.Errorf("%s: got %s", what, text)
			}
		}
		hub := func(body string) []string { return []string{"X-Hub-Signature-256", "sha256=" + hexed(body)} }
		ask("no option", "/again", "a", 200, true, hub("a")...)
		ask("no option, again", "/again", "a", 200, true, hub("a")...)
		w.answer = func(*builtins.Request) (builtins.Response, error) { return builtins.Response{}, errors.New("broken") }
		ask("fails", "/once", "a", 500, true, hub("a")...)
		w.answer = func(*builtins.Request) (builtins.Response, error) {
			ask("meanwhile", "/once", "a", 503, false, hub("a")...)
			return builtins.Response{Reply: &builtins.Reply{Status: 503}}, nil
		}
		ask("is told to come again", "/once", "a", 503, true, hub("a")...)
		w.answer = func(*builtins.Request) (builtins.Response, error) { return builtins.Response{}, nil }
		ask("is taken", "/once", "a", 200, true, hub("a")...)
		ask("again", "/once", "a", 200, false, hub("a")...)
		ask("another", "/once", "b", 200, true, hub("b")...)
		time.Sleep(time.Hour)
		ask("after its time", "/once", "a", 200, true, hub("a")...)

		at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
		for path, headers := range map[string]func(at, body string) []string{
			"/timed": func(at, body string) []string { return []string{"X-Time", at, "X-Sign", hexed(at + "." + body)} },
			"/slack": func(at, body string) []string {
				return []string{"X-Slack-Request-Timestamp", at, "X-Slack-Signature", "v0=" + hexed("v0:"+at+":"+body)}
			},
			"/stripe": func(at, body string) []string {
				return []string{"Stripe-Signature", "t=" + at + ",v1=" + strings.Repeat("0", 64) + ",v1=" + hexed(at+"."+body) + ",v0=x"}
			},
		} {
			now, later := at(0), at(4*time.Minute)
			ask("now", path, "a", 200, true, headers(now, "a")...)
			ask("again", path, "a", 200, false, headers(now, "a")...)
			ask("another body", path, "b", 401, false, headers(now, "a")...)
			ask("old", path, "a", 401, false, headers(at(-301*time.Second), "a")...)
			ask("from the future", path, "a", 401, false, headers(at(301*time.Second), "a")...)
			ask("no time", path, "a", 401, false, headers("", "a")...)
			ask("a clock that is ahead", path, "a", 200, true, headers(later, "a")...)
			time.Sleep(5*time.Minute + time.Second)
			ask("now too old", path, "a", 401, false, headers(now, "a")...)
			ask("still known", path, "a", 200, false, headers(later, "a")...)
			time.Sleep(5 * time.Minute)
		}
		if r := w.s.routes["/slack"].taken; len(r.known) > 2 || len(r.order) > 2 {
			t.Errorf("%d requests are remembered", len(r.known))
		}
	})
}

// A client that goes away, or waits too long, gives nothing back: its request is still
// in line.
func TestBodiesCountUntilTheyAreWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &builtins.ReceiveBinding{Path: "/x"})
		open := make(chan struct{})
		w.answer = func(*builtins.Request) (builtins.Response, error) { <-open; return builtins.Response{}, nil }
		began := time.Now()
		resp, text := w.do("POST", "/x", "0123456789")
		if resp.StatusCode != 503 || text != "there is no answer now, try again later" || time.Since(began) != AnswerWithin {
			t.Errorf("got %d %s after %s", resp.StatusCode, text, time.Since(began))
		}
		if w.s.held.Hold().Try(maxHeld) == nil {
			t.Error("what is in line does not count")
		}
		close(open)
		w.s.Stop()
		if w.s.held.Hold().Try(maxHeld) != nil {
			t.Error("it still counts")
		}
	})
}

// Anybody may fill the public paths of a module: requests with a signature find room beside them.
func TestPublicPathsLeaveRoomForSignedOnes(t *testing.T) {
	public := func(path string) *builtins.ReceiveBinding {
		return &builtins.ReceiveBinding{Path: path, MaxBytes: maxHeld}
	}
	signed := public("/signed")
	signed.Secret, signed.Signature = ref("token"), builtins.SignatureGitHub
	w := newWorld(t, public("/a"), public("/b"), signed)
	event, goOn := make(chan bool), make(chan bool)
	w.answer = func(in *builtins.Request) (builtins.Response, error) {
		if in.Binding != "receive-2" {
			event <- true
			<-goOn
		}
		return builtins.Response{}, nil
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if resp, _ := w.do("POST", []string{"/a", "/b"}[i%2], strings.Repeat("x", maxHeld/32)); resp.StatusCode != 200 {
				event <- false
			}
		})
		<-event // it is at work, or refused
	}
	body := strings.Repeat("y", maxHeld/8)
	if resp, text := w.do("POST", "/signed", body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum(body, token))); resp.StatusCode != 200 {
		t.Errorf("the signed one: %d, %s", resp.StatusCode, text)
	}
	close(goOn)
	all.Wait()
}
