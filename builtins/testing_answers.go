package builtins

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

func testPodSpecs() []spec.Spec {
	row, fn := testSpec(spec.Writes), spec.Required("fn", spec.Function)
	return []spec.Spec{
		row("exec", callTestExec, fn),
		row("ask", callTestAsk, fn),
		row("logs", callTestLogs, fn),
	}
}

// asksPod calls the function of a test about a container.
func (c *call) asksPod(pod effect.Ref, container string, more starlark.StringDict) (starlark.Value, error) {
	more["pod"], more["namespace"] = starlark.String(pod.Name), starlark.String(pod.Namespace)
	more["container"] = starlark.String(container)
	return c.asks("question", more)
}

// asks calls the function of a test with a struct. The test waits in its own call meanwhile.
func (c *call) asks(what string, fields starlark.StringDict) (starlark.Value, error) {
	thread := &starlark.Thread{Name: c.Spec.Name}
	Attach(thread, c.ctx)
	return starlark.Call(thread, c.Arg("fn"), starlark.Tuple{starlarkstruct.FromStringDict(starlark.String(what), fields)}, nil)
}

func callTestExec(c *call, t *Test) (starlark.Value, error) {
	t.World.AnswerExec(func(e effect.Exec) (Executed, error) {
		stdin := starlark.Value(starlark.None)
		if e.Stdin != nil {
			stdin = starlark.String(validText(string(e.Stdin)))
		}
		v, err := c.asksPod(e.Pod, e.Container, starlark.StringDict{"argv": stringList(e.Argv), "stdin": stdin})
		if err != nil {
			return Executed{}, err
		}
		out, err := executedOf(v)
		if err == nil && len(out.Stdout)+len(out.Stderr) > e.MaxBytes {
			return Executed{}, TooMuchOutput(e.MaxBytes)
		}
		return out, err
	})
	return nil, nil
}

// executedOf reads what the function of t.exec has returned.
func executedOf(v starlark.Value) (out Executed, err error) {
	if v == starlark.None {
		return out, &NoAnswerError{"the connection ended before the command: the function of t.exec returned None"}
	}
	var stderr starlark.Value
	if parts, ok := v.(starlark.Tuple); ok {
		if len(parts) != 2 && len(parts) != 3 {
			return out, errors.New("t.exec: the function returned a tuple that is neither (code, stdout) nor (code, stdout, stderr)")
		}
		if out.Code, err = starlark.AsInt32(parts[0]); err != nil {
			return out, fmt.Errorf("t.exec: code: %w", err)
		}
		if len(parts) == 3 {
			stderr = parts[2]
		}
		v = parts[1]
	}
	if out.Stdout, err = outputOf(v); err == nil && stderr != nil {
		out.Stderr, err = outputOf(stderr)
	}
	if err != nil {
		return out, fmt.Errorf("t.exec: %w", err)
	}
	return out, nil
}

// outputOf is bytes as they are, a text, and all else as JSON.
func outputOf(v starlark.Value) ([]byte, error) {
	if raw, is := v.(starlark.Bytes); is {
		return []byte(raw), nil
	}
	text, err := bodyText(v)
	return []byte(text), err
}

func callTestAsk(c *call, t *Test) (starlark.Value, error) {
	t.World.AnswerAsk(func(q effect.Ask) (map[string]any, error) {
		kind, _ := q.Object["kind"].(string)
		v, err := c.asks("question", starlark.StringDict{
			"kind": starlark.String(kind), "spec": object.FromPlain(q.Object["spec"]),
			"namespace": starlark.String(q.Ref.Namespace), "name": starlark.String(q.Ref.Name),
		})
		switch {
		case err != nil:
			return nil, err
		case v == starlark.None:
			return nil, &NoAnswerError{"nobody answers: the function of t.ask returned None"}
		}
		plain, err := object.ToPlainAt(v, []string{"t.ask"})
		status, is := plain.(map[string]any)
		if err == nil && !is {
			err = fmt.Errorf("t.ask: the function returned %s, want a dict or None", v.Type())
		}
		return status, err
	})
	return nil, nil
}

func callTestLogs(c *call, t *Test) (starlark.Value, error) {
	t.World.AnswerLogs(func(q effect.LogQuery) ([]byte, error) {
		given := func(n int) starlark.Value {
			if n == 0 {
				return starlark.None
			}
			return starlark.MakeInt(n)
		}
		v, err := c.asksPod(q.Pod, q.Container, starlark.StringDict{"tail": given(q.Tail), "since": given(int(q.Since.Seconds())), "previous": starlark.Bool(q.Previous)})
		switch {
		case err != nil:
			return nil, err
		case v == starlark.None:
			return nil, &NoAnswerError{"there is no log: the function of t.logs returned None"}
		case !spec.IsText(v):
			return nil, fmt.Errorf("t.logs: the function returned %s, want %s or None", v.Type(), spec.Text)
		}
		text, _ := spec.OpenText(v)
		if len(text) > q.MaxBytes {
			return nil, TooLargeLog(q.MaxBytes)
		}
		return []byte(text), nil
	})
	return nil, nil
}
