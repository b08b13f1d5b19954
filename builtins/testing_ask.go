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
	spec := func(name, returns, doc string, do func(*call, *Test) (starlark.Value, error), params ...Param) Spec {
		return Spec{Name: "t." + name, Phases: PhaseTest, Effect: EffectWrite, Returns: returns, Doc: doc, Params: params,
			call: func(c *call) (starlark.Value, error) { return do(c, c.ctx.Test) }}
	}
	read := func(name, returns, doc string, do func(*call, *Test) (starlark.Value, error), params ...Param) Spec {
		s := spec(name, returns, doc, do, params...)
		s.Effect = EffectRead
		return s
	}
	return []Spec{
		spec("admit", "the answer: .allowed, .message, .code, .warnings (a list) and .object, as mutating hooks have changed it",
			"Asks the hooks of k8s.mutate and k8s.validate about a change, as the API server would: those whose match_conditions hold. Nothing is written.", callTestAdmit,
			Param{Name: "obj", Type: TypeDict, Doc: "The new object; for DELETE the object that is deleted."},
			Param{Name: "operation", Type: TypeString, Default: `"CREATE"`, Doc: "CREATE, UPDATE or DELETE."},
			Param{Name: "old", Type: TypeDict, Default: "None", Doc: "The object as it was, for UPDATE."},
			Param{Name: "user", Type: TypeString, Default: `"test"`, Doc: "Name of who makes the change."},
			Param{Name: "groups", Type: TypeStrings, Default: "[]", Doc: "The groups of who makes it. As the API server does, the test adds system:authenticated, and to a service account its own groups."},
			Param{Name: "subresource", Type: TypeString, Default: "None", Keyword: true, Doc: "The subresource that is changed: \"status\", \"ephemeralcontainers\"; with its resource where obj is of another kind: \"pods/eviction\" of an Eviction. Only the hooks that name it in resources or rules are asked."}),
		spec("convert", "the object, converted", "Has the hook of k8s.convert convert an object.", callTestConvert,
			Param{Name: "obj", Type: TypeDict, Doc: "The object."},
			Param{Name: "to", Type: TypeString, Doc: "The version: \"v1\"."}),
		spec("request", "the answer: .status, .body (text) and .json", "Sends an HTTP request to a hook of http.receive, as its port hands it on. Signatures are not looked at.", callTestRequest,
			Param{Name: "path", Type: TypeString, Doc: "The path of the hook."},
			Param{Name: "body", Type: TypeAny, Default: `""`, Doc: "A text, or data that is sent as JSON."},
			Param{Name: "headers", Type: TypeDict, Default: "{}", Doc: "Headers by name, each a text or a secret. Those that hold secrets do not reach the hook: Authorization, Proxy-Authorization, Cookie, X-Gitlab-Token."},
			Param{Name: "method", Type: TypeString, Default: `"POST"`, Doc: "The method."}),
		spec("http", "", "Has a function answer the requests of http.get, http.request and http.gather to a host, one after the other. Messages of http.send get no answer in a test: t.sent() has them.", callTestHTTP,
			Param{Name: "host", Type: TypeString, Doc: "The host, with its port if the URL has one."},
			Param{Name: "fn", Type: TypeFunction, Doc: "Takes a request with .method, .url, .headers, .body (text) and .bytes; returns the body as a text, bytes, or data that becomes JSON, or (status, body), or (status, body, headers); or None: the server does not answer."}),
		spec("env", "", "Gives hooks an environment variable.", func(c *call, t *Test) (starlark.Value, error) {
			t.World.Env(c.str("name"), c.str("text"))
			return nil, nil
		},
			Param{Name: "name", Type: TypeString, Doc: "Name of the variable."},
			Param{Name: "text", Type: TypeString, Doc: "The text that env(name) returns from now on."}),
		read("plan", "the plan: .changes (a bool), .text (as people see it), and the lists .modules, .objects, .drift, .messages and .problems, as in `starling plan -o json`",
			"Says what the process would change, and changes nothing: with t.start() to come, what a start would do; later, what a restart would.", callTestPlan,
			Param{Name: "all", Type: TypeBool, Default: "False", Doc: "Start all modules of the tree, as t.start(all=True)."}),
		spec("replay", "a list of texts: what the run asks for, as `starling replay` prints it, with what is in its objects", "Runs a hook once, in no cluster, with what a recorded run was given. `starling new test --from-run` writes such runs down.", callTestReplay,
			Param{Name: "run", Type: TypeDict, Doc: "The run: snapshots, events, values, answers and the rest."}),
		read("desired", "the answer: .parts (a list of .name, .object and .after), .objects (those of part(…) as Starling writes them), .waiting, .stalled and .progressing (the reason, or None), .due (the soonest time that ctx.reached was asked for and that has not come, or None), and .actions(children): what would be done if these were the children (default: those given), a list of {\"op\", \"child\", \"part\", \"why\"}",
			"Calls the desired function of a controller, in no cluster.", callTestDesired,
			Param{Name: "fn", Type: TypeFunction, Doc: "The function; it takes ctx and the parent."},
			Param{Name: "obj", Type: TypeAny, Doc: "The parent: a dict or an object, as it is; defaults of its kind are not filled in."},
			Param{Name: "children", Type: TypeList, Default: "[]", Doc: "The children as they are: objects such as those of .objects, or of t.cluster.get. One that Starling has not written is somebody else's; set_fields(…) finds its object there."},
			Param{Name: "reads", Type: TypeDict, Default: "{}", Doc: "Objects to find: a list by each name of the controller's reads=, as its watch shows them; filter and index of the watch are asked."},
			Param{Name: "values", Type: TypeDict, Default: "{}", Doc: "The values of the module."},
			Param{Name: "now", Type: TypeAny, Default: "None", Doc: "The time, for ctx.reached: a time or text; None: that of t.clock."}),
		read("controller", "a controller; .actions(key) is what it has decided about the parent \"namespace/name\" when it looked last, as the .actions() of t.desired: [] when all is as it should be",
			"Looks at a controller.", callTestController,
			Param{Name: "name", Type: TypeString, Doc: "Its name."}),
		read("sent", "a list of messages: .hook, .method, .url, .key, .headers, .body (text) and .json", "Returns the messages of http.send so far.", callTestSent),
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
