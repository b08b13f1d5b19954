package webhook

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/object"
)

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPatches(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"a": 1}`, `{"a": 1}`, ``},
		{`{"a": 1}`, `{"a": 2}`, `[{"op":"replace","path":"/a","value":2}]`},
		{`{"a": 1152921504606846976}`, `{"a": 1152921504606846977}`, `[{"op":"replace","path":"/a","value":1152921504606846977}]`},
		{`{"a": 1}`, `{"b": null}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":null}]`},
		{`{"a": {"x/y": 1, "p~q": 2}}`, `{"a": {"x/y": 2}}`, `[{"op":"remove","path":"/a/p~0q"},{"op":"replace","path":"/a/x~1y","value":2}]`},
		{`{"l": [1, 2, 3]}`, `{"l": [1, 3]}`, `[{"op":"remove","path":"/l/1"}]`},
		{`{"l": [1, 3]}`, `{"l": [1, 2, 3]}`, `[{"op":"add","path":"/l/1","value":2}]`},
		{`{"l": [{"n": "a", "v": 1}, {"n": "b"}]}`, `{"l": [{"n": "a", "v": 2}, {"n": "b"}]}`, `[{"op":"replace","path":"/l/0/v","value":2}]`},
		{`{"l": [1, 2, 3, 4]}`, `{"l": []}`, `[{"op":"remove","path":"/l/3"},{"op":"remove","path":"/l/2"},{"op":"remove","path":"/l/1"},{"op":"remove","path":"/l/0"}]`},
		{`{"a": {"b": 1}}`, `{"a": [1]}`, `[{"op":"replace","path":"/a","value":[1]}]`},
	} {
		got, err := patchOf(decode(t, c.was), decode(t, c.is))
		if err != nil || string(got) != c.want {
			t.Errorf("%s to %s: %s, %v, want %s", c.was, c.is, got, err, c.want)
		}
	}
}

// Whatever two objects there are, the patch makes one of the other.
func TestPatchesDoWhatTheySay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var value func(depth int) any
	value = func(depth int) any {
		switch n := random.IntN(6); {
		case n < 2 && depth > 0:
			m := map[string]any{}
			for range random.IntN(4) {
				m[[]string{"a", "b/c", "d~e", "", "f"}[random.IntN(5)]] = value(depth - 1)
			}
			return m
		case n < 4 && depth > 0:
			l := []any{}
			for range random.IntN(5) {
				l = append(l, value(depth-1))
			}
			return l
		case n == 4:
			return nil
		}
		return int64(random.IntN(3))
	}
	mutate := func(v any) map[string]any {
		m := object.CopyPlain(v).(map[string]any)
		for k := range m {
			if random.IntN(3) == 0 {
				m[k] = value(2)
			}
		}
		m[strconv.Itoa(random.IntN(3))] = value(2)
		return m
	}
	for range 3000 {
		was := map[string]any{"x": value(4), "y": value(3)}
		is := mutate(was)
		checkPatch(t, was, is)
	}
}

func checkPatch(t testing.TB, was, is map[string]any) {
	t.Helper()
	patch, err := patchOf(was, is)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	if patch == nil {
		patch = []byte("[]")
	}
	p, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	after, err := p.Apply(before)
	if err != nil {
		t.Fatalf("%s on %s: %v", patch, before, err)
	}
	if got := decode(t, string(after)); !reflect.DeepEqual(got, is) {
		t.Fatalf("%s on %s gives %s, want %v", patch, before, after, is)
	}
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
