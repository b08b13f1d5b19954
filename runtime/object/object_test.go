package object

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// decode reads JSON as the cluster's objects are read: ints stay ints.
func decode(t testing.TB, text string) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return numbers(v)
}

func numbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case map[string]any:
		for k, e := range v {
			v[k] = numbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = numbers(e)
		}
	}
	return v
}

// exactly is the path of exactly these keys.
func exactly(keys ...string) Path { return Path{keys: append([]string{}, keys...)} }

func TestPaths(t *testing.T) {
	root := decode(t, `{
		"metadata": {"labels": {"app.kubernetes.io/name": "web", "app": "x", "app.kubernetes": {"io/name": "never"}}},
		"data": {".dockerconfigjson": "s", "a.b": {"c": 1}, "a": {"b": {"c": 2, "d": 3}}},
		"list": [{"name": "a"}, [10, 20]],
		"null": null, "": {"x": 5}, "a.b.c": 4
	}`).(map[string]any)
	list := func(keys ...string) Path { return exactly(keys...) }
	for _, tc := range []struct {
		path Path
		keys []string
		want any
		ok   bool
	}{
		{Dotted("metadata.labels.app.kubernetes.io/name"), []string{"metadata", "labels", "app.kubernetes.io/name"}, "web", true},
		{Dotted("metadata.labels.app"), []string{"metadata", "labels", "app"}, "x", true},
		{Dotted("metadata.labels.app.x"), []string{"metadata", "labels", "app", "x"}, nil, false},
		{Dotted("data..dockerconfigjson"), []string{"data", ".dockerconfigjson"}, "s", true},
		{Dotted("data.a.b.c"), []string{"data", "a.b", "c"}, int64(1), true},
		{Dotted("data.a.b.d"), []string{"data", "a.b", "d"}, nil, false}, // no way back
		{Dotted("list.0.name"), []string{"list", "0", "name"}, "a", true},
		{Dotted("list.1.1"), []string{"list", "1", "1"}, int64(20), true},
		{Dotted("list.2"), []string{"list", "2"}, nil, false},
		{Dotted("list.01"), []string{"list", "01"}, nil, false},
		{Dotted("list.-1"), []string{"list", "-1"}, nil, false},
		{Dotted("null"), []string{"null"}, nil, true},
		{Dotted("null.x"), []string{"null", "x"}, nil, false},
		{Dotted(".x"), []string{"", "x"}, int64(5), true},
		{Dotted("a.b.c"), []string{"a.b.c"}, int64(4), true},
		{Dotted("new.key/with.dots"), []string{"new", "key/with", "dots"}, nil, false},
		{list("data", "a.b", "c"), []string{"data", "a.b", "c"}, int64(1), true},
		{list("data.a.b"), []string{"data.a.b"}, nil, false},
		{list("list", "0"), []string{"list", "0"}, map[string]any{"name": "a"}, true},
	} {
		if diff := cmp.Diff(tc.keys, tc.path.Resolve(root)); diff != "" {
			t.Errorf("%s: keys (-want +got)\n%s", tc.path, diff)
		}
		got, ok := tc.path.Get(root)
		if ok != tc.ok || !cmp.Equal(got, tc.want) {
			t.Errorf("%s: got %v, %v; want %v, %v", tc.path, got, ok, tc.want, tc.ok)
		}
	}
	if got := Dotted("a.b").Resolve(nil); !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("in nothing: %q", got)
	}
	if got := exactly("a", "b.c", "", "d").String(); got != `a["b.c"][""].d` {
		t.Errorf("text: %s", got)
	}
}

func TestConversions(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `"ä"`, `9007199254740993`, `-9223372036854775808`, `1.0`, `1.5e300`,
		`[]`, `{}`, `{"b":[1,{"c":null}],"a":1.0}`,
	} {
		want := decode(t, text)
		v := FromPlain(want)
		got, err := ToPlain(v)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: round trip (-want +got)\n%s", text, diff)
		}
		if m, ok := want.(map[string]any); ok {
			fromObject, err := ToPlain(New(m))
			if diff := cmp.Diff(want, fromObject); err != nil || diff != "" {
				t.Errorf("%s: object: %v\n%s", text, err, diff)
			}
		}
	}
	if got := FromPlain(map[string]any{"b": 1, "a": 2}).String(); got != `{"a": 2, "b": 1}` {
		t.Errorf("keys are not sorted: %s", got)
	}
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	if got := FromPlain([]any{huge, uint64(math.MaxUint64), int32(1)}).String(); got != "[123456789012345678901234567890, 18446744073709551615, 1]" {
		t.Errorf("big ints: %s", got)
	}
	frozen := FromPlain([]any{map[string]any{}}).(*starlark.List)
	if frozen.Append(starlark.None) == nil || frozen.Index(0).(*starlark.Dict).SetKey(starlark.String("a"), starlark.None) == nil {
		t.Error("not frozen")
	}
}

func TestToPlainErrors(t *testing.T) {
	deep := starlark.Value(starlark.None)
	for range 200 {
		deep = starlark.Tuple{deep}
	}
	dag := starlark.Value(starlark.String("x"))
	for range 40 {
		dag = starlark.NewList([]starlark.Value{dag, dag})
	}
	cyclic := starlark.NewDict(1)
	_ = cyclic.SetKey(starlark.String("list"), starlark.NewList([]starlark.Value{cyclic}))
	for name, tc := range map[string]struct {
		v    starlark.Value
		want string
	}{
		"deep":     {deep, "nested deeper than 100"},
		"dag":      {dag, "larger than 32 MiB"},
		"cycle":    {cyclic, "list.0: a dict that holds itself cannot be stored as JSON"},
		"inf":      {starlark.Float(math.Inf(1)), "+inf is no JSON number"},
		"big":      {starlark.MakeInt(1).Lsh(64), "integer 18446744073709551616 does not fit into 64 bits"},
		"text":     {starlark.String("\xff"), "text is not valid UTF-8"},
		"function": {starlark.Tuple{starlark.Universe["len"]}, "0: a builtin_function_or_method cannot be stored as JSON"},
	} {
		_, err := ToPlain(tc.v)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := Copy(dag); err == nil {
		t.Error("copied a value of 2^40 elements")
	}
	if _, err := Equal(dag, dag); err == nil {
		t.Error("compared 2^40 elements")
	}
	if tree, err := ToTree(starlark.MakeInt(1).Lsh(64)); err != nil || tree.(*big.Int).BitLen() != 65 {
		t.Errorf("ToTree: %v, %v", tree, err)
	}
}

// TestCompareWithOthers: == between an object and anything else is False and
// never a panic, on either side.
func TestCompareWithOthers(t *testing.T) {
	o := New(map[string]any{"a": int64(1)})
	for _, v := range []starlark.Value{FromPlain(o.Map()), starlark.NewList(nil), starlark.None, starlark.String("a"), starlark.NewDict(0)} {
		for _, pair := range [][2]starlark.Value{{o, v}, {v, o}} {
			if same, err := starlark.Compare(syntax.EQL, pair[0], pair[1]); same || err != nil {
				t.Errorf("%s == %s: %v, %v", pair[0], pair[1], same, err)
			}
		}
	}
	same, err := starlark.Equal(o, New(map[string]any{"a": 1.0}))
	if !same || err != nil {
		t.Errorf("1 and 1.0: %v, %v", same, err)
	}
	// Deeper than go.starlark.net compares.
	deep := func() *Object {
		m := map[string]any{}
		for range 50 {
			m = map[string]any{"m": []any{m}}
		}
		return New(m)
	}
	if same, err := starlark.Equal(deep(), deep()); !same || err != nil {
		t.Errorf("deep: %v, %v", same, err)
	}
}

func FuzzPath(f *testing.F) {
	f.Add("metadata.labels.app.kubernetes.io/name", `{"metadata": {"labels": {"app.kubernetes.io/name": 1}}}`)
	f.Add("a.0..b", `{"a": [{"": {"b": null}}]}`)
	f.Add(".", `{".": {"": 1}}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		var root map[string]any
		if len(path) > 100 || json.Unmarshal([]byte(text), &root) != nil {
			return
		}
		p, err := ParsePath(starlark.String(path))
		if err != nil {
			return
		}
		keys := p.Resolve(root)
		if got := strings.Join(keys, "."); got != path {
			t.Errorf("%q resolved to %q", path, keys)
		}
		v, ok := p.Get(root)
		exact, okExact := Get(root, keys)
		if ok != okExact || !cmp.Equal(v, exact) {
			t.Errorf("%q: got %v, %v; by its keys %v, %v", path, v, ok, exact, okExact)
		}
		if again := exactly(keys...).Resolve(root); !cmp.Equal(again, keys) {
			t.Errorf("%q: exact keys %q became %q", path, keys, again)
		}
	})
}

func FuzzPlainRoundTrip(f *testing.F) {
	f.Add(`{"a": [1, 1.0, -0.5, 1e30, "x", null, true, {"b": {}}]}`)
	f.Add(`[[[[]]], 9223372036854775807, 9223372036854775808]`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var raw any
		if dec.Decode(&raw) != nil {
			return
		}
		want := numbers(raw)
		v := FromPlain(want)
		got, err := ToPlain(v)
		if err != nil {
			if s := err.Error(); strings.Contains(s, "deeper") || strings.Contains(s, "no JSON number") {
				return
			}
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("round trip (-want +got)\n%s", diff)
		}
		if same, err := Equal(v, FromPlain(got)); err != nil || !same {
			t.Errorf("%s is not equal to its copy: %v", text, err)
		}
		if m, ok := want.(map[string]any); ok {
			o := New(m)
			if same, err := Equal(o, v); err != nil || !same {
				t.Errorf("%s: the object is not equal to the dict: %v", text, err)
			}
			if o.String() != v.String() {
				t.Errorf("text: %s and %s", o, v)
			}
			if !cmp.Equal(mustPlain(t, DeepDict(o)), want) {
				t.Errorf("%s: deep copy differs", text)
			}
		}
	})
}

func mustPlain(t *testing.T, v starlark.Value) any {
	t.Helper()
	p, err := ToPlain(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
