package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector takes spans as one of OpenTelemetry does, and answers by the codes it is given, then 200.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	codes  []int
	bodies [][]byte
	header http.Header
}

func newCollector(t *testing.T, codes ...int) *collector {
	t.Helper()
	c := &collector{codes: codes}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.header = r.Header
		code := http.StatusOK
		if len(c.codes) > 0 {
			code, c.codes = c.codes[0], c.codes[1:]
		}
		if code == http.StatusOK {
			c.bodies = append(c.bodies, body)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(c.Close)
	return c
}

// spans are those that came, strictly read.
func (c *collector) spans(t *testing.T) (out []span) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, body := range c.bodies {
		var r request
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		for _, rs := range r.ResourceSpans {
			for _, ss := range rs.ScopeSpans {
				out = append(out, ss.Spans...)
			}
		}
	}
	return out
}

type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(outcome string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[outcome] += n
}

// sent runs a tracer while work goes on, and returns what was counted.
func sent(t *testing.T, o Options, work func(*Tracer)) map[string]int {
	t.Helper()
	var n counts
	o.Count, o.Client = n.add, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	tracer, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	tracer.pause, tracer.patience = time.Millisecond, time.Minute // however slow this machine is
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); tracer.Run(ctx) }()
	work(tracer)
	stop()
	<-done
	return n.of
}

// A collector learns what led to what: one trace, each span below the one before, with its times,
// and a stop sends what waits.
func TestSpansReachACollector(t *testing.T) {
	c := newCollector(t)
	at := time.Unix(1000, 5)
	n := sent(t, Options{Endpoint: c.URL + "/", Headers: http.Header{"X-Token": {"secret"}}, Instance: "ns/starling", Version: "v1"}, func(tracer *Tracer) {
		event := tracer.Start(Parent{}, Consumer, "event added", at, nil)
		event.End(at.Add(time.Second), false)
		run := tracer.Start(event.Self(), Internal, "run web/a", at.Add(time.Second), []Parent{event.Self(), {}}, Attribute{"starling.attempt", 2}, Attribute{"starling.key", ""})
		run.End(at.Add(2*time.Second), true, Attribute{"late", true}, Attribute{"text", "x"})
		tracer.Start(Parent{}, Client, "another", at, nil).End(at, false)
	})
	spans := c.spans(t)
	if len(spans) != 3 || n["sent"] != 3 {
		t.Fatalf("%d spans came, %v", len(spans), n)
	}
	event, run, another := spans[0], spans[1], spans[2]
	if event.ParentSpanID != "" || run.ParentSpanID != event.SpanID || run.TraceID != event.TraceID || another.TraceID == event.TraceID {
		t.Errorf("they do not hang together: %+v", spans)
	}
	if len(event.TraceID) != 32 || len(event.SpanID) != 16 || strings.Trim(event.TraceID, "0") == "" {
		t.Errorf("the ids are %q, %q", event.TraceID, event.SpanID)
	}
	if event.StartTimeUnixNano != "1000000000005" || event.EndTimeUnixNano != "1001000000005" || event.Kind != Consumer || event.Status.Code != 0 {
		t.Errorf("the event is %+v", event)
	}
	if run.Status.Code != statusError || !slices.Equal(run.Links, []link{{event.TraceID, event.SpanID}}) {
		t.Errorf("the run is %+v", run)
	}
	attrs, err := json.Marshal(run.Attributes)
	if want := `[{"key":"starling.attempt","value":{"intValue":"2"}},{"key":"late","value":{"boolValue":true}},{"key":"text","value":{"stringValue":"x"}}]`; err != nil || string(attrs) != want {
		t.Errorf("its attributes are %s", attrs)
	}
	if c.header.Get("X-Token") != "secret" || c.header.Get("User-Agent") != "starling/v1" {
		t.Errorf("the headers are %v", c.header)
	}
	if body := string(c.bodies[0]); !strings.Contains(body, `"attributes":[{"key":"service.name","value":{"stringValue":"starling"}}`) {
		t.Errorf("the body is %s", body)
	}
}

// A collector that is busy is asked again; one that refuses is not, and spans never wait.
func TestCollectorsThatDoNotTakeSpans(t *testing.T) {
	one := func(tracer *Tracer) { tracer.Start(Parent{}, Internal, "x", time.Now(), nil).End(time.Now(), false) }
	for name, c := range map[string]struct {
		codes []int
		want  string
	}{
		"busy":     {[]int{503, 429}, "sent"},
		"too busy": {[]int{503, 503, 503}, "failed"},
		"refusing": {[]int{400}, "failed"},
		"moved":    {[]int{307}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			server := newCollector(t, c.codes...)
			if n := sent(t, Options{Endpoint: server.URL, Headers: http.Header{"X-Token": {"secret"}}, Log: zerolog.New(&log)}, one); n[c.want] != 1 || len(n) != 1 {
				t.Errorf("counted %v, want one %s", n, c.want)
			}
			if told := strings.Count(log.String(), "\n"); told > 1 || (told == 1) != (c.want == "failed") || strings.Contains(log.String(), "secret") {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
	t.Run("nobody", func(t *testing.T) {
		server := newCollector(t)
		server.Close()
		if n := sent(t, Options{Endpoint: server.URL}, one); n["failed"] != 1 {
			t.Errorf("counted %v", n)
		}
	})
	t.Run("too many", func(t *testing.T) {
		var n counts
		tracer, err := New(Options{Endpoint: "http://127.0.0.1:1", Count: n.add})
		if err != nil {
			t.Fatal(err)
		}
		for range maxWaiting + 3 { // nobody sends them
			one(tracer)
		}
		if n.of["dropped"] != 3 {
			t.Errorf("counted %v", n.of)
		}
	})
}

// A collector that takes requests and never answers holds up nobody: those who make spans go on at
// once, what is too much is dropped, and a stop waits for two seconds.
func TestACollectorThatHangs(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-over
	}))
	defer server.Close()
	defer close(over)
	const many = 12_000
	var stopped time.Time
	n := sent(t, Options{Endpoint: server.URL}, func(tracer *Tracer) {
		tracer.patience = stopWithin
		var working sync.WaitGroup
		work := func(count int) {
			for range count {
				working.Go(func() { tracer.Start(Parent{}, Internal, "x", time.Now(), nil).End(time.Now(), false) })
			}
			working.Wait()
		}
		work(maxBatch)
		<-asked // and the tracer waits for an answer
		began := time.Now()
		work(many)
		if took := time.Since(began); took > sendWithin {
			t.Errorf("spans are made in %v", took)
		}
		stopped = time.Now()
	})
	if took := time.Since(stopped); took > stopWithin+sendWithin {
		t.Errorf("the stop takes %v", took)
	}
	if n["sent"] != 0 || n["dropped"] < many-maxWaiting || n["dropped"]+n["failed"] != maxBatch+many {
		t.Errorf("counted %v", n)
	}
}

func TestRecentForgets(t *testing.T) {
	r := NewRecent[int](2)
	for i := range 4 {
		r.Put(i, Parent{trace: [16]byte{byte(i + 1)}})
		r.Put(i, Parent{trace: [16]byte{byte(i + 2)}})
	}
	if !r.Get(1).IsZero() || r.Get(2).trace[0] != 4 || r.Get(3).trace[0] != 5 || len(r.of) != 2 {
		t.Errorf("it knows %v", r.of)
	}
}

func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                       "is no address",
		"collector:4318":         "is no address",
		"ftp://collector":        "is no address",
		"http://u:p@collector":   "neither a user nor a query",
		"http://collector?key=x": "neither a user nor a query",
	} {
		if _, err := New(Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", endpoint, err, want)
		}
	}
	if tracer, err := New(Options{Endpoint: "https://collector/otlp/"}); err != nil || tracer.url != "https://collector/otlp/v1/traces" {
		t.Errorf("got %v", err)
	}
	if got, err := ParseHeaders("authorization=Bearer%20abc, x-b=c"); err != nil || got.Get("Authorization") != "Bearer abc" || got.Get("X-B") != "c" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := ParseHeaders(""); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"secret", "=secret", "a=%zzsecret"} {
		if _, err := ParseHeaders(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// The form is that of the published protocol: tools/traces reads this file with its own types.
func TestRequestIsTheFile(t *testing.T) {
	at := time.Unix(1000, 5)
	parent := Parent{trace: [16]byte{1, 2}, span: [8]byte{3}}
	body, err := encode([]Attribute{{"service.name", "starling"}}, "v1", []*Span{{
		parent: parent, self: Parent{trace: parent.trace, span: [8]byte{4}}, name: "run web/a", kind: Consumer, began: at, ended: at.Add(time.Second), failed: true,
		attrs: []Attribute{{"text", "x"}, {"number", 1 << 40}, {"yes", true}, {"no", false}}, links: []Parent{parent},
	}})
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/request.json"
	if os.Getenv("UPDATE") != "" {
		err = errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, body, 0o644))
	}
	want, readErr := os.ReadFile(file)
	if err = errors.Join(err, readErr); err != nil || !bytes.Equal(body, want) {
		t.Errorf("got %s, want %s (%v); run: UPDATE=1 go test ./runtime/tracing -run TheFile", body, want, err)
	}
}
