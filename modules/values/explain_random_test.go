package values

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// Whatever the layers hold: each value in force is told, with the layer that gives it on
// top, and what was taken away is not there.
func TestExplainAgreesWithCompose(t *testing.T) {
	schema, err := ParseSchema("s.yaml", []byte(`{x-kubernetes-preserve-unknown-fields: true, properties: {
  a: {x-kubernetes-preserve-unknown-fields: true, default: {b: 7}},
  c: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {x-kubernetes-preserve-unknown-fields: true, default: 8}}}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	keys := []string{"a", "b", "c"}
	var value func(depth int) any
	mapOf := func(depth int) object {
		m := object{}
		for range r.IntN(3) {
			m[keys[r.IntN(3)]] = value(depth - 1)
		}
		return m
	}
	value = func(depth int) any {
		switch n := r.IntN(8); {
		case n == 0:
			return nil
		case n == 1:
			return []any{int64(r.IntN(9))}
		case n < 5 && depth > 0:
			return mapOf(depth)
		}
		return int64(r.IntN(100))
	}
	path := func() []string {
		out := []string{keys[r.IntN(3)]}
		for r.IntN(2) == 0 {
			out = append(out, keys[r.IntN(3)])
		}
		return out
	}
	layer := func(hook string) HookLayer {
		l := HookLayer{Hook: hook}
		for range r.IntN(3) {
			op := effect.ValueOp{Path: path(), Pos: fmt.Sprintf("%s.star:%d", hook, r.IntN(9)+1)}
			switch op.Op = []effect.ValueOpKind{effect.OpSet, effect.OpDefault, effect.OpMerge, effect.OpRemove}[r.IntN(4)]; op.Op {
			case effect.OpMerge:
				op.Value = mapOf(2)
			case effect.OpSet, effect.OpDefault:
				op.Value = value(2)
			}
			l.Ops = append(l.Ops, op)
		}
		return l
	}
	for n := range seeds(5000) {
		s := Section{Name: "m", Key: "m", Config: mapOf(3), Static: []Layer{{Name: LayerChart, Data: mapOf(3)}, {Name: LayerTree, Data: mapOf(3)}}}
		if r.IntN(2) == 0 {
			s.ConfigSchema = schema
		}
		for _, hook := range []string{"y", "x"} { // each has its own paths
			if l := layer(hook); Conflict(s.Hooks, hook, l.Ops) == nil {
				s.Hooks = append(s.Hooks, l)
			}
		}
		global := Section{Name: "global", Key: "global", Config: mapOf(2), Hooks: []HookLayer{layer("g")}}
		view := ModuleView(NewComposer(s).Compose(), NewComposer(global).Compose())
		in := ExplainInput{Section: SectionSources{Section: s}, Global: &SectionSources{Section: global}, Read: func(string) []byte { return nil }}
		entries := map[string]Entry{}
		for _, e := range in.Explain().Values {
			entries[pathKey(e.Keys)] = e
			v, there := lookup(view, e.Keys)
			if there == e.Removed || there && !reflect.DeepEqual(v, e.Value) || e.Removed != e.Chain[0].Removed {
				t.Fatalf("%d: %s is %v (there: %t), explained as %+v\n%+v", n, e.Path, v, there, e, s)
			}
			_, isMap := v.(object) // an empty one, from which things were taken
			_, gaveMap := e.Chain[0].Value.(object)
			if !e.Removed && !(isMap && gaveMap) && !reflect.DeepEqual(normal(v), normal(e.Chain[0].Value)) {
				t.Fatalf("%d: %s is %v, its first layer says %+v\n%+v", n, e.Path, v, e.Chain[0], s)
			}
		}
		ends(nil, view, func(path []string, v any) {
			if _, ok := entries[pathKey(path)]; !ok && !(len(path) == 1 && path[0] == GlobalKey) {
				t.Fatalf("%d: nobody gives %s = %v\n%+v", n, PathString(path), v, s)
			}
		})
	}
}
