package codec

import (
	"errors"

	"github.com/starling-operator/starling/builtins"
)

// Request is a [builtins.Request], for [Write].
type Request struct {
	Binding  string             `cbor:"binding"`
	Review   *Review            `cbor:"review,omitempty"`
	Received *builtins.Received `cbor:"received,omitempty"`
	// Objects are those of a conversion to the version To.
	Objects []map[string]any `cbor:"objects,omitempty"`
	To      string           `cbor:"to,omitempty"`
}

// Review is a [builtins.Review] with all that it decodes late.
type Review struct {
	builtins.Review
	OldObject late `cbor:"old"`
	Options   late `cbor:"options"`
	// Late says that two of these were decoded as the hook looked at them.
	Late bool `cbor:"late,omitempty"`
}

// late is a part of a review that may have been decoded late, or could not be.
type late struct {
	Data map[string]any `cbor:"data"`
	Err  string         `cbor:"err,omitempty"`
}

// RequestOf returns nil for no request.
func RequestOf(r *builtins.Request) *Request {
	if r == nil {
		return nil
	}
	out := &Request{Binding: r.Binding, Received: r.Received, Objects: r.Objects, To: r.To}
	if v := r.Review; v != nil {
		out.Review = &Review{Review: *v, OldObject: late{Data: v.OldObject}, Options: late{Data: v.Options}, Late: v.Late != nil}
		if v.Late != nil {
			out.Review.OldObject = decoded(v.Late("old_object"))
			out.Review.Options = decoded(v.Late("options"))
		}
	}
	return out
}

func decoded(m map[string]any, err error) late {
	if err != nil {
		return late{Err: err.Error()}
	}
	return late{Data: m}
}

// Request is the reverse of [RequestOf].
func (r *Request) Request() *builtins.Request {
	switch {
	case r == nil:
		return nil
	case r.Received != nil:
		return r.Received.Request(r.Binding)
	case r.Review == nil:
		return &builtins.Request{Binding: r.Binding, Objects: r.Objects, To: r.To}
	}
	out := r.Review.Review
	if !r.Review.Late {
		out.OldObject, out.Options = r.Review.OldObject.Data, r.Review.Options.Data
		return out.Request(r.Binding)
	}
	parts := map[string]late{"old_object": r.Review.OldObject, "options": r.Review.Options}
	out.Late = func(name string) (map[string]any, error) {
		p := parts[name]
		if p.Err != "" {
			return nil, errors.New(p.Err)
		}
		return p.Data, nil
	}
	return out.Request(r.Binding)
}
