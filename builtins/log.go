package builtins

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// log hands a line to the logger. A run that logs too much ends: nobody reads that, and
// what writes it is no hook that works.
func (c *call) log(level Level, msg string, fields []Field) error {
	if c.ctx == nil || c.ctx.Log == nil {
		return nil
	}
	var limits Limits
	if c.ctx.Run != nil {
		limits = c.ctx.Run.Limits
	}
	size := len(msg)
	for _, f := range fields {
		size += len(f.Key) + object.PlainSize(f.Value)
	}
	if c.ctx.logged += size; c.ctx.logged > limits.logBytes() {
		return &LimitError{Limit: "log", Detail: fmt.Sprintf("more than %d bytes in one run", limits.logBytes())}
	}
	c.ctx.Log.Log(level, msg, fields)
	return nil
}

// ownFields are the fields of log lines that Starling writes: with them a line says where
// it comes from.
var ownFields = []string{"time", "level", "message", "module", "hook", "file", "from", "trace"}

// fieldName is the field of a log line that a keyword becomes. One that would be taken
// for a field of Starling's gets "_" before it, and so do those that begin with "_"
// and look like one then: no two keywords become the same.
func fieldName(keyword string) string {
	name := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, keyword)
	if slices.ContainsFunc(ownFields, func(own string) bool { return strings.EqualFold(own, strings.TrimLeft(name, "_")) }) {
		return "_" + name
	}
	return name
}

// plainFields makes the keyword arguments of a log call plain. What JSON cannot
// hold is logged as its type: what is in a log line never ends a run.
func plainFields(kwargs []starlark.Tuple) []Field {
	var out []Field
	for _, kv := range kwargs {
		key, _ := starlark.AsString(kv[0])
		v, err := object.ToPlain(kv[1])
		if err != nil {
			v = "<" + kv[1].Type() + ">"
		}
		out = append(out, Field{Key: fieldName(key), Value: v})
	}
	return out
}
