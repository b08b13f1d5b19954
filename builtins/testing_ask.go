package builtins

import (
	"errors"
	"fmt"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	kjson "sigs.k8s.io/json"

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

func testAskSpecs() []Spec {
	spec, read := testSpec(EffectWrite), testSpec(EffectRead)
	return []Spec{
		spec("admit", callTestAdmit, required("obj", TypeDict), optional("operation", TypeString, `"CREATE"`),
			optional("old", TypeDict, "None"), optional("user", TypeString, `"test"`),
			optional("groups", TypeStrings, "[]"), keyword("subresource", TypeString, "None")),
		spec("convert", callTestConvert, required("obj", TypeDict), required("to", TypeString)),
		spec("request", callTestRequest, required("path", TypeString), optional("body", TypeAny, `""`),
			optional("headers", TypeDict, "{}"), optional("method", TypeString, `"POST"`)),
		spec("http", callTestHTTP, required("host", TypeString), required("fn", TypeFunction)),
		spec("env", func(c *call, t *Test) (starlark.Value, error) {
			t.World.Env(c.str("name"), c.str("text"))
			return nil, nil
		}, required("name", TypeString), required("text", TypeString)),
		read("plan", callTestPlan, optional("all", TypeBool, "False")),
		spec("replay", callTestReplay, required("run", TypeDict)),
		read("desired", callTestDesired, required("fn", TypeFunction), required("obj", TypeAny),
			optional("children", TypeList, "[]"), optional("reads", TypeDict, "{}"),
			optional("values", TypeDict, "{}"), optional("now", TypeAny, "None")),
		read("controller", callTestController, required("name", TypeString)),
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
	got, err := t.World.Plan(t.Ctx, c.boolOr("all", false))
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
	out := make([]starlark.Value, len(lines))
	for i, line := range lines {
		out[i] = starlark.String(line)
	}
	return starlark.NewList(out), nil
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
	operation := c.strOr("operation", "CREATE")
	if err := checkOperation(operation); err != nil {
		return nil, fmt.Errorf("operation: %w", err)
	}
	got, err := t.World.Admit(t.Ctx, obj, old, operation, c.str("subresource"), ReviewUser{Name: c.strOr("user", "test"), Groups: c.strings("groups")})
	if err != nil {
		return nil, err
	}
	warnings := make([]starlark.Value, len(got.Warnings))
	for i, w := range got.Warnings {
		warnings[i] = starlark.String(w)
	}
	return starlarkstruct.FromStringDict(starlark.String("review"), starlark.StringDict{
		"allowed": starlark.Bool(got.Allowed), "message": starlark.String(got.Message), "code": starlark.MakeInt(got.Code),
		"warnings": starlark.NewList(warnings), "object": object.New(got.Object),
	}), nil
}

func checkOperation(operation string) error {
	switch operation {
	case "CREATE", "UPDATE", "DELETE":
		return nil
	}
	return fmt.Errorf("got %q, want CREATE, UPDATE or DELETE", clip(operation))
}

// plainDict returns a dict argument as plain data, nil when it was not given.
func (c *call) plainDict(name string) (map[string]any, error) {
	v := c.arg(name)
	if v == nil {
		return nil, nil
	}
	plain, err := object.ToPlain(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plain.(map[string]any), nil // as its type was checked
}

func callTestConvert(c *call, t *Test) (starlark.Value, error) {
	obj, err := c.plainDict("obj")
	if err != nil {
		return nil, err
	}
	out, err := t.World.Convert(t.Ctx, obj, c.str("to"))
	if err != nil {
		return nil, err
	}
	return object.New(out), nil
}

func callTestRequest(c *call, t *Test) (starlark.Value, error) {
	headers, err := httpHeaders(c.arg("headers"))
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	body, err := bodyText(c.argOr("body", starlark.String("")))
	if err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	got, err := t.World.Request(t.Ctx, c.strOr("method", "POST"), c.str("path"), body, headers)
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
	return encodeJSON(tree)
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
	fn := c.arg("fn").(starlark.Callable)
	t.World.HTTP(c.str("host"), func(r effect.Request) (Fetched, error) {
		headers := map[string]any{}
		for k, v := range r.Headers {
			headers[k] = v
		}
		// The test waits in its own call meanwhile.
		thread := &starlark.Thread{Name: "t.http"}
		Attach(thread, c.ctx)
		v, err := starlark.Call(thread, fn, starlark.Tuple{starlarkstruct.FromStringDict(starlark.String("request"), starlark.StringDict{
			"method": starlark.String(r.Method), "url": starlark.String(r.URL),
			"headers": object.FromPlain(headers), "body": starlark.String(strings.ToValidUTF8(string(r.Body), "\uFFFD")), "bytes": starlark.Bytes(r.Body),
		})}, nil)
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
	if raw, is := v.(starlark.Bytes); is {
		out.Body = []byte(raw)
		return out, nil
	}
	body, err := bodyText(v)
	out.Body = []byte(body)
	return out, err
}

func callTestSent(_ *call, t *Test) (starlark.Value, error) {
	sent := t.World.Sent()
	out := make([]starlark.Value, len(sent))
	for i, m := range sent {
		headers := map[string]any{}
		for k, v := range m.Headers {
			headers[k] = v
		}
		out[i] = starlarkstruct.FromStringDict(starlark.String("message"), starlark.StringDict{
			"hook": starlark.String(m.Hook), "method": starlark.String(m.Method), "url": starlark.String(m.URL), "key": starlark.String(m.Key),
			"headers": object.FromPlain(headers), "body": starlark.String(m.Body), "json": jsonOrNone(m.Body),
		})
	}
	return starlark.NewList(out), nil
}
