package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.starlark.net/starlark"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/httplimit"
	"github.com/starling-operator/starling/runtime/pki"
	"github.com/starling-operator/starling/runtime/tlsfiles"
)

const reviewBody = `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
	"uid": "u1", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
	"subResource": "scale", "name": "a", "namespace": "web", "operation": "UPDATE",
	"userInfo": {"username": "ann", "groups": ["dev"], "extra": {"k": ["v"]}},
	"object": {"spec": {"replicas": 9007199254740993}}, "oldObject": {"spec": {"replicas": 1}}, "dryRun": true, "options": {"kind": "UpdateOptions"}}}`

const conversionBody = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
	"uid": "c1", "desiredAPIVersion": "a.b.c/v2", "objects": [{"apiVersion": "a.b.c/v1", "n": 9007199254740993}]}}`

// testServer is a server with its routes, its clients and its certificates.
type testServer struct {
	*server
	t     *testing.T
	addr  string
	certs *ownCertificates
	seen  []Observation
	mu    sync.Mutex
	clock time.Time // of its clients
}

func (s *testServer) now() time.Time { return s.clock }

func newTestServer(t *testing.T, answer Answer, change ...func(*server)) *testServer {
	s := &testServer{t: t, certs: own(&memory{})}
	s.certs.names = []string{"127.0.0.1", "starling.ns.svc", "10.0.0.7"}
	s.server = newServer(effect.Instance{Namespace: "ops", Name: "starling"}, func(ref effect.Ref) bool { return ref.Name == "second" }, answer, func(o Observation) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seen = append(s.seen, o)
	}, zerolog.Nop())
	s.setRoutes(map[string]route{
		"/validate/web/a/v": {module: "web", hook: "web/a", binding: "v"},
		"/mutate/web/a/m":   {module: "web", hook: "web/a", binding: "m", mutate: true},
		"/convert/web/c/c":  {module: "web", hook: "web/c", binding: "c", convert: true},
	})
	for _, c := range change {
		c(s.server)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	s.rotate(time.Now())
	s.start(ln)
	t.Cleanup(s.end.Stop)
	return s
}

// rotate serves the certificate of a time.
func (s *testServer) rotate(now time.Time) certificates {
	s.t.Helper()
	got, err := s.certs.look(s.t.Context(), now, true)
	if err != nil {
		s.t.Fatal(err)
	}
	s.show(got.served)
	s.clock = now
	return got
}

func (s *testServer) client(bundle []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Time: s.now}, ForceAttemptHTTP2: true}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (s *testServer) post(c *http.Client, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), http.MethodPost, "https://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestReviewsOverTLS(t *testing.T) {
	var got *builtins.Request
	var response builtins.Response
	var fails error
	s := newTestServer(t, func(_ context.Context, hook string, r *builtins.Request) (builtins.Response, error) {
		got = r
		if hook != "web/a" && hook != "web/c" {
			t.Errorf("hook %s is asked", hook)
		}
		return response, fails
	})
	c := s.client(s.rotate(time.Now()).bundle)
	ask := func(path, body string, code int, want string) {
		t.Helper()
		gotCode, text, err := s.post(c, path, body)
		if err != nil || gotCode != code || strings.TrimSpace(text) != want {
			t.Errorf("%d %s %v, want %d %s", gotCode, text, err, code, want)
		}
	}
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u1",`
	ask("/validate/web/a/v?timeout=5s", reviewBody, 200, head+`"allowed":true}}`)
	f := fieldsOf(t, got)
	text := fmt.Sprintln(f["operation"], f["object"], f["old_object"], f["namespace"], f["name"], f["api_version"], f["kind"], f["resource"], f["subresource"], f["user"], f["dry_run"], f["options"], f["uid"])
	if want := `"UPDATE" {"spec": {"replicas": 9007199254740993}} {"spec": {"replicas": 1}} "web" "a" "apps/v1" "Deployment" "deployments" "scale" ` +
		`user(extra = {"k": ["v"]}, groups = ["dev"], name = "ann", uid = "") True {"kind": "UpdateOptions"} "u1"` + "\n"; text != want || got.Binding != "v" {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	ask("/validate/web/a/v", strings.Replace(reviewBody, `"oldObject": {"spec": {"replicas": 1}}`, `"oldObject": 1`, 1), 200, head+`"allowed":true}}`)
	if old := fieldsOf(t, got)["old_object"].String(); old != `"request.old_object: it is no object"` {
		t.Error(old)
	}
	response.Warnings = []string{"careful"}
	response.Denied = &builtins.Denial{Message: "no", Code: 403}
	ask("/validate/web/a/v", reviewBody, 200, head+`"allowed":false,"status":{"metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403},"warnings":["careful"]}}`)
	response = builtins.Response{Object: map[string]any{"spec": map[string]any{"replicas": int64(1) << 53}}}
	ask("/mutate/web/a/m", reviewBody, 200, head+`"allowed":true,"patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjkwMDcxOTkyNTQ3NDA5OTJ9XQ==","patchType":"JSONPatch"}}`)
	response = builtins.Response{Object: map[string]any{"spec": map[string]any{"replicas": int64(9007199254740993)}}}
	ask("/mutate/web/a/m", reviewBody, 200, head+`"allowed":true}}`)
	response = builtins.Response{Objects: []map[string]any{{"apiVersion": "a.b.c/v2", "n": int64(9007199254740993)}}}
	ask("/convert/web/c/c", conversionBody, 200, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"c1","convertedObjects":[{"apiVersion":"a.b.c/v2","n":9007199254740993}],"result":{"metadata":{},"status":"Success"}}}`)
	if got.To != "a.b.c/v2" || got.Objects[0]["n"] != int64(9007199254740993) {
		t.Errorf("%+v", got)
	}
	fails = errors.New("the hook is broken")
	// No hook is asked about what belongs to Starling, as a release Secret with all that its chart rendered.
	secret := strings.NewReplacer(`"group": "apps", "version": "v1", "kind": "Deployment"`, `"group": "", "version": "v1", "kind": "Secret"`,
		`"name": "a"`, `"name": "sh.helm.release.v1.web.v1"`).Replace(reviewBody)
	ask("/validate/web/a/v", secret, 200, head+`"allowed":true}}`)
	ask("/validate/web/a/v", reviewBody, 500, "starling: the hook is broken")
	ask("/convert/web/c/c", conversionBody, 200, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":"c1","convertedObjects":[],"result":{"metadata":{},"status":"Failure","message":"starling: the hook is broken"}}}`)

	var results []string
	for _, o := range s.seen {
		results = append(results, o.Hook+" "+o.Result)
	}
	if got := strings.Join(results, ", "); got != "web/a allowed, web/a allowed, web/a denied, web/a changed, web/a allowed, web/c converted, web/a allowed, web/a error, web/c error" {
		t.Error(got)
	}
}

// fieldsOf are the attributes that a hook finds in ctx.request.
func fieldsOf(t testing.TB, r *builtins.Request) starlark.StringDict {
	t.Helper()
	request, err := builtins.NewCtx(builtins.CtxOptions{Request: r}).(starlark.HasAttrs).Attr("request")
	if err != nil {
		t.Fatal(err)
	}
	out := starlark.StringDict{}
	for _, name := range request.(starlark.HasAttrs).AttrNames() {
		if out[name], err = request.(starlark.HasAttrs).Attr(name); err != nil {
			out[name] = starlark.String(err.Error())
		}
	}
	return out
}

func TestBrokenRequestsOverTLS(t *testing.T) {
	s := newTestServer(t, func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		t.Error("a hook is asked")
		return builtins.Response{}, nil
	})
	c := s.client(s.rotate(time.Now()).bundle)
	for _, q := range []struct {
		path, body, text string
		code             int
	}{
		{"/validate/web/a/none", reviewBody, "no hook answers here", 404},
		{"/", "", "no hook answers here", 404},
		{"/validate/web/a/v", "", "no AdmissionReview", 400},
		{"/validate/web/a/v", "{", "no AdmissionReview", 400},
		{"/validate/web/a/v", `{"request": 1}`, "no AdmissionReview", 400},
		{"/validate/web/a/v", strings.Replace(reviewBody, "k8s.io/v1", "k8s.io/v1beta1", 1), "no AdmissionReview of admission.k8s.io/v1", 400},
		{"/validate/web/a/v", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}`, "holds no request", 400},
		{"/validate/web/a/v", `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}`, "has no uid", 400},
		{"/validate/web/a/v", conversionBody, "no AdmissionReview", 400},
		{"/validate/web/a/v", strings.Repeat(" ", maxReview+1), "larger than 8 MiB", 413},
		{"/convert/gone/c/c", conversionBody, `"message":"starling: nobody converts these objects: no hook of a module \"gone\" in the tree does; put the module back, or end the conversion with`, 200},
		{"/convert/", conversionBody, `"status":"Failure"`, 200},
		{"/convert/web/c/c", reviewBody, "no ConversionReview", 400},
		{"/convert/web/c/c", `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}`, "holds no request", 400},
		{"/convert/web/c/c", `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "a"}}`, "no desiredAPIVersion", 400},
		{"/convert/web/c/c", `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "a", "desiredAPIVersion": "a/b", "objects": [null]}}`, "object 0", 400},
	} {
		code, text, err := s.post(c, q.path, q.body)
		if err != nil || code != q.code || !strings.Contains(text, q.text) {
			t.Errorf("%s %.60s: %d %s %v", q.path, q.body, code, text, err)
		}
	}
	resp, err := c.Get("https://" + s.addr + "/validate/web/a/v")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

// A request has an end even when its hook has none, and no more run at once than may.
func TestRequestsHaveADeadlineAndWait(t *testing.T) {
	release := make(chan struct{})
	s := newTestServer(t, func(ctx context.Context, _ string, _ *builtins.Request) (builtins.Response, error) {
		select {
		case <-release:
			return builtins.Response{}, nil
		case <-ctx.Done():
			return builtins.Response{}, ctx.Err()
		}
	})
	c := s.client(s.rotate(time.Now()).bundle)
	if code, text, err := s.post(c, "/validate/web/a/v?timeout=50ms", reviewBody); err != nil || code != 500 || !strings.Contains(text, "deadline exceeded") {
		t.Errorf("%d %s %v", code, text, err)
	}
	busy := s.slots.Hold()
	if err := busy.Try(maxParallel); err != nil {
		t.Fatal("requests hold on to their slots")
	}
	if code, text, err := s.post(c, "/validate/web/a/v?timeout=50ms", reviewBody); err != nil || code != 429 || !strings.Contains(text, "too many") {
		t.Errorf("%d %s %v", code, text, err)
	}
	busy.Release()
	all := s.conversions.Hold()
	if err := all.Try(conversionsRoom); err != nil {
		t.Fatal("requests hold on to their size")
	}
	large := strings.Replace(conversionBody, `"n":`, `"x": "`+strings.Repeat("x", smallBody)+`", "n":`, 1)
	if code, text, err := s.post(c, "/convert/web/c/c?timeout=50ms", large); err != nil || code != 429 || !strings.Contains(text, "too many requests at once: there is no room") {
		t.Errorf("%d %s %v", code, text, err)
	}
	all.Release()
	done := make(chan int, 1)
	go func() {
		code, _, _ := s.post(c, "/validate/web/a/v", reviewBody)
		done <- code
	}()
	close(release)
	if code := <-done; code != 200 {
		t.Errorf("%d", code)
	}
	for query, want := range map[string]time.Duration{"": defaultWait, "timeout=3s": 3 * time.Second, "timeout=1h": maxWait, "timeout=x": defaultWait, "timeout=-1s": defaultWait} {
		r := &http.Request{URL: mustURL(t, "https://x/?"+query)}
		if got := waits(r, false); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// The API server waits for a conversion without end, and does not say so.
func TestAConversionMayTakeLongerThanAReview(t *testing.T) {
	left := make(chan time.Duration, 1)
	s := newTestServer(t, func(ctx context.Context, _ string, _ *builtins.Request) (builtins.Response, error) {
		end, _ := ctx.Deadline()
		left <- time.Until(end)
		return builtins.Response{}, nil
	})
	c := s.client(s.rotate(time.Now()).bundle)
	for path, body := range map[string]string{"/convert/web/c/c": conversionBody, "/validate/web/a/v": reviewBody} {
		if code, text, err := s.post(c, path, body); err != nil || code != 200 {
			t.Fatalf("%s: %d %s %v", path, code, text, err)
		}
		if got, long := <-left, strings.HasPrefix(path, "/convert/"); long != (got > defaultWait) {
			t.Errorf("%s: the hook has %s", path, got)
		}
	}
}

// Certificates follow each other while requests go on. A connection that stays is not
// dropped, a new one is trusted by clients that know the bundle of before.
func TestRotationDropsNoConnection(t *testing.T) {
	s := newTestServer(t, func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		return builtins.Response{}, nil
	})
	now := time.Now()
	before := s.rotate(now)
	stays := s.client(before.bundle)
	serials := map[string]bool{}
	for range 400 { // past the first authority's rotation
		got := s.rotate(now)
		serials[got.served.cert.Leaf.SerialNumber.String()] = true
		for what, c := range map[string]*http.Client{"a connection that stays": stays, "a new one": s.client(before.bundle)} {
			if code, _, err := s.post(c, "/validate/web/a/v", reviewBody); err != nil || code != 200 {
				t.Fatalf("%s: %d %v", what, code, err)
			}
		}
		before, now = got, got.next
	}
	if m := parseMaterial(s.certs.last); len(serials) < 30 || !made(m.authorities[0]).After(time.Now().Add(time.Hour)) {
		t.Errorf("%d certificates, one authority", len(serials))
	}
}

func FuzzReviews(f *testing.F) {
	f.Add([]byte(reviewBody))
	f.Add([]byte(conversionBody))
	f.Add([]byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "a", "object": {"a": [1, {"b": null}]}}}`))
	f.Add([]byte(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {"uid": "a", "desiredAPIVersion": "b/c", "objects": [{}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if review, err := parseReview(body); err == nil {
			if review.UID == "" {
				t.Error("a review without uid")
			}
			if fields := fieldsOf(t, review.Request("x")); len(fields["object"].String()) == 0 || len(fields["user"].String()) == 0 {
				t.Error("a review that cannot be shown")
			}
			if review.Object != nil {
				is := map[string]any{"kept": review.Object["a"], "new": int64(1)}
				checkFuzzed(t, review, is)
			}
		}
		if uid, r, err := parseConversion(body); err == nil && (uid == "" || r.To == "") {
			t.Error("a conversion without uid or version")
		}
	})
}

func checkFuzzed(t *testing.T, review *builtins.Review, is map[string]any) {
	result, body, err := answerReview(review, builtins.Response{Object: is})
	if err != nil {
		return // data that is no JSON: nested too deep
	}
	var out admissionv1.AdmissionReview
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&out); err != nil || out.Response.UID == "" {
		t.Errorf("%s: %v", body, err)
	}
	if result != "changed" && result != "allowed" {
		t.Error(result)
	}
}

// Once the server drains, what it was asked before is answered, and nobody is let in.
func TestDrain(t *testing.T) {
	asked, answers := make(chan struct{}), make(chan struct{})
	s := newTestServer(t, func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		close(asked)
		<-answers
		return builtins.Response{}, nil
	})
	c := s.client(s.rotate(time.Now()).bundle)
	type result struct {
		code int
		err  error
	}
	got := make(chan result, 1)
	go func() {
		code, _, err := s.post(c, "/validate/web/a/v", reviewBody)
		got <- result{code, err}
	}()
	<-asked
	drained := make(chan struct{})
	go func() { defer close(drained); s.end.Drain(context.Background()) }()
	for { // until it listens no more
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			break
		}
		conn.Close()
	}
	select {
	case <-drained:
		t.Error("it does not wait for the answer")
	default:
	}
	close(answers)
	if r := <-got; r.err != nil || r.code != http.StatusOK {
		t.Errorf("got %+v", r)
	}
	<-drained

	// Nor does it wait for ever.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.end.Drain(ctx)
}

// A client that has all that it may have of one module holds nobody up there.
func TestOneClientDoesNotTakeAllOfAModule(t *testing.T) {
	s := newTestServer(t, func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		return builtins.Response{}, nil
	})
	c := s.client(s.rotate(time.Now()).bundle)
	hostile := &http.Request{RemoteAddr: "192.0.2.1:1", URL: mustURL(t, "https://x/validate/web/a/v")}
	for _, of := range []struct {
		room           *httplimit.Room
		client, module int64
		each           int64
	}{{s.small, smallRoom / 2, smallRoom / 2, smallBody}, {s.reviews, reviewRoom / 2, reviewRoom / 2, smallBody}, {s.slots, maxParallel * 3 / 4, maxParallel / 4, 1}} {
		for of.room.Hold(shares(hostile, of.client, of.module)...).Try(of.each) == nil {
		}
	}
	if code, text, err := s.post(c, "/validate/web/a/v?timeout=1s", reviewBody); err != nil || code != 200 {
		t.Errorf("another client: %d %s %v", code, text, err)
	}
}

// begin sends the head of a request of a length, and the first byte of its body.
func (s *testServer) begin(path string, length int) net.Conn {
	s.t.Helper()
	conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s?timeout=30s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{", path, length)
	return conn
}

// A client that begins large requests and does not go on holds up nobody, and is hung up on.
func TestSlowBodiesHoldNobodyUp(t *testing.T) {
	answers := func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		return builtins.Response{}, nil
	}
	slow := func(s *testServer) (conns []net.Conn) {
		for range 20 {
			conns = append(conns, s.begin("/convert/web/c/c", maxConversion), s.begin("/validate/web/a/v", maxReview))
		}
		return conns
	}
	// Nobody is hung up on while others are answered, however slow this machine is.
	s := newTestServer(t, answers, func(s *server) { s.grace = time.Hour })
	c := s.client(s.rotate(time.Now()).bundle)
	slow(s)
	for path, body := range map[string]string{
		"/validate/web/a/v": strings.Replace(reviewBody, `"spec"`, `"x": "`+strings.Repeat("x", 2<<20)+`", "spec"`, 1),
		"/convert/web/c/c":  conversionBody,
	} {
		if code, text, err := s.post(c, path+"?timeout=20s", body); err != nil || code != 200 {
			t.Errorf("%s beside them: %d %s %v", path, code, text, err)
		}
	}
	for _, conn := range slow(newTestServer(t, answers)) {
		if answer, _ := io.ReadAll(conn); !bytes.Contains(answer, []byte("comes in too slowly")) {
			t.Errorf("one that sends nothing more: %q", answer)
		}
	}
}

// With authorities of clients only who shows a certificate of theirs is reviewed for. The
// API server shows none when it asks for a conversion.
func TestClientsShowACertificate(t *testing.T) {
	s := newTestServer(t, func(context.Context, string, *builtins.Request) (builtins.Response, error) {
		return builtins.Response{}, nil
	})
	s.end.Stop()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if _, err := tlsfiles.OpenAuthorities(file, clientsFlag); err == nil || err.Error() != "--webhook-client-ca "+file+": it is not there" {
		t.Error(err)
	}
	issue := func() (authority []byte, client tls.Certificate) {
		cert, err := pki.Issue(&x509.Certificate{
			NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return pki.CertificatesPEM(cert.Leaf), *cert
	}
	authority, known := issue()
	_, stranger := issue()
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	clients, err := tlsfiles.OpenAuthorities(file, clientsFlag)
	if err != nil {
		t.Fatal(err)
	}
	routes := *s.routes.Load()
	s.server = newServer(effect.Instance{}, func(effect.Ref) bool { return false }, s.answer, func(Observation) {}, zerolog.Nop())
	s.setRoutes(routes)
	s.require(clients)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	bundle := s.rotate(time.Now()).bundle
	s.start(ln)
	t.Cleanup(s.end.Stop)
	for _, tt := range []struct {
		path, body string
		cert       []tls.Certificate
		code       int
	}{
		{"/validate/web/a/v", reviewBody, []tls.Certificate{known}, 200},
		{"/validate/web/a/v", reviewBody, nil, 403},
		{"/mutate/web/a/m", reviewBody, nil, 403},
		{"/convert/web/c/c", conversionBody, nil, 200},
		{"/convert/web/c/c", conversionBody, []tls.Certificate{stranger}, 0},
	} {
		c := s.client(bundle)
		c.Transport.(*http.Transport).TLSClientConfig.Certificates = tt.cert
		if len(tt.cert) > 0 { // whatever the server says that it would take
			c.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tt.cert[0], nil }
		}
		code, text, err := s.post(c, tt.path, tt.body)
		if code != tt.code || (err == nil) != (tt.code != 0) {
			t.Errorf("%s with %d certificates: %d %s %v", tt.path, len(tt.cert), code, text, err)
		}
	}
}

// ctx.request has all fields of an AdmissionRequest, those of the client among them.
func TestReviewsHaveAllFields(t *testing.T) {
	review, err := parseReview([]byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "1", "operation": "UPDATE",
		"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "subResource": "scale",
		"requestKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "requestResource": {"group": "apps", "version": "v1beta1", "resource": "deployments"},
		"requestSubResource": "scale", "name": "web", "namespace": "a", "userInfo": {"username": "me"}, "object": {}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := review.Request("validate").Fields
	for name, want := range map[string]string{
		"api_version": "apps/v1", "kind": "Deployment", "resource": "deployments", "resource_api_version": "apps/v1", "subresource": "scale",
		"request_api_version": "autoscaling/v1", "request_kind": "Scale", "request_resource": "deployments",
		"request_resource_api_version": "apps/v1beta1", "request_subresource": "scale",
	} {
		if text, _ := starlark.AsString(got[name]); text != want {
			t.Errorf("%s is %q, want %q", name, text, want)
		}
	}
	// An API server that does not say has converted nothing.
	plain := (&builtins.Review{APIVersion: "v1", Kind: "Pod", Resource: "pods"}).Request("validate").Fields
	if fmt.Sprintf("%v %v %v", plain["request_kind"], plain["request_resource"], plain["request_resource_api_version"]) != `"Pod" "pods" "v1"` {
		t.Errorf("%v", plain)
	}
}

// kube-system is covered when it is named, the operator's own namespace never.
func TestKubeSystemIsNamed(t *testing.T) {
	for _, tt := range []struct {
		operator string
		named    []string
		want     string
	}{
		{"ns", nil, "[kube-system ns]"},
		{"ns", []string{"a"}, "[kube-system ns]"},
		{"ns", []string{"kube-system"}, "[ns]"},
		{"kube-system", []string{"kube-system"}, "[kube-system]"},
	} {
		got, err := shape{namespace: tt.operator}.namespaces(&builtins.AdmissionBinding{Namespaces: tt.named})
		if err != nil {
			t.Fatal(err)
		}
		expressions := got["matchExpressions"].([]any)
		last := expressions[len(expressions)-1].(map[string]any)
		if last["operator"] != "NotIn" || fmt.Sprint(last["values"]) != tt.want {
			t.Errorf("%v in %s: %v", tt.named, tt.operator, got)
		}
	}
}

// A flood of requests for one module, all from the address of the API server, keeps no other module from answering.
func TestAFloodForOneModuleStarvesNoOther(t *testing.T) {
	release := make(chan struct{})
	began := make(chan string, 1000)
	s := newTestServer(t, func(ctx context.Context, hook string, _ *builtins.Request) (builtins.Response, error) {
		began <- hook
		if hook != "web/a" {
			return builtins.Response{}, nil
		}
		select {
		case <-release:
			return builtins.Response{}, nil
		case <-ctx.Done():
			return builtins.Response{}, ctx.Err()
		}
	}, func(s *server) { s.grace = time.Hour })
	routes := maps.Clone(*s.routes.Load())
	routes["/validate/other/b/v"] = route{module: "other", hook: "other/b", binding: "v"}
	s.setRoutes(routes)
	c := s.client(s.rotate(time.Now()).bundle)
	var flood sync.WaitGroup
	body := strings.Replace(reviewBody, `"uid":`, `"x": "`+strings.Repeat("x", 100<<10)+`", "uid":`, 1)
	for range 4 * maxParallel {
		flood.Go(func() {
			for code := http.StatusRequestTimeout; code == http.StatusRequestTimeout; { // this machine may be slow
				code, _, _ = s.post(c, "/validate/web/a/v?timeout=30s", body)
			}
		})
	}
	for range maxParallel / 8 {
		<-began
	}
	for range 20 {
		if code, text, err := s.post(c, "/validate/other/b/v?timeout=20s", body); err != nil || code != 200 {
			t.Fatalf("another module: %d %s %v", code, text, err)
		}
	}
	close(release)
	flood.Wait()
}
