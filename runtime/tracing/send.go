package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"
)

const (
	// maxWaiting is how many spans wait to be sent, maxBatch how many go at once.
	maxWaiting = 4096
	maxBatch   = 512
	// sendEvery is how long a span waits at most while the collector answers.
	sendEvery = 3 * time.Second
	// sendWithin bounds one request, stopWithin what a stop waits for.
	sendWithin = 5 * time.Second
	stopWithin = 2 * time.Second
	// tries is how often a batch is sent to a collector that is not able to take it now.
	tries = 3
)

// Options configures a [Tracer].
type Options struct {
	// Endpoint is the collector's, as OTEL_EXPORTER_OTLP_ENDPOINT has it: https://HOST:4318, to
	// which /v1/traces is added.
	Endpoint string
	// Headers go with each request, such as one with a token.
	Headers http.Header
	// Instance and Version are Starling's.
	Instance, Version string
	// Client sends; nil: one with the proxies of the environment.
	Client *http.Client
	// Count is told how many spans were sent, dropped because too many waited, or failed.
	Count func(outcome string, n int)
	Log   zerolog.Logger
}

// Tracer makes spans and sends them in the background. Nobody waits for a collector: spans that it
// does not take are dropped, and counted.
type Tracer struct {
	o               Options
	url             string
	waiting         chan *Span
	tell            rate.Sometimes
	pause, patience time.Duration // stopWithin but in tests
}

// New checks the endpoint. Nothing is sent before [Tracer.Run].
func New(o Options) (*Tracer, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("--traces-endpoint %q is no address of a collector; give http://HOST:4318, or https", o.Endpoint)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--traces-endpoint takes neither a user nor a query; a token goes into the environment: OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20…")
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // tokens stay here
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true}}
	}
	return &Tracer{
		o: o, url: u.JoinPath("v1", "traces").String(), waiting: make(chan *Span, maxWaiting),
		tell: rate.Sometimes{First: 1, Interval: time.Minute}, pause: time.Second, patience: stopWithin,
	}, nil
}

// ParseHeaders reads OTEL_EXPORTER_OTLP_HEADERS: names and values, percent-encoded, as a=b,c=d.
// Errors do not quote values.
func ParseHeaders(text string) (http.Header, error) {
	out := http.Header{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errors.New("OTEL_EXPORTER_OTLP_HEADERS is not of the form name=value,name=value, with values percent-encoded")
		}
		out.Set(name, value)
	}
	return out, nil
}

// put hands a span over to be sent.
func (t *Tracer) put(s *Span) {
	select {
	case t.waiting <- s:
	default:
		t.count("dropped", 1)
	}
}

func (t *Tracer) count(outcome string, n int) {
	if t.o.Count != nil {
		t.o.Count(outcome, n)
	}
}

// Run sends spans until ctx ends, then those that still wait, for two seconds at most.
func (t *Tracer) Run(ctx context.Context) {
	every := time.NewTicker(sendEvery)
	defer every.Stop()
	var batch []*Span
	for {
		select {
		case s := <-t.waiting:
			if batch = append(batch, s); len(batch) < maxBatch {
				continue
			}
		case <-every.C:
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.patience)
			defer cancel()
			for n := len(t.waiting); n > 0; n-- {
				batch = append(batch, <-t.waiting)
			}
			for some := range slices.Chunk(batch, maxBatch) {
				t.send(last, some)
			}
			return
		}
		if len(batch) > 0 {
			t.send(ctx, batch)
			batch = nil
		}
	}
}

// send sends a batch, again while the collector says that it will be able to take it later.
func (t *Tracer) send(ctx context.Context, batch []*Span) {
	body, err := encode([]Attribute{
		{"service.name", "starling"}, {"service.version", t.o.Version}, {"service.instance.id", t.o.Instance},
	}, t.o.Version, batch)
	for n := 0; err == nil; n++ {
		var later bool
		if later, err = t.post(ctx, body); err == nil {
			t.count("sent", len(batch))
			return
		}
		if !later || n+1 == tries {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.pause << n):
		}
		err = nil
	}
	t.count("failed", len(batch))
	t.tell.Do(func() {
		t.o.Log.Warn().Err(err).Str("collector", t.url).Msg("spans are not taken by the collector; they are left out, and counted in starling_spans_total")
	})
}

// post sends one request, and says whether another one may succeed.
func (t *Tracer) post(ctx context.Context, body []byte) (later bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	maps.Copy(req.Header, t.o.Headers)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "starling/"+t.o.Version)
	res, err := t.o.Client.Do(req)
	if err != nil {
		return true, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is kept
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted:
		return false, nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		later = true
	}
	return later, fmt.Errorf("the collector answered %s", res.Status)
}
