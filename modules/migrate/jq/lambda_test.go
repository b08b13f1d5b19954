package jq

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/itchyny/gojq"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/object"
)

func TestLambda(t *testing.T) {
	for _, tt := range []struct{ filter, want string }{
		{".", `o`},
		{".spec.replicas", `o.get("spec.replicas")`},
		{".spec | .replicas", `o.get("spec.replicas")`},
		{`.metadata.labels["app.kubernetes.io/name"]`, `o.get(["metadata", "labels", "app.kubernetes.io/name"])`},
		{`.metadata.labels."node-role"`, `o.get("metadata.labels.node-role")`},
		{".spec.containers[0].image", `o.get("spec.containers.0.image")`},
		{"{name: .metadata.name, labels: .metadata.labels}", `{"name": o.get("metadata.name"), "labels": o.get("metadata.labels")}`},
		{".metadata | {name, namespace}", `{"name": o.get("metadata.name"), "namespace": o.get("metadata.namespace")}`},
		{`{"a b": 1, c: null, d: true, e: -2, f: 1.5}`, `{"a b": 1, "c": None, "d": True, "e": -2, "f": 1.5}`},
		{"[.spec.a, .spec.b]", `[o.get("spec.a"), o.get("spec.b")]`},
		{"[]", `[]`},
		{"[.spec.containers[].image]", `[v.get("image") for v in o.get("spec.containers")]`},
		{"[.spec.containers[]?.image]", `[v.get("image") for v in o.get("spec.containers", [])]`},
		{".spec.containers | map(.image)", `[v.get("image") for v in o.get("spec.containers")]`},
		{".spec.containers // [] | map({name})", `[{"name": v.get("name")} for v in o.get("spec.containers", [])]`},
		{`[.status.conditions[] | select(.type == "Ready") | .status]`, `[v.get("status") for v in o.get("status.conditions") if v.get("type") == "Ready"]`},
		{"[.spec.containers[] | .ports[] | .containerPort]", `[v2.get("containerPort") for v in o.get("spec.containers") for v2 in v.get("ports")]`},
		{".spec.replicas // 1", `o.get("spec.replicas", 1)`},
		{".spec.suspend // false", `o.get("spec.suspend", False)`},
		{".spec.enabled // true", `o.get("spec.enabled") if o.get("spec.enabled") not in [None, False] else True`},
		{".spec.containers | length", `len(o.get("spec.containers", []))`},
		{".metadata.labels | length > 0", `len(o.get("metadata.labels", {})) > 0`},
		{".data | keys", `sorted(o.get("data"))`},
		{`any(.status.conditions[]?; .type == "Ready" and .status == "True")`, `any([v.get("type") == "Ready" and v.get("status") == "True" for v in o.get("status.conditions", [])])`},
		{`.status.conditions | any(.type == "Ready")`, `any([v.get("type") == "Ready" for v in o.get("status.conditions")])`},
		{`select(.spec.type == "LoadBalancer") | .metadata.name`, `o.get("metadata.name") if o.get("spec.type") == "LoadBalancer" else None`},
		{`if .spec.x == 1 then "one" elif .spec.x then "more" else "none" end`, `"one" if o.get("spec.x") == 1 else "more" if o.get("spec.x") not in [None, False] else "none"`},
		{"if .spec.paused then empty else .spec end", ""}, // then empty: kept as jq
		{"if .spec.paused then .spec else empty end", `o.get("spec") if o.get("spec.paused") not in [None, False] else None`},
		{".spec.unschedulable | not", `not o.get("spec.unschedulable") not in [None, False]`},
		{".spec.a == .spec.b", `equal(o.get("spec.a"), o.get("spec.b"))`},
		{".spec.a != .spec.b", `not equal(o.get("spec.a"), o.get("spec.b"))`},
		{`.kind + "/" + .metadata.name`, `o.get("kind") + "/" + o.get("metadata.name")`},
		{`"\(.kind)/\(.metadata.name)"`, `o.get("kind") + "/" + o.get("metadata.name")`},
		{`.metadata.labels | has("app")`, `"app" in o.get("metadata.labels")`},
		{`.metadata.name | startswith("kube-")`, `o.get("metadata.name").startswith("kube-")`},
		{`.metadata.name | test("^a+$")`, `re.search("^a+$", o.get("metadata.name")) != None`},
		{`(.spec.a == 1) == (.spec.b == 2)`, `(o.get("spec.a") == 1) == (o.get("spec.b") == 2)`},
	} {
		got, err := Lambda(tt.filter)
		if tt.want == "" {
			if err == nil {
				t.Errorf("%s: got %s, want it to be refused", tt.filter, got)
			}
			continue
		}
		if want := "lambda o: " + tt.want; err != nil || got != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", tt.filter, got, err, want)
		}
	}
}

func TestLambdaRefuses(t *testing.T) {
	for filter, want := range map[string]string{
		".data[]":                           ".[] of what may be a map",
		".spec.containers[].image":          "a filter with several outputs",
		".a, .b":                            "outside of a list",
		".a as $x | $x":                     "a variable",
		"def f: 1; f":                       "def f",
		"reduce .a[] as $x (0; . + $x)":     "reduce",
		".spec | to_entries":                "the function to_entries",
		".data | .[\"a\"] | @base64d":       "@base64d",
		".spec.a?":                          "? after a path",
		".spec.a + 1":                       "values whose types are not known",
		".spec.a < 2":                       "values whose types are not known",
		".spec.name | length":               "length of what may be a text",
		"{(.kind): 1}":                      "a name that is computed",
		"{a: 1, a: 2}":                      "the name a given twice",
		".spec.containers[1:]":              "a slice",
		".spec.containers[-1]":              "an index",
		".spec.x[0]":                        "an index",
		"..":                                "..",
		`"\(.spec.replicas)"`:               "which may be another type than text",
		`.metadata.namespace + "/"`:         "+ between values whose types are not known", // Nodes have none
		"{a: 1} | .a":                       "a value that the filter has made",
		"1e3":                               "the number 1e3",
		"{a: (.spec.containers[] | .name)}": "in a place that takes one value",
		"import \"a\" as a; .":              "a module of jq",
		"$ENV.HOME":                         "the variable $ENV",
		strings.Repeat("[", 150) + strings.Repeat("]", 150): "nested deeper than",
		"." + strings.Repeat(" | {a: ., b: .}", 40):         "lambda would be longer",
	} {
		got, err := Lambda(filter)
		var u *Unsupported
		if !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %q, %v; want an error with %q", filter, got, err, want)
		}
	}
	for _, filter := range []string{".a |", "[", strings.Repeat(".", maxProgram+1)} {
		var u *Unsupported
		if _, err := Lambda(filter); err == nil || errors.As(err, &u) {
			t.Errorf("%.20s: got %v, want an error that it is no filter", filter, err)
		}
	}
}

// objects are inputs of the comparison of both languages.
func objects() []map[string]any {
	return []map[string]any{
		{"kind": "Pod", "metadata": map[string]any{"name": "kube-a", "namespace": "x"}},
		{
			"kind":     "Deployment",
			"metadata": map[string]any{"name": "b", "namespace": "y", "labels": map[string]any{"app": "b", "app.kubernetes.io/name": "b"}},
			"spec": map[string]any{
				"replicas": 2, "suspend": false, "enabled": false, "type": "LoadBalancer", "a": 1, "b": 1.0, "x": 1,
				"containers": []any{
					map[string]any{"name": "c", "image": "i", "ports": []any{map[string]any{"containerPort": 80}}},
					map[string]any{"name": "d", "image": "j", "ports": []any{}},
				},
			},
			"data":   map[string]any{"z": "1", "y": "2"},
			"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		},
	}
}

// The lambda gives what the filter gives, wherever both give anything.
func TestLambdaMeansTheSame(t *testing.T) {
	compared := 0
	for _, filter := range []string{
		".spec.replicas // 7", ".spec.suspend // false", ".spec.enabled // true", ".spec.containers | length", ".metadata.labels | length",
		".data | keys", "[.spec.containers[]? | {name, ports: (.ports | length)}]", "[.spec.containers[]?.ports[]?.containerPort]",
		`any(.status.conditions[]?; .type == "Ready" and .status == "True")`, `all(.status.conditions[]?; .status == "False")`,
		`select(.spec.type == "LoadBalancer") | .metadata.name`, ".spec.a == .spec.b", ".spec.a != .spec.x", ".spec.a | not", ".spec | not",
		`if .spec.x == 1 then "one" elif .spec.x then "more" else "none" end`, `"\(.kind)/\(.metadata.name)"`,
		`.metadata.labels."app.kubernetes.io/name"`, `[.kind, "a", (.metadata.name | startswith("kube-"))]`, "[.spec.containers[]? | select(.name == \"d\")] + [1]",
		"(.spec.containers | length) * 2 - 1 >= 0", "[if .spec.x then .spec.x else empty end, 2]", ".spec.containers[1].image", "[(.spec.containers // [])[] | .name]",
		`.metadata | has("labels")`, ".spec.containers // [] | map(select(.ports | length > 0) | .name)",
	} {
		compared += compare(t, filter)
	}
	if compared < 40 {
		t.Errorf("%d results were compared", compared)
	}
}

// compare runs a filter in both languages over all objects, and returns how often both gave
// something.
func compare(t *testing.T, filter string) int {
	t.Helper()
	lambda, err := Lambda(filter)
	if err != nil {
		t.Errorf("%s: %v", filter, err)
		return 0
	}
	compared := 0
	for _, o := range objects() {
		want, ok := runJQ(filter, o)
		got, err := runLambda(lambda, o)
		if !ok || err != nil {
			continue
		}
		expected, err := object.Copy(object.FromPlain(integers(want)))
		if err != nil {
			t.Fatal(err)
		}
		if same, err := object.Equal(got, expected); err != nil || !same {
			t.Errorf("%s\n%s\n%s: got %s, want %s (%v)", filter, lambda, o["kind"], got, expected, err)
		}
		compared++
	}
	return compared
}

// runJQ returns the first output, nil when there is none, and false for an error.
func runJQ(filter string, in map[string]any) (any, bool) {
	query, err := gojq.Parse(filter)
	if err != nil {
		return nil, false
	}
	out, ok := query.Run(in).Next()
	if _, failed := out.(error); failed {
		return nil, false
	}
	if !ok {
		return nil, true
	}
	return out, true
}

func runLambda(lambda string, in map[string]any) (starlark.Value, error) {
	thread := &starlark.Thread{}
	thread.SetMaxExecutionSteps(100_000)
	predeclared := starlark.StringDict{"equal": starlark.NewBuiltin("equal", func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		same, err := object.Equal(args[0], args[1])
		return starlark.Bool(same), err
	})}
	fn, err := starlark.EvalOptions(&syntax.FileOptions{}, thread, "lambda", lambda, predeclared)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lambda, err)
	}
	return starlark.Call(thread, fn, starlark.Tuple{object.New(integers(in).(map[string]any))}, nil)
}

// integers gives the integers of plain data the type that package object knows.
func integers(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = integers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = integers(e)
		}
		return out
	}
	return v
}

// Each lambda is an expression of Starlark, and no filter ends the process.
func FuzzLambda(f *testing.F) {
	for _, filter := range []string{
		".", ".a.b", "{a: .b, c: [.d[] | select(.e == 1)]}", `any(.status.conditions[]?; .type == "Ready")`, "if .a then .b else empty end",
		`"\(.metadata.name)/x" | test("a")`, ".spec.containers // [] | map({name}) | length > 1", `.["a b"]`, "-1 - -2 * 3",
	} {
		f.Add(filter)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		lambda, err := Lambda(filter)
		if err != nil {
			return
		}
		if _, err := (&syntax.FileOptions{}).ParseExpr("lambda", lambda, 0); err != nil {
			t.Errorf("%q: %s: %v", filter, lambda, err)
		}
	})
}
