package values

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// A composer that computes what one layer has changed gives what one gives that computes
// all, and the very same map when nothing differs; whether hooks conflict is said as from
// all layers.
func TestPatchedValuesEqualComputedOnes(t *testing.T) {
	for seed := range seeds(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		s := Section{Name: "web", Key: "web", Static: []Layer{{Name: LayerChart, Data: randomMap(r, 2)}}, Config: randomMap(r, 2)}
		if seed%3 == 0 {
			s.Schema = mustSchema(t, "type: object\nproperties: {a: {type: object, default: {}, x-kubernetes-preserve-unknown-fields: true, properties: {b: {x-kubernetes-preserve-unknown-fields: true, default: 7}}}}\nx-kubernetes-preserve-unknown-fields: true")
		}
		c := NewComposer(s)
		layers := map[string][]effect.ValueOp{}
		for step := range 60 {
			hook := fmt.Sprintf("h%d", r.IntN(5))
			var own []effect.ValueOp
			for range r.IntN(4) {
				own = append(own, randomOp(r))
			}
			var before map[string]any
			computed := seed%2 == 0 || r.IntN(3) == 0 // else several layers change before somebody asks
			if computed {
				before = c.Compose()
			}
			err := c.Conflict(hook, own)
			if all := conflictOfAll(c.Section().Hooks, hook, own); fmt.Sprint(err) != fmt.Sprint(all) {
				t.Fatalf("seed %d, step %d: conflict %v, from all layers %v", seed, step, err, all)
			}
			if r.IntN(2) == 0 {
				own = Canonical(own)
			}
			c = c.WithHook(hook, own)
			if layers[hook] = own; len(own) == 0 {
				delete(layers, hook)
			}
			if !computed {
				continue
			}
			anew := s
			for h, ops := range layers {
				anew.Hooks = append(anew.Hooks, HookLayer{Hook: h, Ops: ops})
			}
			got, want := c.Compose(), NewComposer(anew).Compose()
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: %s %v gives\n%v, computed anew\n%v", seed, step, hook, own, got, want)
			}
			if reflect.DeepEqual(got, before) && !same(got, before) {
				t.Fatalf("seed %d, step %d: nothing differs, but the map is another one", seed, step)
			}
		}
	}
}

func randomOp(r *rand.Rand) effect.ValueOp {
	var path []string
	for range 1 + r.IntN(3) {
		path = append(path, string(rune('a'+r.IntN(3))))
	}
	switch r.IntN(5) {
	case 0:
		return effect.ValueOp{Op: effect.OpDefault, Path: path, Value: randomValue(r, 2)}
	case 1:
		return effect.ValueOp{Op: effect.OpRemove, Path: path}
	case 2:
		return effect.ValueOp{Op: effect.OpMerge, Path: path, Value: randomMap(r, 2)}
	}
	return effect.ValueOp{Op: effect.OpSet, Path: path, Value: randomValue(r, 2)}
}

func randomValue(r *rand.Rand, depth int) any {
	switch r.IntN(4) {
	case 0:
		if depth > 0 {
			return randomMap(r, depth-1)
		}
		return nil
	case 1:
		return []any{int64(r.IntN(3)), int64(0)}[:r.IntN(3)]
	}
	return int64(r.IntN(3))
}

func randomMap(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(3) {
		out[string(rune('a'+r.IntN(3)))] = randomValue(r, depth)
	}
	return out
}

// One layer among many is put into the values without a look at the others: in steps that
// allocate, which are counted, 5,000 objects cost next to what 100 cost.
func TestOneLayerAmongManyCostsTheSame(t *testing.T) {
	steps := func(objects int) float64 {
		var s Section
		for i := range objects {
			s.Hooks = append(s.Hooks, HookLayer{Hook: fmt.Sprintf("web/a of object-%d", i), Ops: ops(set("internal.sites.object-"+fmt.Sprint(i), int64(i)))})
		}
		c := NewComposer(s)
		c.Compose()
		// Others are not to be looked at: they hold what cannot be applied.
		for _, l := range c.layers {
			if !strings.HasSuffix(l.Hook, "-7") {
				l.upper, l.defaults = nil, nil
			}
		}
		n := int64(0)
		return testing.AllocsPerRun(20, func() {
			n++
			own := ops(set("internal.sites.object-7", n))
			if err := c.Conflict("web/a of object-7", own); err != nil {
				t.Fatal(err)
			}
			if v, _ := lookup(c.WithHook("web/a of object-7", own).Compose(), []string{"internal", "sites", "object-7"}); v != n {
				t.Fatalf("object-7 is %v, want %d", v, n)
			}
		})
	}
	if few, many := steps(100), steps(5000); many > 2*few+50 {
		t.Errorf("%v steps with 5,000 objects, %v with 100", many, few)
	}
}
