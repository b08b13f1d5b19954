package builtins

import (
	"fmt"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/runtime/object"
)

// log hands a line to the logger, as long as the run may log.
func (c *call) log(level Level, msg string, fields []Field) {
	if c.ctx == nil || c.ctx.Log == nil || c.ctx.cut {
		return
	}
	var limits Limits
	if c.ctx.Run != nil {
		limits = c.ctx.Run.Limits
	}
	size := len(msg)
	for _, f := range fields {
		size += len(f.Key) + object.PlainSize(f.Value)
	}
	most := limits.logBytes()
	if c.ctx.logged += size; c.ctx.logged > most {
		c.ctx.cut = true
		c.ctx.Log.Log(LevelWarn, fmt.Sprintf("log cut: more than %d bytes in one run", most), nil)
		return
	}
	c.ctx.Log.Log(level, msg, fields)
}

// plainFields makes the keyword arguments of a log call plain. What JSON cannot
// hold is logged as its text: a log line never ends a run.
func plainFields(kwargs []starlark.Tuple) []Field {
	var out []Field
	for _, kv := range kwargs {
		key, _ := starlark.AsString(kv[0])
		v, err := object.ToPlain(kv[1])
		if err != nil {
			v = "<" + kv[1].Type() + ">"
		}
		out = append(out, Field{Key: key, Value: v})
	}
	return out
}
