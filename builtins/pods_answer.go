package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/spec"
)

// execution is what k8s.exec returns.
type execution struct {
	spec.Opaque
	err            string // why the command has not ended, as far as is known; "": it has
	code           int
	stdout, stderr string // as they came
}

var _ starlark.HasAttrs = (*execution)(nil)

func (e *execution) String() string {
	if e.err != "" {
		return "<execution without an end>"
	}
	return fmt.Sprintf("<execution %d>", e.code)
}

func (e *execution) AttrNames() []string {
	return []string{"bytes", "code", "error", "json", "ok", "stderr", "stdout"}
}

// Attr returns what came of the command.
func (e *execution) Attr(name string) (starlark.Value, error) {
	switch name {
	case "ok":
		return starlark.Bool(e.err == "" && e.code == 0), nil
	case "code":
		if e.err != "" {
			return starlark.None, nil
		}
		return starlark.MakeInt(e.code), nil
	case "error":
		if e.err == "" {
			return starlark.None, nil
		}
		return starlark.String(e.err), nil
	case "stdout":
		return starlark.String(strings.ToValidUTF8(e.stdout, "\uFFFD")), nil
	case "stderr":
		return starlark.String(strings.ToValidUTF8(e.stderr, "\uFFFD")), nil
	case "bytes":
		return starlark.Bytes(e.stdout), nil
	case "json":
		return starlark.NewBuiltin("json", e.json), nil
	}
	return nil, nil // go.starlark.net says so, and suggests
}

func (e *execution) json(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	if e.err != "" {
		return nil, errors.New("execution.json: there is no output: " + e.err)
	}
	v, err := data.DecodeFrozenJSON(t, strings.ToValidUTF8(e.stdout, "\uFFFD"))
	if err != nil {
		return nil, fmt.Errorf("execution.json: exit code %d: stdout is no JSON: %w", e.code, err)
	}
	return v, nil
}
