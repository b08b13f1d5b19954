package values

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

type object = map[string]any

// op makes an operation from a dotted path.
func op(kind effect.ValueOpKind, path string, value ...any) effect.ValueOp {
	o := effect.ValueOp{Op: kind}
	if path != "" {
		o.Path = strings.Split(path, ".")
	}
	if len(value) > 0 {
		o.Value = value[0]
	}
	return o
}

func set(path string, v any) effect.ValueOp       { return op(effect.OpSet, path, v) }
func merge(path string, v object) effect.ValueOp  { return op(effect.OpMerge, path, v) }
func remove(path string) effect.ValueOp           { return op(effect.OpRemove, path) }
func deflt(path string, v any) effect.ValueOp     { return op(effect.OpDefault, path, v) }
func ops(list ...effect.ValueOp) []effect.ValueOp { return list }

func TestMerge(t *testing.T) {
	tests := []struct {
		name           string
		dst, src, want object
	}{
		{"nothing", nil, nil, object{}},
		{"deep", object{"a": object{"b": 1, "c": 2}}, object{"a": object{"c": 3, "d": 4}}, object{"a": object{"b": 1, "c": 3, "d": 4}}},
		{"lists are replaced", object{"a": []any{1, 2}}, object{"a": []any{3}}, object{"a": []any{3}}},
		{"a map over a scalar", object{"a": 1}, object{"a": object{"b": 2}}, object{"a": object{"b": 2}}},
		{"a scalar over a map", object{"a": object{"b": 2}}, object{"a": 1}, object{"a": 1}},
		{"null deletes", object{"a": 1, "b": object{"c": 1}}, object{"a": nil, "b": object{"c": nil}}, object{"b": object{}}},
		{"null stays where nothing was, for subcharts", object{}, object{"sub": object{"a": nil}}, object{"sub": object{"a": nil}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dst, src := fmt.Sprint(tt.dst), fmt.Sprint(tt.src)
			if diff := cmp.Diff(tt.want, Merge(tt.dst, tt.src)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if fmt.Sprint(tt.dst) != dst || fmt.Sprint(tt.src) != src {
				t.Errorf("an argument was changed: %v, %v", tt.dst, tt.src)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	tests := []struct {
		name     string
		in, want []effect.ValueOp
	}{
		{"nothing", nil, nil},
		{"sorted, defaults first", ops(set("b", 1), set("a", 2), deflt("z", 3)), ops(deflt("z", int64(3)), set("a", int64(2)), set("b", int64(1)))},
		{"later wins", ops(set("a", "x"), set("a", "y")), ops(set("a", "y"))},
		{"a containing path wins", ops(set("a.b", "x"), remove("a.c"), set("a", "y")), ops(set("a", "y"))},
		{"into an earlier set", ops(set("a", object{"b": "x"}), set("a.c", "y"), remove("a.b"), merge("a", object{"d": "z", "c": nil})),
			ops(set("a", object{"d": "z"}))},
		{"removed, then set below", ops(remove("a"), set("a.b", "x")), ops(set("a", object{"b": "x"}))},
		{"removed, then removed below", ops(remove("a"), remove("a.b")), ops(remove("a"))},
		{"removed, then merged", ops(remove("a"), merge("a", object{"b": nil, "c": "x"})), ops(set("a", object{"c": "x"}))},
		{"a merge is what it sets", ops(merge("a", object{"b": object{"c": "x"}, "d": nil})), ops(set("a.b.c", "x"), remove("a.d"))},
		{"an empty merge asks for a map", ops(merge("a", object{})), ops(merge("a", object{}))},
		{"unless one is made anyway", ops(merge("a", object{}), set("a.b", "x")), ops(set("a.b", "x"))},
		{"whole floats", ops(set("a", []any{1.0, 1.5, object{"b": -2.0}})), ops(set("a", []any{int64(1), 1.5, object{"b": int64(-2)}}))},
		{"defaults and others do not meet", ops(deflt("a", "x"), set("a", "y")), ops(deflt("a", "x"), set("a", "y"))},
		{"positions are gone", ops(effect.ValueOp{Op: effect.OpSet, Path: []string{"a"}, Value: true, Pos: "f:1"}), ops(set("a", true))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := fmt.Sprint(tt.in)
			got := Canonical(tt.in)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, Canonical(got)); diff != "" {
				t.Errorf("canonical of canonical differs (-once +twice):\n%s", diff)
			}
			if fmt.Sprint(tt.in) != before {
				t.Errorf("the operations were changed: %v", tt.in)
			}
			if !Equal(tt.in, got) {
				t.Error("not equal to its canonical form")
			}
		})
	}
	if Equal(ops(set("a", "x")), ops(set("a", "y"))) {
		t.Error("different operations are equal")
	}
}

// randomOps makes operations on a few keys, so that they meet.
func randomOps(r *rand.Rand) []effect.ValueOp {
	keys := []string{"a", "b", "c"}
	var value func(depth int) any
	value = func(depth int) any {
		switch r.IntN(5) {
		case 0:
			return nil
		case 1:
			return r.Int64N(4)
		case 2:
			return float64(r.IntN(8)) / 2
		}
		m := object{}
		if depth > 0 {
			for range r.IntN(3) {
				m[keys[r.IntN(3)]] = value(depth - 1)
			}
		}
		return m
	}
	var out []effect.ValueOp
	for range r.IntN(6) {
		o := effect.ValueOp{Op: effect.OpSet}
		for range 1 + r.IntN(3) {
			o.Path = append(o.Path, keys[r.IntN(3)])
		}
		o.Value = value(2)
		switch r.IntN(4) {
		case 0:
			o.Op, o.Value = effect.OpRemove, nil
		case 1:
			if _, ok := o.Value.(object); ok {
				o.Op = effect.OpMerge
			}
		case 2:
			o.Op = effect.OpDefault
		}
		out = append(out, o)
	}
	return out
}

// TestCanonicalKeepsMeaning applies operations one by one, as their documentation
// reads, and in canonical form, also after a way through JSON.
func TestCanonicalKeepsMeaning(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	// No scalar where a path may lead through: there set and remove of the same
	// path leave an empty map, and nothing at all in canonical form.
	base := object{"a": object{"a": object{"a": object{"z": int64(1)}}, "z": []any{int64(1)}}, "b": object{"z": "x"}}
	for range seeds(3000) {
		list := randomOps(r)
		want := any(base)
		for _, o := range list {
			switch v := normal(o.Value); o.Op {
			case effect.OpSet:
				want = setIn(want, o.Path, v)
			case effect.OpRemove:
				want = removeIn(want, o.Path)
			case effect.OpMerge:
				under, _ := lookup(want, o.Path)
				m, _ := under.(object)
				want = setIn(want, o.Path, mergeDrop(m, v.(object)))
			}
		}
		data, err := EncodeOps(list)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := DecodeOps(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(Canonical(list), stored); diff != "" {
			t.Fatalf("%v: stored form differs (-want +got):\n%s", list, diff)
		}
		upper, _ := fold(stored)
		if diff := cmp.Diff(prune(want), prune(applyMaps([]*edit{upper}, base))); diff != "" {
			t.Fatalf("%v\ncanonical %v\n(-want +got):\n%s", list, stored, diff)
		}
	}
}

// applyOne is applyAll of one node, said another way.
func applyOne(e *edit, base any, there bool) (any, bool) {
	switch e.kind {
	case editSet:
		return e.value, true
	case editRemove:
		return nil, false
	}
	if e.empty() {
		return base, there
	}
	old, isMap := base.(map[string]any)
	if !isMap && !e.creates() {
		return base, there
	}
	out := make(map[string]any, len(old)+len(e.children))
	maps.Copy(out, old)
	for k, c := range e.children {
		was, ok := out[k]
		if v, ok := applyOne(c, was, ok); ok {
			out[k] = v
		} else {
			delete(out, k)
		}
	}
	return out, true
}

// TestApplyAllIsOneAfterAnother applies layers together and in turn.
func TestApplyAllIsOneAfterAnother(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	base := object{"a": object{"a": object{"a": int64(1)}, "b": int64(2)}, "b": []any{int64(1)}}
	for range seeds(5000) {
		var nodes []*edit
		want, there := any(base), true
		for range r.IntN(5) {
			upper, defaults := fold(randomOps(r))
			for _, e := range []*edit{upper, defaults} {
				nodes = append(nodes, e)
				want, there = applyOne(e, want, there)
			}
		}
		got, ok := applyAll(nodes, base, true)
		if diff := cmp.Diff(want, got); diff != "" || ok != there {
			t.Fatalf("%v, want %v (-want +got):\n%s", ok, there, diff)
		}
	}
}

// prune drops empty maps: what was set and taken away again leaves none in
// canonical form.
func prune(v any) any {
	m, ok := v.(object)
	if !ok {
		return v
	}
	out := object{}
	for k, e := range m {
		if e = prune(e); e != nil {
			if em, ok := e.(object); ok && len(em) == 0 {
				continue
			}
		}
		out[k] = e
	}
	return out
}

func TestEncodeOps(t *testing.T) {
	data, err := EncodeOps(ops(set("b", "<&>"), set("a", int64(math.MaxInt64)), set("c", 1.5), remove("d"), set("e", nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"op":"set","path":["a"],"value":9223372036854775807},{"op":"set","path":["b"],"value":"<&>"},` +
		`{"op":"set","path":["c"],"value":1.5},{"op":"remove","path":["d"]},{"op":"set","path":["e"]}]`
	if string(data) != want {
		t.Errorf("got %s", data)
	}
	if data, err := EncodeOps(nil); err != nil || string(data) != "[]" {
		t.Errorf("nothing: %s, %v", data, err)
	}
	if _, err := EncodeOps(ops(set("a", math.NaN()))); err == nil {
		t.Error("NaN was written")
	}
}

func TestDecodeOpsErrors(t *testing.T) {
	for _, in := range []string{
		``, `{}`, `[`, `[{"op":"set","path":[]}]`, `[{"op":"sot","path":["a"]}]`, `[{"op":"merge","path":["a"],"value":1}]`,
		`[{"op":"remove","path":["a"],"value":1}]`, `[{"op":"set","path":["a"],"valeu":1}]`, `[{"op":"set","op":"set","path":["a"]}]`, `[null]`, `[] []`,
	} {
		if got, err := DecodeOps([]byte(in)); err == nil {
			t.Errorf("%s: read as %v", in, got)
		} else if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "effect.") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzDecodeOps(f *testing.F) {
	f.Add([]byte(`[{"op":"set","path":["a","b"],"value":{"c":1}},{"op":"merge","path":["a"],"value":{"b":null}},{"op":"remove","path":["d"]}]`))
	f.Add([]byte(`[{"op":"default","path":[""],"value":1e400}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := DecodeOps(data)
		if err != nil {
			return
		}
		again, err := EncodeOps(list)
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeOps(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(list, back); diff != "" {
			t.Fatalf("(-first +second):\n%s", diff)
		}
		Section{Hooks: []HookLayer{{Hook: "h", Ops: list}}}.Compose()
	})
}

func TestConflict(t *testing.T) {
	at := func(o effect.ValueOp) effect.ValueOp { o.Pos = "hooks/b.star:7"; return o }
	tests := []struct {
		name       string
		there, new effect.ValueOp
		want       string
	}{
		{"other paths", set("a.b", 1), set("a.c", 1), ""},
		{"a longer key", set("a", 1), set("ab", 1), ""},
		{"equal", set("a.b", 1), set("a.b", 1), "hooks/b.star:7: hook b may not set values path a.b: hook a sets it too; one path belongs to one hook"},
		{"below", set("a", object{}), remove("a.b"), "hooks/b.star:7: hook b may not remove values path a.b: hook a sets a; one path belongs to one hook"},
		{"above", set("a.b.c", 1), set("a", 1), "hooks/b.star:7: hook b may not set values path a: hook a sets a.b.c; one path belongs to one hook"},
		{"remove", remove("a"), set("a.b", 1), "hooks/b.star:7: hook b may not set values path a.b: hook a sets a; one path belongs to one hook"},
		{"merges of different keys", merge("a", object{"b": 1}), merge("a", object{"c": 1}), ""},
		{"merges of one key", merge("a", object{"b": object{"c": 1}}), merge("a", object{"b": object{"c": 2}}),
			"hooks/b.star:7: hook b may not merge values path a.b.c: hook a sets it too; one path belongs to one hook"},
		{"an empty merge owns nothing", merge("a", object{}), merge("a", object{"c": 1}), ""},
		{"an empty merge in what another sets", merge("a", object{}), set("a", 1), ""},
		{"defaults and sets", deflt("a", 1), set("a", 1), ""},
		{"defaults", deflt("a", 1), deflt("a.b", 1), "hooks/b.star:7: hook b may not default values path a.b: hook a sets a; one path belongs to one hook"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			layers := []HookLayer{{"z", ops(set("a.zzz", 1))}, {"b", ops(set("a", 5))}, {"a", ops(tt.there)}}
			got := ""
			if err := Conflict(layers[1:], "b", ops(at(tt.new))); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
