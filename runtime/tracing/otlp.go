package tracing

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
)

// These are the messages of OTLP, opentelemetry.proto.collector.trace.v1, in their JSON form: ids
// are in hexadecimal, numbers of 64 bits are texts.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	span struct {
		TraceID           string      `json:"traceId"`
		SpanID            string      `json:"spanId"`
		ParentSpanID      string      `json:"parentSpanId,omitempty"`
		Name              string      `json:"name"`
		Kind              Kind        `json:"kind"`
		StartTimeUnixNano string      `json:"startTimeUnixNano"`
		EndTimeUnixNano   string      `json:"endTimeUnixNano"`
		Attributes        []attribute `json:"attributes,omitempty"`
		Links             []link      `json:"links,omitempty"`
		Status            state       `json:"status"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	state struct {
		Code int `json:"code,omitempty"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
		Bool   *bool   `json:"boolValue,omitempty"`
	}
)

// statusError is what OTLP calls a span that has failed.
const statusError = 2

// encode makes the body of a request.
func encode(about []Attribute, version string, spans []*Span) ([]byte, error) {
	out := scopeSpans{Scope: scope{Name: "starling", Version: version}}
	for _, s := range spans {
		one := span{
			TraceID: hex.EncodeToString(s.self.trace[:]), SpanID: hex.EncodeToString(s.self.span[:]),
			Name: s.name, Kind: s.kind, StartTimeUnixNano: nanoseconds(s.began), EndTimeUnixNano: nanoseconds(s.ended),
			Attributes: attributes(s.attrs),
		}
		if !s.parent.IsZero() {
			one.ParentSpanID = hex.EncodeToString(s.parent.span[:])
		}
		if s.failed {
			one.Status.Code = statusError
		}
		for _, l := range s.links {
			if !l.IsZero() {
				one.Links = append(one.Links, link{hex.EncodeToString(l.trace[:]), hex.EncodeToString(l.span[:])})
			}
		}
		out.Spans = append(out.Spans, one)
	}
	return json.Marshal(request{[]resourceSpans{{resource{attributes(about)}, []scopeSpans{out}}}})
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func attributes(list []Attribute) (out []attribute) {
	for _, a := range list {
		var v value
		switch of := a.Value.(type) {
		case string:
			if of == "" {
				continue
			}
			v.String = &of
		case int:
			text := strconv.Itoa(of)
			v.Int = &text
		case bool:
			v.Bool = &of
		}
		out = append(out, attribute{a.Key, v})
	}
	return out
}
