package builtins

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/runtime/object"
)

// responseOf is what http.request returns. An answer that has not come has an Err, and no status.
func responseOf(g Gathered) starlark.Value {
	why, lacks, shown := "", "", fmt.Sprintf("<response %d>", g.Status)
	if g.Err != nil {
		why, shown = g.Err.Error(), "<response without an answer>"
		lacks = "response.json: there is no answer: " + why
	}
	body := validText(string(g.Body))
	return &withFields{Opaque: "response", shown: shown, fields: starlark.StringDict{
		"ok": starlark.Bool(g.Status/100 == 2), "error": textOrNone(why), "status": starlark.MakeInt(g.Status),
		"headers": object.FromPlain(plainTexts(g.Headers)), "body": starlark.String(body), "bytes": starlark.Bytes(g.Body),
		"json": jsonOf(body, lacks, fmt.Sprintf("response.json: status %d: the body is no JSON", g.Status)),
	}}
}

// executionOf is what k8s.exec returns; err says why the command has not ended, as far as is known.
func executionOf(e Executed, err error) starlark.Value {
	why, lacks, shown, code := "", "", fmt.Sprintf("<execution %d>", e.Code), starlark.Value(starlark.MakeInt(e.Code))
	if err != nil {
		why, shown, code = err.Error(), "<execution without an end>", starlark.None
		lacks = "execution.json: there is no output: " + why
	}
	stdout := validText(string(e.Stdout))
	return &withFields{Opaque: "execution", shown: shown, fields: starlark.StringDict{
		"ok": starlark.Bool(err == nil && e.Code == 0), "code": code, "error": textOrNone(why),
		"stdout": starlark.String(stdout), "stderr": starlark.String(validText(string(e.Stderr))),
		"bytes": starlark.Bytes(e.Stdout),
		"json":  jsonOf(stdout, lacks, fmt.Sprintf("execution.json: exit code %d: stdout is no JSON", e.Code)),
	}}
}

// jsonOf is the function that decodes a text. It fails with lacks, if there is no text, or with wrong.
func jsonOf(text, lacks, wrong string) starlark.Value {
	return starlark.NewBuiltin("json", func(t *starlark.Thread, b *starlark.Builtin, args starlark.Tuple,
		kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
			return nil, err
		}
		if lacks != "" {
			return nil, errors.New(lacks)
		}
		v, err := data.DecodeFrozenJSON(t, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", wrong, err)
		}
		return v, nil
	})
}
