package builtins

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/spec"
)

// Request is what a request run answers: somebody waits for it. It is the hook's
// ctx.request.
type Request struct {
	// Binding is the name of the binding that the request came to.
	Binding string
	// Fields are the attributes of ctx.request; frozen. Which there are depends on
	// the kind of the binding.
	Fields starlark.StringDict
	// Object is what a mutating hook may change; nil when there is nothing.
	Object map[string]any
	// Objects are what a conversion is asked for, and To the version that they are
	// to have ("stable.example.com/v1").
	Objects []map[string]any
	To      string

	// Review and Received are what the request was made of: one of them, or neither.
	Review   *Review
	Received *Received

	// late gives the attributes of a review that most hooks do not look at.
	late func(name string) (map[string]any, error)
}

// Response is what a request run answered.
type Response struct {
	// Denied is set when a validating or mutating hook said no.
	Denied *Denial
	// Warnings are for the client of the request, in the order of the calls of warn().
	Warnings []string
	// Object is what a mutating hook made of the object; nil: unchanged.
	Object map[string]any
	// Objects are what a conversion made, in the order of [Request].Objects.
	Objects []map[string]any
	// Reply is what http.receive answers; nil means 200 without a body.
	Reply *Reply
}

// Denial is deny(msg, code).
type Denial struct {
	Message string
	Code    int // an HTTP status, 400 to 599
}

// Reply is reply(status, body).
type Reply struct {
	Status int
	// ContentType of Body: "application/json" for data, "text/plain; charset=utf-8" for text.
	ContentType string
	Body        []byte
}

// value is ctx.request.
func (r *Request) value() starlark.Value {
	if r == nil {
		return starlark.None
	}
	v := &withFields{Opaque: "request", fields: r.Fields}
	switch {
	case r.Received != nil: // the limits of the run hold for the decoding of its body, too
		v.late, v.make = []string{"json"}, func(string) (starlark.Value, error) {
			text, _ := starlark.AsString(r.Fields["body"])
			if decoded, err := data.DecodeFrozenJSON(&starlark.Thread{}, text); err == nil {
				return decoded, nil
			}
			return starlark.None, nil
		}
		return v
	case r.late != nil:
		v.late, v.make = lateFields[:], func(name string) (starlark.Value, error) {
			m, err := r.late(name)
			if err != nil {
				return nil, fmt.Errorf("request.%s: %w", name, err)
			}
			return objectOrNone(m), nil
		}
		return v
	}
	return starlarkstruct.FromStringDict(starlark.String("request"), r.Fields)
}

// Phase is the phase in which requests to the binding are answered; 0 when the
// binding takes none.
func (b *Binding) Phase() spec.Phase {
	switch {
	case b.Admission != nil:
		return spec.InReview
	case b.Convert != nil:
		return spec.InConvert
	case b.Receive != nil:
		return spec.InReceive
	}
	return 0
}

// Respond takes what the hook returned as its answer to a request at the binding.
// Warnings that builtins have recorded already stay.
func (r *Run) Respond(b *Binding, v starlark.Value) error {
	switch {
	case b.Admission != nil:
		return r.respondAdmission(b.Admission, v)
	case b.Receive != nil:
		return r.respondReceive(v)
	}
	return fmt.Errorf("binding %s takes no requests", b.Name)
}
