package record

import (
	"errors"

	"github.com/starling-operator/starling/builtins"
)

// request is a [builtins.Request].
type request struct {
	Binding  string             `cbor:"binding"`
	Review   *review            `cbor:"review,omitempty"`
	Received *builtins.Received `cbor:"received,omitempty"`
	// Objects are those of a conversion to the version To.
	Objects []map[string]any `cbor:"objects,omitempty"`
	To      string           `cbor:"to,omitempty"`
}

// review is a [builtins.Review].
type review struct {
	UID         string              `cbor:"uid,omitempty"`
	Operation   string              `cbor:"operation,omitempty"`
	Object      map[string]any      `cbor:"object"`
	OldObject   late                `cbor:"old"`
	Namespace   string              `cbor:"namespace,omitempty"`
	Name        string              `cbor:"name,omitempty"`
	APIVersion  string              `cbor:"apiVersion,omitempty"`
	Kind        string              `cbor:"kind,omitempty"`
	Resource    string              `cbor:"resource,omitempty"`
	Subresource string              `cbor:"subresource,omitempty"`
	User        builtins.ReviewUser `cbor:"user"`
	DryRun      bool                `cbor:"dryRun,omitempty"`
	Options     late                `cbor:"options"`
	// Late says that two of these were decoded as the hook looked at them.
	Late bool `cbor:"late,omitempty"`
}

// late is a part of a review that may have been decoded late, or could not be.
type late struct {
	Data map[string]any `cbor:"data"`
	Err  string         `cbor:"err,omitempty"`
}

// requestOf is nil for no request.
func requestOf(r *builtins.Request) *request {
	if r == nil {
		return nil
	}
	out := &request{Binding: r.Binding, Received: r.Received, Objects: r.Objects, To: r.To}
	if v := r.Review; v != nil {
		out.Review = &review{
			UID: v.UID, Operation: v.Operation, Object: v.Object, OldObject: late{Data: v.OldObject},
			Namespace: v.Namespace, Name: v.Name, APIVersion: v.APIVersion, Kind: v.Kind,
			Resource: v.Resource, Subresource: v.Subresource, User: v.User, DryRun: v.DryRun,
			Options: late{Data: v.Options}, Late: v.Late != nil,
		}
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

// request is the reverse of requestOf.
func (r *request) request() *builtins.Request {
	switch {
	case r == nil:
		return nil
	case r.Received != nil:
		return r.Received.Request(r.Binding)
	case r.Review == nil:
		return &builtins.Request{Binding: r.Binding, Objects: r.Objects, To: r.To}
	}
	v := r.Review
	out := &builtins.Review{
		UID: v.UID, Operation: v.Operation, Object: v.Object, Namespace: v.Namespace, Name: v.Name,
		APIVersion: v.APIVersion, Kind: v.Kind, Resource: v.Resource, Subresource: v.Subresource,
		User: v.User, DryRun: v.DryRun,
	}
	if !v.Late {
		out.OldObject, out.Options = v.OldObject.Data, v.Options.Data
		return out.Request(r.Binding)
	}
	parts := map[string]late{"old_object": v.OldObject, "options": v.Options}
	out.Late = func(name string) (map[string]any, error) {
		p := parts[name]
		if p.Err != "" {
			return nil, errors.New(p.Err)
		}
		return p.Data, nil
	}
	return out.Request(r.Binding)
}
