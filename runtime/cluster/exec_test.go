package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/starling-operator/starling/builtins"
	e2e "github.com/starling-operator/starling/e2e/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// tlsClient is a client of a server that speaks TLS, and HTTP/2 where that is asked for.
func tlsClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	c, err := New(Options{Log: zerolog.Nop(), Config: &rest.Config{Host: s.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return c
}

// command is one in the Pod db-0.
func command(argv ...string) effect.Exec {
	return effect.Exec{Pod: db0, Container: "db", Argv: argv, Timeout: time.Minute, MaxBytes: 1 << 20}
}

var db0 = effect.Ref{APIVersion: "v1", Kind: "Pod", Namespace: "web", Name: "db-0"}

// executes has a kubelet behave so.
func executes(t *testing.T, e effect.Exec, behave func(p *e2e.Socket)) (builtins.Executed, error) {
	t.Helper()
	return tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		p := e2e.OpenSocket(w, r)
		defer p.Close()
		behave(p)
	}).Exec(t.Context(), e)
}

// unanswered wants the error of an answer that has not come.
func unanswered(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*builtins.NoAnswerError)) || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v (%T), want no answer: %s", err, err, want)
	}
}

func TestExec(t *testing.T) {
	var asked *http.Request
	c := tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		p := e2e.OpenSocket(w, r)
		defer p.Close()
		p.Say(1, "") // that it has begun
		p.Frame(opBinary, "")
		p.Frame(0, "\x01one ")
		p.Frame(0x80|opPing, "still there?")
		p.Frame(0x80, "two")
		p.Say(2, "warning")
		p.Say(1, strings.Repeat("x", 100_000))
		if op, payload, err := p.Hear(); op != opPong || string(payload) != "still there?" || err != nil {
			t.Errorf("a ping has the answer %x %q, %v", op, payload, err)
		}
		p.Say(255, "\x01")
		p.End(0)
	})
	got, err := c.Exec(t.Context(), command("psql", "-c", "select 1; -- ?&=\xff"))
	if err != nil || got.Code != 0 || string(got.Stdout) != "one two"+strings.Repeat("x", 100_000) || string(got.Stderr) != "warning" {
		t.Errorf("%d, %d bytes, %q, %v", got.Code, len(got.Stdout), got.Stderr, err)
	}
	q := asked.URL.Query()
	if asked.URL.Path != "/api/v1/namespaces/web/pods/db-0/exec" || q.Get("container") != "db" || fmt.Sprintf("%q", q["command"]) != `["psql" "-c" "select 1; -- ?&=\xff"]` || q.Has("stdin") || q.Get("stderr") != "true" {
		t.Errorf("asked for %s", asked.URL)
	}
	if asked.ProtoMajor != 1 || asked.Header.Get("Authorization") != "Bearer token" || asked.Header.Get("User-Agent") != "starling" {
		t.Errorf("HTTP/%d, %v", asked.ProtoMajor, asked.Header)
	}
}

func TestExecEndsWithACode(t *testing.T) {
	got, err := executes(t, command("false"), func(p *e2e.Socket) {
		p.Say(2, "no such table")
		p.End(3)
	})
	if err != nil || got.Code != 3 || string(got.Stderr) != "no such table" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The command reads all its input, and then its end.
func TestExecWithAnInput(t *testing.T) {
	e := command("wc", "-c")
	e.Stdin = []byte(strings.Repeat("0123456789", 30_000))
	got, err := executes(t, e, func(p *e2e.Socket) {
		in, err := p.Input()
		if in != string(e.Stdin) {
			t.Errorf("the input is %d bytes, %v", len(in), err)
		}
		p.Say(1, fmt.Sprint(len(in)))
		p.End(0)
	})
	if err != nil || string(got.Stdout) != "300000" {
		t.Errorf("%q, %v", got.Stdout, err)
	}
	e.Stdin = make([]byte, 20<<20)
	if got, err = executes(t, e, func(p *e2e.Socket) {
		p.End(1)
		_, _ = io.Copy(io.Discard, p.In) // until the client has gone
	}); err != nil || got.Code != 1 {
		t.Errorf("a command that does not read: %+v, %v", got, err)
	}
	e.Stdin = []byte{}
	if _, err = executes(t, e, func(p *e2e.Socket) {
		if in, err := p.Input(); in != "" || err != nil {
			t.Errorf("an empty input is %q, %v", in, err)
		}
		p.End(0)
	}); err != nil {
		t.Error(err)
	}
}

// Output that may lack its end is never taken for the whole.
func TestExecIntoAPodThatGoesAway(t *testing.T) {
	const want = "the connection ended before the command, with no exit code"
	for name, behave := range map[string]func(*e2e.Socket){
		"cut":        func(p *e2e.Socket) { p.Say(1, "half of i") },
		"in a frame": func(p *e2e.Socket) { _, _ = p.Write([]byte{0x82, 100, 1, 'x'}) },
		"closed":     func(p *e2e.Socket) { p.Say(1, "half of i"); p.Frame(0x80|opClose, "\x03\xe8"); _, _, _ = p.Hear() },
		"masked":     func(p *e2e.Socket) { _, _ = p.Write([]byte{0x82, 0x81, 1, 2, 3, 4, 5}) },
		"long ping":  func(p *e2e.Socket) { p.Frame(0x80|opPing, strings.Repeat("x", 126)) },
		"no start":   func(p *e2e.Socket) { p.Frame(0x80, "\x01x") },
		"extension":  func(p *e2e.Socket) { p.Frame(0xc0|opBinary, "\x01x") },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := executes(t, command("cat"), behave)
			unanswered(t, err, want)
		})
	}
	_, err := executes(t, command("nope"), func(p *e2e.Socket) {
		p.Status(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: "exec failed:\nno such file"})
	})
	unanswered(t, err, "the command was not run, or has no exit code: exec failed: no such file")
	_, err = executes(t, command("nope"), func(p *e2e.Socket) { p.Say(3, "{") })
	unanswered(t, err, "cannot be read")
}

func TestExecWithoutEnd(t *testing.T) {
	e := command("yes")
	e.MaxBytes = 1000
	for _, channel := range []byte{1, 2, 3} { // the last one is the status
		_, err := executes(t, e, func(p *e2e.Socket) {
			p.Frame(opBinary, string([]byte{channel}))
			for p.Frame(0, strings.Repeat("y", 1000)) { // one message without end
			}
		})
		unanswered(t, err, "the output is larger than max_bytes, 1000")
	}
	e.MaxBytes, e.Timeout = 1<<20, 100*time.Millisecond
	_, err := executes(t, e, func(p *e2e.Socket) {
		p.Say(1, "it begins")
		_, _, _ = p.Hear() // until the client has had enough
	})
	unanswered(t, err, "within 100ms") // a loaded machine may not even begin it
	_, err = executes(t, e, func(p *e2e.Socket) {
		for p.Frame(0x80|opPing, "still there?") { // and never reads an answer
		}
	})
	unanswered(t, err, "within 100ms")
	ctx, cancel := context.WithCancel(t.Context())
	c := tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		p := e2e.OpenSocket(w, r)
		defer p.Close()
		cancel()
		_, _, _ = p.Hear()
	})
	if _, err := c.Exec(ctx, command("sleep")); !errors.Is(err, context.Canceled) || builtins.Unanswered(err) {
		t.Errorf("a run that ends: %v", err)
	}
}

// The API server refuses: what the Pod may cause is no answer, all else an error.
func TestExecRefused(t *testing.T) {
	for code, want := range map[int]struct {
		text   string
		answer bool // that nobody answered
	}{
		400: {"cannot exec in its container: container db is not valid", true},
		404: {"cannot exec in its container: container db is not valid", true},
		500: {"cannot exec in its container: ", true},
		403: {"cannot exec in its container: ", true},
		401: {"does not accept our credentials", false},
		429: {"asks to come back later", false},
		200: {"opens no WebSocket: it answers 200", false},
		302: {"opens no WebSocket: it answers 302", false},
	} {
		c := tlsClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example")
			w.WriteHeader(code)
			if code >= 400 && code != 500 {
				reason := map[int]metav1.StatusReason{400: metav1.StatusReasonBadRequest, 401: metav1.StatusReasonUnauthorized, 403: metav1.StatusReasonForbidden, 404: metav1.StatusReasonNotFound, 429: metav1.StatusReasonTooManyRequests}[code]
				_, _ = fmt.Fprintf(w, `{"kind": "Status", "status": "Failure", "code": %d, "reason": %q, "message": "container db is not valid"}`, code, reason)
			}
		})
		_, err := c.Exec(t.Context(), command("true"))
		if err == nil || !strings.Contains(err.Error(), want.text) || builtins.Unanswered(err) != want.answer {
			t.Errorf("%d: %v (no answer: %t), want %s", code, err, builtins.Unanswered(err), want.text)
		}
		if code == 403 && !apierrors.IsForbidden(err) {
			t.Errorf("%d: %v is not forbidden", code, err)
		}
	}
	c := tlsClient(t, func(w http.ResponseWriter, r *http.Request) { // as the right to create is asked for
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "pods \"db-0\" is forbidden: "}`)
	})
	if _, err := c.Exec(t.Context(), command("true")); err == nil || !strings.Contains(err.Error(), "not allowed to create pods/exec in namespace web: give Starling's ServiceAccount this right") {
		t.Errorf("got %v", err)
	}
	c = tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		w.WriteHeader(http.StatusSwitchingProtocols) // without the rest
	})
	if _, err := c.Exec(t.Context(), command("true")); err == nil || !strings.Contains(err.Error(), "does not speak v5.channel.k8s.io") {
		t.Errorf("got %v", err)
	}
}

// A command may change what it likes: none begins once writes have ended.
func TestExecStopsWithWrites(t *testing.T) {
	c := tlsClient(t, func(http.ResponseWriter, *http.Request) { t.Error("a request left the process") })
	c.Shut()
	if _, err := c.Exec(t.Context(), command("true")); !errors.Is(err, ErrFenced) {
		t.Errorf("got %v", err)
	}
}

func TestLogs(t *testing.T) {
	var asked *http.Request
	answer := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "one\ntwo\n") }
	c := tlsClient(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r
		answer(w)
	})
	q := effect.LogQuery{Pod: db0, Container: "db", Tail: 10, Since: 90 * time.Second, Previous: true, Timeout: time.Minute, MaxBytes: 1000}
	text, err := c.Logs(t.Context(), q)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("%q, %v", text, err)
	}
	if want := "/api/v1/namespaces/web/pods/db-0/log?container=db&limitBytes=1001&previous=true&sinceSeconds=90&tailLines=10"; asked.URL.String() != want {
		t.Errorf("asked for %s, want %s", asked.URL, want)
	}
	q = effect.LogQuery{Pod: db0, Container: "db", Timeout: time.Minute, MaxBytes: 1000}
	forever := func(w http.ResponseWriter) {
		for {
			if _, err := io.WriteString(w, "and on\n"); err != nil {
				return
			}
		}
	}
	answer = forever
	_, err = c.Logs(t.Context(), q)
	unanswered(t, err, "the log is larger than max_bytes, 1000; tail=")
	if want := "/api/v1/namespaces/web/pods/db-0/log?container=db&limitBytes=1001"; asked.URL.String() != want {
		t.Errorf("asked for %s, want %s", asked.URL, want)
	}
	answer = func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half of i")
	}
	_, err = c.Logs(t.Context(), q)
	unanswered(t, err, "the log was cut off")
	answer = func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 400, "reason": "BadRequest", "message": "container \"db\" in pod \"db-0\" is waiting to start: ContainerCreating"}`)
	}
	_, err = c.Logs(t.Context(), q)
	unanswered(t, err, "cannot read its log: container \"db\" in pod \"db-0\" is waiting to start")
	q.Timeout = 100 * time.Millisecond
	answer = func(w http.ResponseWriter) {
		w.(http.Flusher).Flush()
		<-asked.Context().Done()
	}
	_, err = c.Logs(t.Context(), q)
	unanswered(t, err, "the log has not ended within 100ms")
}

// given is a connection on which all has come that comes.
type given struct{ *bytes.Reader }

func (given) Write(p []byte) (int, error) { return len(p), nil }
func (given) Close() error                { return nil }

// No bytes of a server crash the process, hold more than they may, or make a command seem to have ended that has
// not said so.
func FuzzExecFrames(f *testing.F) {
	for _, data := range []string{"\x82\x02\x01a", "\x82\x15\x03{\"status\":\"Success\"}", "\x02\x01\x01\x89\x01p\x80\x01a", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x88\x02\x03\xe8", "\x82\x7e\x00"} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := given{bytes.NewReader(data)}
		out := &outputs{left: 10, channel: -1}
		err := (&socket{conn: in, in: bufio.NewReader(in)}).receive(out.take)
		if err == nil {
			t.Fatal("it goes on without bytes")
		}
		if len(out.stdout)+len(out.stderr) > 10 {
			t.Errorf("%d bytes are more than it may have", len(out.stdout)+len(out.stderr))
		}
		if errors.Is(err, errEnded) && len(out.status) == 0 {
			t.Errorf("%q ends a command", data)
		}
		_, _ = out.result()
	})
}
