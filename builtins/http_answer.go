package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// response is what http.request returns.
type response struct {
	spec.Opaque
	status  int // 0: there is no answer
	err     string
	headers starlark.Value
	body    string // as it came
}

var _ starlark.HasAttrs = (*response)(nil)

func newResponse(f Fetched) *response {
	headers := make(map[string]any, len(f.Headers))
	for k, v := range f.Headers {
		headers[k] = strings.ToValidUTF8(v, "\uFFFD")
	}
	return &response{Opaque: "response", status: f.Status, headers: object.FromPlain(headers), body: string(f.Body)}
}

// newUnanswered stands for an answer that has not come.
func newUnanswered(why string) *response {
	return &response{Opaque: "response", err: why, headers: object.FromPlain(map[string]any{})}
}

func (r *response) String() string {
	if r.err != "" {
		return "<response without an answer>"
	}
	return fmt.Sprintf("<response %d>", r.status)
}

func (r *response) AttrNames() []string {
	return []string{"body", "bytes", "error", "headers", "json", "ok", "status"}
}

// Attr returns what the server answered.
func (r *response) Attr(name string) (starlark.Value, error) {
	switch name {
	case "ok":
		return starlark.Bool(r.status/100 == 2), nil
	case "error":
		if r.err == "" {
			return starlark.None, nil
		}
		return starlark.String(r.err), nil
	case "status":
		return starlark.MakeInt(r.status), nil
	case "headers":
		return r.headers, nil
	case "body":
		return starlark.String(strings.ToValidUTF8(r.body, "\uFFFD")), nil
	case "bytes":
		return starlark.Bytes(r.body), nil
	case "json":
		return starlark.NewBuiltin("json", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
				return nil, err
			}
			if r.err != "" {
				return nil, errors.New("response.json: there is no answer: " + r.err)
			}
			v, err := data.DecodeFrozenJSON(t, strings.ToValidUTF8(r.body, "\uFFFD"))
			if err != nil {
				return nil, fmt.Errorf("response.json: status %d: the body is no JSON: %w", r.status, err)
			}
			return v, nil
		}), nil
	}
	return nil, nil // go.starlark.net says so, and suggests
}
