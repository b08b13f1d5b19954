package builtins

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/object"
)

// log hands a line to the logger. A run that logs too much ends: nobody reads that, and
// what writes it is no hook that works.
func (c *call) log(level Level, msg string, fields []Field) error {
	if c.ctx == nil || c.ctx.Log == nil {
		return nil
	}
	size := len(msg)
	for _, f := range fields {
		size += len(f.Key) + object.PlainSize(f.Value)
	}
	if size > c.logLeft() {
		return c.logLimit()
	}
	c.ctx.logged += size
	c.ctx.Log.Log(level, msg, fields)
	return nil
}

// ownFields are the fields of log lines that Starling writes: with them a line says where it comes from.
var ownFields = []string{"time", "level", "message", "module", "hook", "file", "from", "trace"}

// fieldName is the field of a log line that a keyword becomes. One that would be taken for a field of Starling's gets
// "_" before it, and so do those that begin with "_" and look like one then: no two keywords become the same.
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

// logLeft is how many bytes the run may still log.
func (c *call) logLeft() int { return c.logMost() - c.ctx.logged }

func (c *call) logMost() int {
	if c.ctx.Run != nil {
		return c.ctx.Run.Limits.logBytes()
	}
	return Limits{}.logBytes()
}

// logLimit ends a run that logs too much. It may log no more.
func (c *call) logLimit() error {
	c.ctx.logged = c.logMost()
	return &spec.LimitError{Limit: "log", Detail: fmt.Sprintf("more than %d bytes in one run", c.logMost())}
}

// logText puts together the text of values, if the run may log that much. A value that is larger
// than all that a run may log is named by its type.
func (c *call) logText(values []starlark.Value, sep string) (string, error) {
	if c.ctx == nil {
		return "", nil
	}
	left := c.logLeft()
	var b strings.Builder
	for i, v := range values {
		if i > 0 {
			b.WriteString(sep)
		}
		text, isText := starlark.AsString(v)
		size := len(text)
		if !isText {
			var deep bool
			if size, deep = object.TextSize(v, c.logMost()); deep || size > c.logMost() {
				text = unshown(v)
				size, isText = len(text), true
			}
		}
		if b.Len()+size > left {
			return "", c.logLimit()
		}
		if !isText {
			text = textOf(v)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// plainFields makes the keyword arguments of a log call plain, if the run may log that much. A value that JSON cannot
// hold, or that is larger than all that a run may log, is logged as its type: what is in a log line never ends a run.
func (c *call) plainFields() ([]Field, error) {
	if c.ctx == nil {
		return nil, nil
	}
	left := c.logLeft()
	var out []Field
	for _, kv := range c.Kwargs {
		key, _ := starlark.AsString(kv[0])
		if text, ok := starlark.AsString(kv[1]); ok && len(text) > left {
			return nil, c.logLimit()
		}
		v, err := object.ToPlainWithin(kv[1], c.logMost())
		if err != nil {
			v = "<" + kv[1].Type() + ">"
		}
		if left -= len(key) + object.PlainSize(v); left < 0 {
			return nil, c.logLimit()
		}
		out = append(out, Field{Key: fieldName(key), Value: v})
	}
	return out, nil
}
