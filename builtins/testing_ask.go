package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// TestReview is what t.admit returns.
type TestReview struct {
	Allowed  bool
	Message  string
	Code     int
	Warnings []string
	// Object is what mutating hooks have made of it.
	Object map[string]any
}

// SentMessage is one of t.sent().
type SentMessage struct {
	Hook, Method, URL, Key string
	Headers                map[string]string
	Body                   string
}

func testAskSpecs() []spec.Spec {
	row, read := testSpec(spec.Writes), testSpec(spec.Reads)
	return []spec.Spec{
		row("admit", callTestAdmit, spec.Required("obj", spec.Dict), spec.Optional("operation", spec.String, `"CREATE"`),
			spec.Optional("old", spec.Dict, "None"), spec.Optional("user", spec.String, `"test"`),
			spec.Optional("groups", spec.Strings, "[]"), spec.Keyword("subresource", spec.String, "None")),
		row("convert", callTestConvert, spec.Required("obj", spec.Dict), spec.Required("to", spec.String)),
		row("request", callTestRequest, spec.Required("path", spec.String), spec.Optional("body", spec.Any, `""`),
			spec.Optional("headers", spec.Dict, "{}"), spec.Optional("method", spec.String, `"POST"`)),
		row("http", callTestHTTP, spec.Required("host", spec.String), spec.Required("fn", spec.Function)),
		does("env", func(c *call, t *Test) error {
			t.World.Env(c.Str("name"), c.Str("text"))
			return nil
		}, spec.Required("name", spec.String), spec.Required("text", spec.String)),
		read("plan", callTestPlan, spec.Optional("all", spec.Bool, "False")),
		row("replay", callTestReplay, spec.Required("run", spec.Dict)),
		read("desired", callTestDesired, spec.Required("fn", spec.Function), spec.Required("obj", spec.Any),
			spec.Optional("children", spec.List, "[]"), spec.Optional("reads", spec.Dict, "{}"),
			spec.Optional("values", spec.Dict, "{}"), spec.Optional("now", spec.Any, "None"),
			spec.Optional("observed", spec.Any, "None")),
		read("controller", callTestController, spec.Required("name", spec.String)),
		read("sent", callTestSent),
	}
}

// TestPlan is what t.plan returns.
type TestPlan struct {
	Changes bool
	Text    string
	// Data is the plan as JSON has it: lists by name.
	Data map[string]any
}

func callTestPlan(c *call, t *Test) (starlark.Value, error) {
	got, err := t.World.Plan(t.Ctx, c.BoolOr("all", false))
	if err != nil {
		return nil, err
	}
	fields := starlark.StringDict{"changes": starlark.Bool(got.Changes), "text": starlark.String(got.Text)}
	for name, v := range got.Data {
		fields[name] = object.FromPlain(v)
	}
	return starlarkstruct.FromStringDict(starlark.String("plan"), fields), nil
}

func callTestReplay(c *call, t *Test) (starlark.Value, error) {
	run, err := c.plainDict("run")
	if err != nil {
		return nil, err
	}
	lines, err := t.World.Replay(t.Ctx, run)
	if err != nil {
		return nil, err
	}
	return stringList(lines), nil
}

func callTestAdmit(c *call, t *Test) (starlark.Value, error) {
	obj, err := c.plainDict("obj")
	if err != nil {
		return nil, err
	}
	old, err := c.plainDict("old")
	if err != nil {
		return nil, err
	}
	operation := c.StrOr("operation", "CREATE")
	if err := checkOperation(operation); err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	got, err := t.World.Admit(t.Ctx, obj, old, operation, c.Str("subresource"), ReviewUser{Name: c.StrOr("user", "test"), Groups: c.Strings("groups")})
	if err != nil {
		return nil, err
	}
	return starlarkstruct.FromStringDict(starlark.String("review"), starlark.StringDict{
		"allowed": starlark.Bool(got.Allowed), "message": starlark.String(got.Message), "code": starlark.MakeInt(got.Code),
		"warnings": stringList(got.Warnings), "object": object.New(got.Object),
	}), nil
}

func checkOperation(operation string) error {
	switch operation {
	case "CREATE", "UPDATE", "DELETE":
		return nil
	}
	return fmt.Errorf("got %q, want CREATE, UPDATE or DELETE", spec.Clip(operation))
}

func callTestConvert(c *call, t *Test) (starlark.Value, error) {
	obj, err := c.plainDict("obj")
	if err != nil {
		return nil, err
	}
	out, err := t.World.Convert(t.Ctx, obj, c.Str("to"))
	if err != nil {
		return nil, err
	}
	return object.New(out), nil
}

func callTestRequest(c *call, t *Test) (starlark.Value, error) {
	headers, err := httpHeaders(c.Arg("headers"))
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	body, err := bodyText(c.ArgOr("body", starlark.String("")))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	got, err := t.World.Request(t.Ctx, c.StrOr("method", "POST"), c.Str("path"), body, headers)
	if err != nil {
		return nil, err
	}
	return starlarkstruct.FromStringDict(starlark.String("reply"), starlark.StringDict{
		"status": starlark.MakeInt(got.Status), "body": starlark.String(got.Body), "json": jsonOrNone(string(got.Body)),
	}), nil
}

// bodyText is a text as it is, and all else as JSON.
func bodyText(v starlark.Value) (string, error) {
	if s, ok := starlark.AsString(v); ok {
		return s, nil
	}
	tree, err := object.ToTree(v)
	if err != nil {
		return "", err
	}
	return spec.EncodeJSON(tree)
}

// jsonOrNone decodes a body; None for one that is no JSON.
func jsonOrNone(body string) starlark.Value {
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(body), &v); err != nil {
		return starlark.None
	}
	return object.FromPlain(v)
}

func callTestHTTP(c *call, t *Test) (starlark.Value, error) {
	t.World.HTTP(c.Str("host"), func(r effect.Request) (Fetched, error) {
		v, err := c.asks("request", starlark.StringDict{
			"method": starlark.String(r.Method), "url": starlark.String(r.URL), "bytes": starlark.Bytes(r.Body),
			"headers": object.FromPlain(plainTexts(r.Headers)), "body": starlark.String(validText(string(r.Body))),
		})
		if err != nil {
			return Fetched{}, err
		}
		return fetchedOf(v)
	})
	return nil, nil
}

func fetchedOf(v starlark.Value) (Fetched, error) {
	if v == starlark.None {
		return Fetched{}, &NoAnswerError{"no answer: the function of t.http returned None"}
	}
	out := Fetched{Status: 200, Headers: map[string]string{}}
	if pair, ok := v.(starlark.Tuple); ok {
		if len(pair) != 2 && len(pair) != 3 {
			return out, errors.New("t.http: the function returned a tuple that is neither (status, body) nor (status, body, headers)")
		}
		status, err := starlark.AsInt32(pair[0])
		if err != nil {
			return out, fmt.Errorf("t.http: status: %w", err)
		}
		if len(pair) == 3 {
			headers, err := httpHeaders(pair[2])
			if err != nil {
				return out, fmt.Errorf("t.http: headers: %w", err)
			}
			for name, value := range headers {
				out.Headers[strings.ToLower(name)] = value
			}
		}
		out.Status, v = status, pair[1]
	}
	body, err := outputOf(v)
	out.Body = body
	return out, err
}

func callTestSent(_ *call, t *Test) (starlark.Value, error) {
	return listOf(t.World.Sent(), func(m SentMessage) starlark.Value {
		return starlarkstruct.FromStringDict(starlark.String("message"), starlark.StringDict{
			"hook": starlark.String(m.Hook), "method": starlark.String(m.Method), "url": starlark.String(m.URL),
			"key": starlark.String(m.Key), "headers": object.FromPlain(plainTexts(m.Headers)),
			"body": starlark.String(m.Body), "json": jsonOrNone(m.Body),
		})
	}), nil
}
