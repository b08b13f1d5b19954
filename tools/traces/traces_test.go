// Package traces holds the test that a collector of OpenTelemetry reads what Starling sends: a Go
// module apart, so that the product needs neither the collector's code nor gRPC.
package traces

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// The collector's own code reads a request, which runtime/tracing makes (TestRequestIsTheFile), and
// nothing of it is lost: fields that it does not know it would leave out.
func TestACollectorReadsARequest(t *testing.T) {
	body, err := os.ReadFile("../../runtime/tracing/testdata/request.json")
	if err != nil {
		t.Fatal(err)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	read, err := request.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var sent, kept any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read, &kept); err != nil {
		t.Fatal(err)
	}
	for _, lost := range missing("", sent, kept) {
		t.Errorf("the collector does not read %s", lost)
	}
	if n := request.Traces().SpanCount(); n != 1 {
		t.Fatalf("%d spans were read", n)
	}
	span := request.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	if span.Kind() != ptrace.SpanKindConsumer || span.Status().Code() != ptrace.StatusCodeError || span.StartTimestamp() != 1_000_000_000_005 ||
		span.TraceID().String() != "01020000000000000000000000000000" || span.ParentSpanID().String() != "0300000000000000" || span.Links().Len() != 1 {
		t.Errorf("got %s", read)
	}
}

// missing are the places of sent that kept has not, or otherwise.
func missing(at string, sent, kept any) (out []string) {
	switch sent := sent.(type) {
	case map[string]any:
		kept, _ := kept.(map[string]any)
		for name, v := range sent {
			out = append(out, missing(at+"."+name, v, kept[name])...)
		}
		return out
	case []any:
		kept, _ := kept.([]any)
		if len(kept) == len(sent) {
			for i, v := range sent {
				out = append(out, missing(fmt.Sprintf("%s[%d]", at, i), v, kept[i])...)
			}
			return out
		}
	default:
		if sent == kept {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %v is %v", at, sent, kept)}
}
