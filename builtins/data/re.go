package data

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
)

// Regular expressions, with Go's RE2: time grows with the text, never faster.

const (
	// maxPattern and maxMatched bound what one call may take: a builtin cannot be interrupted.
	maxPattern = 4 << 10
	maxMatched = 2 << 20
	// maxPatterns is how many compiled patterns a thread keeps.
	maxPatterns = 64
)

func reSpecs() []spec.Spec {
	pattern := spec.Required("pattern", spec.String)
	text := spec.Required("text", spec.String)
	return []spec.Spec{
		spec.Pure("re.match", callMatch(true), pattern, text),
		spec.Pure("re.search", callMatch(false), pattern, text),
		spec.Pure("re.find_all", callFindAll, pattern, text),
		spec.Pure("re.sub", callSub, pattern, spec.Required("repl", spec.String), text,
			spec.Optional("count", spec.Int, "0")),
		spec.Pure("re.split", callSplit, pattern, text, spec.Optional("count", spec.Int, "0")),
	}
}

// pattern compiles pattern= and checks text=. Patterns stay compiled as long as the thread lives.
func compiled(c *spec.Call) (*pattern, error) {
	const key = "starling.patterns"
	src := c.Str("pattern")
	if len(src) > maxPattern {
		return nil, fmt.Errorf("pattern: longer than %d bytes", maxPattern)
	}
	if len(c.Str("text")) > maxMatched {
		return nil, fmt.Errorf("text: larger than %d MiB", maxMatched>>20)
	}
	if spec.ParamIndex(c.Spec.Params, "count") >= 0 && c.IntOr("count", 0) < 0 {
		return nil, errors.New("count: is negative")
	}
	known, _ := c.Thread.Local(key).(map[string]*pattern)
	if re := known[src]; re != nil {
		return re, nil
	}
	re, err := newPattern(src)
	if err != nil {
		return nil, fmt.Errorf("pattern: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if known == nil || len(known) >= maxPatterns {
		known = map[string]*pattern{}
		c.Thread.SetLocal(key, known)
	}
	known[src] = re
	return re, nil
}

func callMatch(atStart bool) spec.Func {
	return func(c *spec.Call) (starlark.Value, error) {
		re, err := compiled(c)
		if err != nil {
			return nil, err
		}
		text := c.Str("text")
		found, err := re.find(c.Ctx, text, 1)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 || atStart && found[0][0] != 0 {
			return starlark.None, nil
		}
		at := found[0]
		groups := make([]starlark.Value, re.NumSubexp())
		named := starlark.NewDict(0)
		for i, name := range re.SubexpNames()[1:] {
			groups[i] = group(text, at, i+1)
			if name != "" {
				if err := named.SetKey(starlark.String(name), groups[i]); err != nil {
					return nil, err
				}
			}
		}
		return starlarkstruct.FromStringDict(starlark.String("match"), starlark.StringDict{
			"text":   starlark.String(text[at[0]:at[1]]),
			"start":  starlark.MakeInt(at[0]),
			"end":    starlark.MakeInt(at[1]),
			"groups": starlark.NewList(groups),
			"named":  named,
		}), nil
	}
}

// group returns what the i-th group matched, or None.
func group(text string, at []int, i int) starlark.Value {
	if at[2*i] < 0 {
		return starlark.None
	}
	return starlark.String(text[at[2*i]:at[2*i+1]])
}

// findAll finds up to most matches, all of them when most is 0, as long as their positions fit into some 64 MiB.
func findAll(c *spec.Call, re *pattern, text string, most int) ([][]int, error) {
	limit := (4 << 20) / (re.NumSubexp() + 2)
	if most == 0 || most > limit {
		most = limit + 1
	}
	found, err := re.find(c.Ctx, text, most)
	if err != nil {
		return nil, err
	}
	if len(found) > limit {
		return nil, fmt.Errorf("more than %d matches", limit)
	}
	return found, nil
}

func callFindAll(c *spec.Call) (starlark.Value, error) {
	re, err := compiled(c)
	if err != nil {
		return nil, err
	}
	text := c.Str("text")
	var out []starlark.Value
	matches, err := findAll(c, re, text, 0)
	if err != nil {
		return nil, err
	}
	for _, at := range matches {
		switch n := re.NumSubexp(); n {
		case 0:
			out = append(out, group(text, at, 0))
		case 1:
			out = append(out, group(text, at, 1))
		default:
			groups := make(starlark.Tuple, n)
			for i := range groups {
				groups[i] = group(text, at, i+1)
			}
			out = append(out, groups)
		}
	}
	return starlark.NewList(out), nil
}

func callSub(c *spec.Call) (starlark.Value, error) {
	re, err := compiled(c)
	if err != nil {
		return nil, err
	}
	text, repl := c.Str("text"), c.Str("repl")
	matches, err := findAll(c, re, text, c.IntOr("count", 0))
	if err != nil {
		return nil, err
	}
	var out []byte
	last, refs := 0, strings.Count(repl, "$")
	for _, at := range matches {
		// A reference puts in at most the whole match.
		if err := spec.CheckText(len(out) + at[0] - last + len(repl) + refs*(at[1]-at[0])); err != nil {
			return nil, err
		}
		out = append(out, text[last:at[0]]...)
		out = re.ExpandString(out, repl, text, at)
		last = at[1]
	}
	return starlark.String(append(out, text[last:]...)), nil
}

func callSplit(c *spec.Call) (starlark.Value, error) {
	re, err := compiled(c)
	if err != nil {
		return nil, err
	}
	text, most := c.Str("text"), c.IntOr("count", 0)+1
	if text == "" && c.Str("pattern") != "" {
		return starlark.NewList([]starlark.Value{starlark.String("")}), nil
	}
	if most == 1 {
		most = 0
	}
	found, err := findAll(c, re, text, most)
	if err != nil {
		return nil, err
	}
	var out []starlark.Value
	begin, end := 0, 0
	for _, at := range found {
		if most > 0 && len(out) >= most-1 {
			break
		}
		if end = at[0]; at[1] != 0 {
			out = append(out, starlark.String(text[begin:end]))
		}
		begin = at[1]
	}
	if end != len(text) {
		out = append(out, starlark.String(text[begin:]))
	}
	return starlark.NewList(out), nil
}
