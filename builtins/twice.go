package builtins

import (
	"fmt"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// A desired function goes by its arguments alone, so a second call must answer as the first one did.

// Again returns a function without parameters that asks fn, the desired function of a controller, once
// more. It fails when the answer differs from first, the one to the same children.
func (q Question) Again(fn starlark.Callable, first *Desired) starlark.Callable {
	return starlark.NewBuiltin(fn.Name(), func(thread *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		return starlark.None, askAgain(thread, fn, q.args(), first)
	})
}

// askAgain calls fn as it was called before, when it has answered first.
func askAgain(thread *starlark.Thread, fn starlark.Callable, args starlark.Tuple, first *Desired) error {
	const refused = "desired is not deterministic: asked twice about the same parent, "
	v, err := starlark.Call(thread, fn, args, nil)
	if err != nil {
		return fmt.Errorf(refused+"it fails the second time: %w", err)
	}
	second, err := DesiredOf(v)
	if err != nil {
		return atFunction(fn, fmt.Errorf(refused+"the second answer is none: %w", err))
	}
	if where := differs(first, &second); where != "" {
		return atFunction(fn, fmt.Errorf(refused+"it answers %s. It must go by ctx and the parent alone, and by nothing that it remembers", where))
	}
	return nil
}

// differs says where two answers differ first, "" for nowhere.
func differs(a, b *Desired) string {
	if x, y := a.summary(), b.summary(); x != y {
		x, y = message.Apart(x, y, 200)
		return x + ", then " + y
	}
	for i := range a.Parts {
		p := &a.Parts[i]
		path, x, y, differ := object.FirstDifference(p.plain(), b.Parts[i].plain())
		if !differ {
			continue
		}
		if p.ID.Kind == "Secret" && (strings.HasPrefix(path, "obj.data") || strings.HasPrefix(path, "obj.stringData")) {
			x, y = object.Hidden, "another "+object.Hidden
		}
		return fmt.Sprintf("part %q with %s: %s, then %s", p.Name, path, x, y)
	}
	for i := range a.Rollouts {
		if x, y := a.Rollouts[i].MaxUnavailable, b.Rollouts[i].MaxUnavailable; x != y {
			return fmt.Sprintf("rolling(…) with max_unavailable: %d, then %d", x, y)
		}
	}
	return ""
}

// summary is an answer without what is in its parts.
func (d *Desired) summary() string {
	switch {
	case d.Stalled != "":
		return fmt.Sprintf("stalled(%q)", spec.Clip(d.Stalled))
	case d.Waiting != "":
		return fmt.Sprintf("waiting(%q)", spec.Clip(d.Waiting))
	case d.Hold:
		return "None"
	}
	names := make([]string, len(d.Parts))
	for i := range d.Parts {
		names[i] = fmt.Sprintf("%q", d.Parts[i].Name)
		if r := d.Parts[i].Rolling; r != "" {
			names[i] += " in " + r
		}
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// plain is all of a part that can be compared, by the names of part(…).
func (p *Part) plain() map[string]any {
	after := make([]any, len(p.After))
	for i, name := range p.After {
		after[i] = name
	}
	fill := map[string]any{}
	for _, f := range p.Fill {
		fill["data."+f.Key] = fmt.Sprintf("generate.%s(%d)", f.How, f.N)
	}
	out := map[string]any{"obj": p.Object, "after": after, "update": string(p.Update), "ready": p.Ready, "retain": p.Retain, "fill": fill, "at_creation": fmt.Sprint(p.AtCreation)}
	if p.Owner != nil {
		out["owner"] = *p.Owner
	}
	return out
}

// atFunction says where the function stands whose answer is wrong.
func atFunction(fn starlark.Callable, err error) error {
	if f, is := fn.(*starlark.Function); is && err != nil {
		return fmt.Errorf("%s: %w", f.Position(), err)
	}
	return err
}
