package builtins

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// builtin returns a builtin by its full name, "json.encode".
func builtin(name string) starlark.Value {
	space, name, _ := strings.Cut(name, ".")
	return Predeclared()[space].(*namespace).members[name]
}

// fuzzCall calls a builtin in its own thread. Errors must be fit for people.
func fuzzCall(t *testing.T, c *Context, name string, args starlark.Tuple, kwargs ...starlark.Tuple) (starlark.Value, error) {
	thread := &starlark.Thread{}
	if c != nil {
		Attach(thread, c)
	}
	v, err := starlark.Call(thread, builtin(name), args, kwargs)
	if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "*starlark")) {
		t.Errorf("%s: not fit for people: %q", name, err)
	}
	return v, err
}

// A decoded JSON text is encoded to text that means the same; and so on.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"b": [1, 1.0, -0.0, 1e30, 18446744073709551616], "a": {"": null, "\u0000": "\ud83d\ude00", "x": [true, false]}}`,
		`[[[[[[]]]]]]`, `"\ud800"`, `1e400`, `{"a": 1, "a": 2}`, `{"a":`, "\xff", strings.Repeat("[", 2000), `-`, `00`, ` [1 ,2]`, "\"<>&\u2028\""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := fuzzCall(t, nil, "json.decode", starlark.Tuple{starlark.String(text)})
		if err != nil {
			return
		}
		checkRoundTrip(t, "json", v)
		if _, err := fuzzCall(t, nil, "json.indent", starlark.Tuple{starlark.String(text)}); err != nil && json.Valid([]byte(text)) {
			t.Errorf("indent: %v", err)
		}
	})
}

// The same for YAML; and what JSON can hold is the same by both ways.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{"a: 1\nb: [x, 'y', \"z\", 1.5, ~, yes, 0x10, 1_000, 2026-01-01]\n", "? {a: b}\n: c\n", "a: &x [1]\nb: *x\n", "---\n---\na: b\n", "{a: 1, a: 2}",
		"a: |\n  b\n   c\n\n", "1: a\ntrue: b\n1.5: c\n", "!!binary aGk=", "<<: {a: 1}\n", "a: .inf", "&a [*a]", "\t", "%YAML 1.1\n---\n", "a: !!str 7\n", "- - - -\n", "\ufeffa: b", "a: \"\\x00\\u2028\"", "x: 12345678901234567890123\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := fuzzCall(t, nil, "yaml.decode", starlark.Tuple{starlark.String(text)})
		if err == nil {
			checkRoundTrip(t, "yaml", v)
			checkRoundTrip(t, "json", v)
		}
		if _, errAll := fuzzCall(t, nil, "yaml.decode_all", starlark.Tuple{starlark.String(text)}); err == nil && errAll != nil {
			t.Errorf("decode_all alone fails: %v", errAll)
		}
	})
}

func checkRoundTrip(t *testing.T, format string, v starlark.Value) {
	t.Helper()
	text, err := fuzzCall(t, nil, format+".encode", starlark.Tuple{v})
	if err != nil {
		if s := err.Error(); strings.Contains(s, "deeper") || strings.Contains(s, "no JSON number") || strings.Contains(s, "64 bits") ||
			strings.Contains(s, "UTF-8") || strings.Contains(s, "larger") {
			return // what can be decoded and is too much, or no text, for what is written
		}
		t.Fatalf("%s.encode: %v of %s", format, err, v)
	}
	again, err := fuzzCall(t, nil, format+".decode", starlark.Tuple{text})
	if err != nil {
		t.Fatalf("%s is not read again: %v", text, err)
	}
	if same, err := object.Equal(v, again); err != nil || !same {
		t.Fatalf("%s became %s by %s (%v)", v, again, text, err)
	}
	second, err := fuzzCall(t, nil, format+".encode", starlark.Tuple{again})
	if err != nil || second != text {
		t.Fatalf("%s, then %s (%v)", text, second, err)
	}
}

// Whatever is given as a patch: each kind takes it as it is, or refuses it in one line;
// a JSON patch of the values does what the RFC says; a jq program leaves its object
// alone.
func FuzzPatches(f *testing.F) {
	const values = `{"list": [1, {"a": "b"}], "map": {"a/b": 1, "m~n": {"x": null}}}`
	for _, patch := range []string{`[{"op": "add", "path": "/list/-", "value": 1}]`, `[{"op": "remove", "path": "/map/a~1b"}, {"op": "replace", "path": "/list/1/a", "value": {"c": [1]}}]`,
		`[{"op": "add", "path": "/map/m~0n/y", "value": null}]`, `[{"op": "add", "path": "", "value": {}}]`, `[{"op": "test", "path": "/a", "value": 1}, {"op": "move", "from": "/a", "path": "/b"}]`,
		`{"metadata": {"labels": {"a": null}}, "spec": {"list": [1]}}`, `[{"op": "add", "path": "/list/99999999999999999999", "value": 1}]`, `[{"op": "add", "path": "/ljst/-", "value": 1}]`,
		`[{"op": "add", "path": "/ljst/0", "value": 1}]`, `[{"op": "add", "path": "/map/new/-/x", "value": 1}]`, `[[]]`, `[null]`, `[{}]`, `null`, `7`, `".map.a = 1 | del(.list[0])"`, `"empty"`, `".[0]"`} {
		f.Add(patch, values)
	}
	f.Fuzz(func(t *testing.T, patch, values string) {
		var base map[string]any
		if json.Unmarshal([]byte(values), &base) != nil || base == nil {
			return
		}
		v, err := fuzzCall(t, nil, "json.decode", starlark.Tuple{starlark.String(patch)})
		if err != nil {
			return
		}
		for _, kind := range []string{"merge", "strategic", "json", "jq"} {
			c := &Context{Phase: spec.InRun, Log: &memoryLog{}, Run: newTestRun(new(int))}
			ref := starlark.Tuple{starlark.String("v1"), starlark.String("ConfigMap"), starlark.String("x")}
			_, err := fuzzCall(t, c, "k8s.patch", ref, starlark.Tuple{starlark.String(kind), v})
			writes := c.Run.Effects.Writes
			if err != nil && len(writes) > 0 || err == nil && (len(writes) != 1 || string(writes[0].Patch.Type) != kind) {
				t.Errorf("%s: %v, and writes %v", kind, err, writes)
			}
			if err == nil && kind != "jq" {
				if want, _ := object.ToPlain(v); !cmp.Equal(want, writes[0].Patch.Body) {
					t.Errorf("%s: %v became %v", kind, v, writes[0].Patch.Body)
				}
			}
		}
		if program, ok := v.(starlark.String); ok {
			before, _ := json.Marshal(base)
			ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer stop()
			if _, err := jq.Patch(ctx, string(program), base); err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("jq: %q", err)
			}
			if after, _ := json.Marshal(base); string(after) != string(before) {
				t.Errorf("jq: %s changed %s to %s", program, before, after)
			}
		}
		patchValues(t, v, patch, base)
	})
}

// patchValues compares values.patch with the library that the API server uses.
func patchValues(t *testing.T, v starlark.Value, patch string, base map[string]any) {
	if _, ok := v.(*starlark.List); !ok {
		return
	}
	run := newTestRun(new(int))
	run.Compose = func(own []effect.ValueOp) (map[string]any, error) {
		root := object.CopyPlain(base).(map[string]any)
		for _, op := range own {
			if op.Op == effect.OpRemove {
				root = withoutValue(root, op.Path)
			} else {
				root = withValue(root, op.Path, op.Value)
			}
		}
		return root, nil
	}
	_, err := fuzzCall(t, &Context{Phase: spec.InRun, Log: &memoryLog{}, Run: run}, "values.patch", starlark.Tuple{v})
	if err != nil {
		return
	}
	got, err := run.Compose(run.Effects.Values)
	if err != nil {
		t.Fatal(err)
	}
	// Written anew: json.decode takes control characters that are no JSON for others.
	plain, err := object.ToPlain(v)
	if err != nil {
		return // each operation was plain; all of them lie one deeper, perhaps too deep
	}
	strict, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(strict), "global") {
		return
	}
	ops, err := jsonpatch.DecodePatch(strict)
	if err != nil {
		t.Fatalf("%s is no patch for others: %v", strict, err)
	}
	doc, err := json.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ops.ApplyWithOptions(doc, &jsonpatch.ApplyOptions{EnsurePathExistsOnAdd: true})
	if errors.Is(err, jsonpatch.ErrMissing) || err != nil {
		return // paths that are not there are made by us, by the other within its limits
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if !jsonpatch.Equal(text, want) {
		t.Errorf("%s on %s is %s, want %s", patch, doc, text, want)
	}
}

// withoutValue returns root without what is at the keys.
func withoutValue(root map[string]any, keys []string) map[string]any {
	at := root
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			return root
		}
		at = next
	}
	delete(at, keys[len(keys)-1])
	return root
}
