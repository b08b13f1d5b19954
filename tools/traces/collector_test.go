package traces

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/starling-operator/starling/runtime/tracing"
)

// The receiver of a real collector runs in this process, and takes over HTTP what Starling sends.
func TestACollectorReceivesSpans(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String() // the receiver takes no listener
	listener.Close()
	factory, sink := otlpreceiver.NewFactory(), &consumertest.TracesSink{}
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}).Unmarshal(config); err != nil {
		t.Fatal(err)
	}
	receiver, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := receiver.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := receiver.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()

	var mu sync.Mutex
	outcomes := map[string]int{}
	tracer, err := tracing.New(tracing.Options{
		Endpoint: "http://" + address, Instance: "starling", Version: "v1", Log: zerolog.New(zerolog.NewTestWriter(t)),
		Count: func(outcome string, n int) {
			mu.Lock()
			defer mu.Unlock()
			outcomes[outcome] += n
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	event := tracer.Start(tracing.Parent{}, tracing.Consumer, "event", began, nil, tracing.Attribute{Key: "objects", Value: 2})
	run := tracer.Start(event.Self(), tracing.Internal, "run", began, []tracing.Parent{event.Self()}, tracing.Attribute{Key: "hook", Value: "web/sizes"})
	run.End(began.Add(time.Second), true)
	event.End(began.Add(2*time.Second), false)
	ctx, stop := context.WithCancel(t.Context())
	stop() // Run sends all that waits before it ends
	tracer.Run(ctx)

	mu.Lock()
	defer mu.Unlock()
	if outcomes["sent"] != 2 || len(outcomes) != 1 || sink.SpanCount() != 2 {
		t.Fatalf("outcomes %v; the collector has %d spans, not 2", outcomes, sink.SpanCount())
	}
	resource := sink.AllTraces()[0].ResourceSpans().At(0)
	spans := resource.ScopeSpans().At(0).Spans()
	got := map[string]string{}
	for _, span := range spans.All() {
		got[span.Name()] = span.ParentSpanID().String()
		if span.Name() == "event" {
			got["id"] = span.SpanID().String()
		}
	}
	if service, _ := resource.Resource().Attributes().Get("service.name"); service.AsString() != "starling" || got["event"] != "" || got["run"] != got["id"] {
		t.Errorf("spans and their parents: %v, of service %q", got, service.AsString())
	}
}
