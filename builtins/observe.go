package builtins

import (
	"fmt"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// A controller looks at the world outside of the API with observe=, and changes it with the call(…) of act=.

const (
	// ObserveSuffix ends the id of the hook that observes the parents of a controller, behind that of the controller.
	ObserveSuffix = ".observe"
	// maxEvery bounds controller(every=).
	maxEvery = 24 * time.Hour
	// maxObserved bounds what observe returns, in bytes: it is held in memory for each parent.
	maxObserved = 256 << 10
)

// Observed is what was observed about a parent. Nobody changes it.
type Observed struct {
	// UID is that of the parent, Value plain data.
	UID   string
	Value any
	At    time.Time
	// First are fields that act wants in the status before a call, and that were not there, Tries says how often.
	First map[string]any
	Tries int
}

// Same says whether another observation is of the same parent, and has found the same; o may be nil.
func (o *Observed) Same(other *Observed) bool {
	return o != nil && o.UID == other.UID && object.Same(o.Value, other.Value)
}

// Called is call(…): one step outside of the API.
type Called struct {
	// Request is made, or Do called.
	Request effect.Request
	Do      starlark.Callable
	// First are fields of the status that must be there before; Done says of the answer whether the step is done, Then
	// which fields follow. Nil: the answer's .ok, and none.
	First      map[string]any
	Done, Then starlark.Callable
	// Pos is the "file:line" of the call, and What names the step for people.
	What, Pos string
}

func observeSpecs() []spec.Spec {
	return []spec.Spec{
		declare("call", spec.InObserve, spec.NoEffect, callCall, spec.Required("do", spec.Any),
			spec.Keyword("first", spec.Dict, "{}"), spec.Keyword("done", spec.Function, "None"), spec.Keyword("then", spec.Function, "None")),
	}
}

func callCall(c *call) (starlark.Value, error) {
	out, err := Called{Pos: c.Pos()}, error(nil)
	if fn, is := c.Arg("do").(starlark.Callable); is {
		out.Do, out.What = fn, fn.Name()
		err = takes(fn, 0, "none")
	} else if out.Request, err = c.gathered(c.Arg("do")); err == nil {
		out.What = out.Request.Where()
	}
	if err != nil {
		return nil, fmt.Errorf("do: %w", err)
	}
	if out.First, err = c.plainDict("first"); err != nil {
		return nil, err
	}
	takesAnswer := func(fn starlark.Callable) error { return takesOne(fn, "answer") }
	if out.Done, err = c.function("done", takesAnswer); err == nil {
		out.Then, err = c.function("then", takesAnswer)
	}
	return &declared[Called]{"call", out}, err
}

// observer registers the hook that observes the parents of a controller, and acts. Its line of work is its own: a look
// at the world may take long, and holds up no child.
func (c *call) observer(h *HookDecl) (err error) {
	o := *h
	o.ID, o.Queue, o.Controller = h.ID+ObserveSuffix, h.ID+ObserveSuffix, &ControllerDecl{
		Owns: h.Controller.Owns, Fields: h.Controller.Fields, Observes: h.ID,
		Every: max(c.DurationOr("every", 10*time.Second), minRequeue),
	}
	if o.Fn, err = c.function("observe", takesParent); err != nil {
		return err
	}
	if o.Controller.Act, err = c.function("act", takesParent); err != nil {
		return err
	}
	if o.Fn == nil {
		for _, name := range []string{"every", "act"} {
			if c.Arg(name) != nil {
				return fmt.Errorf("%s: means nothing without observe", name)
			}
		}
		return nil
	}
	o.MinInterval, h.Controller.Observed = 0, true
	o.Retry.Max = max(o.Controller.Every, o.Retry.Min)
	o.Bindings = make([]Binding, len(h.Bindings))
	for i, b := range h.Bindings {
		w := *b.Watch
		w.NoGate = true
		o.Bindings[i] = Binding{Name: b.Name, Watch: &w}
	}
	return c.add(&o)
}

// Acted is what observe and act have come to.
type Acted struct {
	Observed any
	// First are the fields of the status that are written before the call of What is made, Then those after it.
	What, Pos   string
	First, Then map[string]any
	// Called says that the call was made, or begun; Waits why not, or "".
	Called bool
	Waits  string
}

// Observe returns a function without parameters that calls observe and, unless it is nil, act; plans has no call made.
// A call is made once the status holds the fields of first=: a run after one that was cut off decides as any other.
// Status returns that of the parent: as its watch knows it or, right before a call, as it is.
func (q Question) Observe(observe, act starlark.Callable, status func(fresh bool) (map[string]any, error), plans bool,
	out *Acted) starlark.Callable {
	return starlark.NewBuiltin(observe.Name(), func(thread *starlark.Thread, _ *starlark.Builtin, _ starlark.Tuple,
		_ []starlark.Tuple) (starlark.Value, error) {
		v, err := starlark.Call(thread, observe, q.args(), nil)
		if err != nil {
			return nil, err
		}
		if out.Observed, err = object.ToPlainWithin(v, maxObserved); err != nil {
			return nil, fmt.Errorf("observe returned %s: %w", v.Type(), err)
		}
		if act == nil {
			return starlark.None, nil
		}
		q.Observed = &Observed{Value: out.Observed, At: From(thread).Run.Now}
		if v, err = starlark.Call(thread, act, q.args(), nil); err != nil || v == starlark.None {
			return v, err
		}
		called, is := v.(*declared[Called])
		if !is {
			return nil, fmt.Errorf("act returned %s; it must return call(…), or None", v.Type())
		}
		out.What, out.Pos = called.val.What, called.val.Pos
		for _, fresh := range []bool{false, true} {
			now, err := status(fresh)
			if err != nil {
				return nil, err
			}
			if !object.Same(now, mergedWith(now, called.val.First)) {
				out.First = called.val.First
				return starlark.None, nil
			}
		}
		if out.Called = !plans; plans {
			out.Waits = "a plan makes no call: " + out.What
			return starlark.None, nil
		}
		out.Then, err = called.val.make(thread)
		return starlark.None, err
	})
}

// mergedWith is a status with other fields, as a merge patch makes it.
func mergedWith(status, fields map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range status {
		out[k] = v
	}
	for k, v := range fields {
		before, _ := out[k].(map[string]any)
		if inner, is := v.(map[string]any); is {
			out[k] = mergedWith(before, inner)
		} else if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

// make makes the call, and returns what then= says of the answer.
func (d *Called) make(thread *starlark.Thread) (then map[string]any, err error) {
	var answer starlark.Value
	ctx := From(thread)
	if ctx.Run.Calls = true; d.Do != nil {
		answer, err = starlark.Call(thread, d.Do, nil, nil)
	} else {
		var got Gathered
		c := &call{Call: &spec.Call{Thread: thread, Scope: ctx.scope()}, ctx: ctx, run: ctx.Run}
		got, err = c.answer(d.Request)
		answer = responseOf(got)
	}
	if err != nil {
		return nil, err
	}
	done, err := d.done(thread, answer)
	if err == nil && !done {
		err = fmt.Errorf("call of %s: %s was answered %s", d.Pos, d.What, answerText(answer))
	}
	if err != nil || d.Then == nil {
		return nil, err
	}
	v, err := starlark.Call(thread, d.Then, starlark.Tuple{answer}, nil)
	if err != nil || v == starlark.None {
		return nil, err
	}
	plain, err := object.ToPlain(v)
	then, is := plain.(map[string]any)
	if err == nil && !is {
		err = fmt.Errorf("then returned %s; it must return a dict of fields of the status, or None", v.Type())
	}
	return then, err
}

// done says whether an answer means that the step is done.
func (d *Called) done(thread *starlark.Thread, answer starlark.Value) (bool, error) {
	if d.Done != nil {
		v, err := starlark.Call(thread, d.Done, starlark.Tuple{answer}, nil)
		is, ok := v.(starlark.Bool)
		if err == nil && !ok {
			err = fmt.Errorf("done returned %s; it must return True or False", v.Type())
		}
		return bool(is), err
	}
	with, has := answer.(starlark.HasAttrs)
	if !has {
		return true, nil
	}
	ok, err := with.Attr("ok")
	return ok == nil || bool(ok.Truth()), err
}

// answerText is what an answer says that is no success, for people.
func answerText(answer starlark.Value) string {
	with, is := answer.(*withFields)
	if !is {
		return spec.Clip(answer.String())
	}
	text := with.String()
	for _, name := range []string{"error", "body", "stderr"} {
		if s, is := starlark.AsString(with.fields[name]); is && s != "" {
			return text + ": " + spec.Clip(s)
		}
	}
	return text
}
