package values

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/runtime/effect"
)

func TestLocatedKnowsTheCallOfEachOperation(t *testing.T) {
	run := &effect.Origin{Run: 7, At: time.Unix(100, 0)}
	call := func(kind effect.ValueOpKind, pos string, v any, path ...string) effect.ValueOp {
		return effect.ValueOp{Op: kind, Path: path, Value: v, Pos: pos}
	}
	type place struct {
		Op, Path, Pos string
		Run           uint64
		Within        []string
	}
	for _, test := range []struct {
		name string
		kept []effect.ValueOp
		ops  []effect.ValueOp
		want []place
	}{
		{"each its own", nil, []effect.ValueOp{call(effect.OpSet, "a.star:2", int64(1), "b"), call(effect.OpDefault, "a.star:1", "x", "a"), call(effect.OpRemove, "a.star:3", nil, "c")},
			[]place{{"default", "a", "a.star:1", 7, nil}, {"set", "b", "a.star:2", 7, nil}, {"remove", "c", "a.star:3", 7, nil}}},
		{"the later one", nil, []effect.ValueOp{call(effect.OpSet, "a.star:1", int64(1), "a"), call(effect.OpSet, "a.star:2", int64(1), "a")},
			[]place{{"set", "a", "a.star:2", 7, nil}}},
		{"a merge", nil, []effect.ValueOp{call(effect.OpMerge, "a.star:1", map[string]any{"a": int64(1), "b": map[string]any{"c": nil}}, "m")},
			[]place{{"set", "m.a", "a.star:1", 7, nil}, {"merge", "m.b", "a.star:1", 7, nil}, {"remove", "m.b.c", "a.star:1", 7, nil}}},
		{"inside what was set", nil, []effect.ValueOp{call(effect.OpSet, "a.star:1", map[string]any{}, "m"), call(effect.OpSet, "a.star:2", int64(1), "m", "a"), call(effect.OpMerge, "a.star:3", map[string]any{"c": true}, "m", "b")},
			[]place{{"set", "m", "a.star:1", 7, []string{"a a.star:2", "b.c a.star:3"}}}},
		{"kept", []effect.ValueOp{{Op: effect.OpSet, Path: []string{"a"}, Pos: "a.star:1", Origin: &effect.Origin{Run: 3}}, {Op: effect.OpSet, Path: []string{"b"}}},
			[]effect.ValueOp{call(effect.OpSet, "a.star:9", int64(1), "c")},
			[]place{{"set", "a", "a.star:1", 3, nil}, {"set", "b", "", 0, nil}, {"set", "c", "a.star:9", 7, nil}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			located := Located(test.kept, test.ops, run)
			var got []place
			for _, op := range located {
				p := place{Op: string(op.Op), Path: PathString(op.Path), Pos: op.Pos}
				if op.Origin != nil {
					p.Run = op.Origin.Run
					for _, w := range op.Origin.Within {
						p.Within = append(p.Within, PathString(w.Path)+" "+w.Pos)
					}
				}
				got = append(got, p)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if again := Located(located, nil, nil); cmp.Diff(located, again) != "" {
				t.Error("it changes as it is kept:", cmp.Diff(located, again))
			}
			if !Equal(located, append(test.kept, test.ops...)) {
				t.Error("it asks for something else")
			}
		})
	}
}

func TestRelocateTakesTheCallsOfTheLaterRun(t *testing.T) {
	ops := []effect.ValueOp{{Op: effect.OpSet, Path: []string{"a"}, Value: int64(1), Pos: "a.star:1"}}
	old := Located(nil, ops, &effect.Origin{Run: 1})
	ops[0].Pos = "a.star:5"
	got := Relocate(old, Located(nil, ops, &effect.Origin{Run: 2}))
	if got[0].Pos != "a.star:5" || got[0].Origin.Run != 2 || old[0].Pos != "a.star:1" {
		t.Errorf("got %+v of %+v", got, old)
	}
}

func TestSecretsStayMarked(t *testing.T) {
	set := func(v any, secrets [][]string, path ...string) effect.ValueOp {
		return effect.ValueOp{Op: effect.OpSet, Path: path, Value: v, Secrets: secrets}
	}
	for _, test := range []struct {
		name string
		ops  []effect.ValueOp
		want []string // paths of texts
	}{
		{"itself", []effect.ValueOp{set("s", [][]string{{}}, "a")}, []string{"a"}},
		{"in a map and a list", []effect.ValueOp{set(map[string]any{"x": []any{"open", "s"}}, [][]string{{"x", "1"}}, "a")}, []string{"a.x.1"}},
		{"merged", []effect.ValueOp{{Op: effect.OpMerge, Path: []string{"a"}, Value: map[string]any{"x": "s", "y": "open"}, Secrets: [][]string{{"x"}}}}, []string{"a.x"}},
		{"set openly later", []effect.ValueOp{set("s", [][]string{{}}, "a"), set("open", nil, "a")}, nil},
		{"removed", []effect.ValueOp{set("s", [][]string{{}}, "a"), {Op: effect.OpRemove, Path: []string{"a"}}}, nil},
		{"inside what was set", []effect.ValueOp{set(map[string]any{}, nil, "a"), set("s", [][]string{{}}, "a", "b.c")}, []string{"a.b.c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := EncodeOps(test.ops)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := DecodeOps(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, ops := range [][]effect.ValueOp{Canonical(test.ops), Canonical(Canonical(test.ops)), Located(nil, test.ops, nil), kept} {
				var got []string
				for _, op := range ops {
					for _, at := range op.Secrets {
						path := PathString(op.Path)
						for _, k := range at {
							path += "." + k
						}
						got = append(got, path)
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
