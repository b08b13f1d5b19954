package operator

import (
	"fmt"
	"os"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/starling-operator/starling/cmd/starling/instance"
	"github.com/starling-operator/starling/runtime/live"
	"github.com/starling-operator/starling/runtime/tracing"
)

// headersVariable has what OpenTelemetry's libraries read from it: a token is none for a flag.
const headersVariable = "OTEL_EXPORTER_OTLP_HEADERS"

// traceFlags say where spans go.
type traceFlags struct{ endpoint string }

func (f *traceFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "traces-endpoint", "", "`URL` of a collector of OpenTelemetry (OTLP over HTTP, as http://collector:4318) that is told what led to what: event, run, commit, release; headers are those of $"+headersVariable+" (default: nobody is)")
}

// open returns the tracer; nil without an endpoint.
func (f *traceFlags) open(i *instance.Instance, version string, metrics *live.Metrics, log zerolog.Logger) (*tracing.Tracer, error) {
	if f.endpoint == "" {
		return nil, nil
	}
	headers, err := tracing.ParseHeaders(os.Getenv(headersVariable))
	if err != nil {
		return nil, err
	}
	tracer, err := tracing.New(tracing.Options{
		Endpoint: f.endpoint, Headers: headers, Instance: i.Namespace + "/" + i.Name, Version: version, Count: metrics.Spans, Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return tracer, nil
}
