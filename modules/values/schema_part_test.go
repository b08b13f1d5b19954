package values

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/starling-operator/starling/runtime/effect"
)

// A check that looks at what one layer has changed says what one says that looks at all,
// and defaults are filled as in values that are computed anew.
func TestPartialChecksSayWhatWholeOnesSay(t *testing.T) {
	open := "x-kubernetes-preserve-unknown-fields: true"
	object := "type: object, " + open
	schemas := []string{
		"type: object\nadditionalProperties: {" + object + ", required: [a], properties: {a: {x-kubernetes-int-or-string: true}, b: {" + object + ", default: {c: 1}}}}",
		"type: object\nproperties: {a: {type: object, default: {}, additionalProperties: {" + object + ", properties: {a: {type: integer, default: 7}}}}, b: {" + object + "}, c: {" + object + ", required: [a, b]}}",
		"type: object\nrequired: [a]\nproperties: {a: {" + object + ", minProperties: 1, maxProperties: 2}, b: {type: object, additionalProperties: {" + object + "}}, c: {" + open + "}}",
		"type: object\nproperties: {a: {" + object + ", properties: {b: {" + open + "}, c: {type: integer, maximum: 1}}, x-kubernetes-validations: [{rule: '!has(self.c) || self.c != 1'}]}, b: {" + object + ", anyOf: [{required: [a]}, {required: [b]}]}, c: {type: integer, nullable: true, x-kubernetes-validations: [{rule: 'self >= oldSelf'}]}}",
		"type: object\npatternProperties: {'^[ab]$': {type: [integer, object], properties: {a: {" + object + "}, b: {" + open + "}, c: {type: integer, default: 3}}}, c: {" + object + ", oneOf: [{required: [a], properties: {a: {type: integer}}}, {required: [b]}]}}",
		"type: object\nproperties: {a: {" + open + "}}\nadditionalProperties: {" + object + ", properties: {a: {type: [object, string], " + open + ", default: x}}, additionalProperties: {type: [integer, object], " + open + "}}",
	}
	refused, passed, n := 0, 0, uint64(len(schemas))
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 25))
		s := Section{Name: "web", Key: "web", Static: []Layer{{Name: LayerChart, Data: map[string]any{"a": map[string]any{"a": int64(1)}}}}}
		s.Schema = mustSchema(t, schemas[seed%n])
		if seed%3 == 0 {
			s.ConfigSchema = mustSchema(t, schemas[(seed+1)%n])
		}
		c := NewComposer(s)
		layers := map[string][]effect.ValueOp{}
		for step := range 40 {
			hook := fmt.Sprintf("h%d", r.IntN(5))
			var own []effect.ValueOp
			for range r.IntN(3) {
				own = append(own, randomOp(r))
			}
			whole := s
			for h, ops := range layers {
				whole.Hooks = append(whole.Hooks, HookLayer{Hook: h, Ops: ops})
			}
			got, want := c.CheckHook(hook, own), NewComposer(whole).CheckHook(hook, own)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("seed %d, step %d: %s %v is checked as\n%v, as a whole\n%v", seed, step, hook, own, got, want)
			}
			if len(got) > 0 {
				refused++
				if r.IntN(4) > 0 {
					continue
				}
				own = nil
			} else {
				passed++
			}
			own = Canonical(own)
			c = c.WithHook(hook, own)
			if layers[hook] = own; len(own) == 0 {
				delete(layers, hook)
			}
			anew := s
			for h, ops := range layers {
				anew.Hooks = append(anew.Hooks, HookLayer{Hook: h, Ops: ops})
			}
			if got, want := c.Compose(), NewComposer(anew).Compose(); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d: %s %v gives\n%v, computed anew\n%v", seed, step, hook, own, got, want)
			}
			if r.IntN(3) == 0 {
				if got, want := c.CheckHelm(), NewComposer(anew).CheckHelm(); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("seed %d, step %d: for Helm it says\n%v, anew\n%v", seed, step, got, want)
				}
			}
			if r.IntN(10) == 0 {
				anew.Config = randomMap(r, 1)
				if len(NewComposer(anew).CheckHelm()) == 0 { // others do not come into force
					s.Config = anew.Config
					c = c.WithConfig(s.Config)
				}
			}
		}
	}
	if refused < 1000 || passed < 1000 {
		t.Errorf("%d refused and %d passed: these schemas show little", refused, passed)
	}
}

// A run with objects is checked before they are written, and when it is kept: the second
// check, of the same, does nothing.
func TestTheSameIsCheckedOnce(t *testing.T) {
	schema, err := ParseSchema("values.yaml", []byte("type: object\nproperties: {a: {type: integer}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c := NewComposer(Section{Name: "web", Schema: schema})
	set := func(path string, v any) []effect.ValueOp {
		return []effect.ValueOp{{Op: effect.OpSet, Path: []string{path}, Value: v}}
	}
	if ps := c.CheckHook("h", set("a", int64(1))); len(ps) > 0 {
		t.Fatal(ps)
	}
	first := c.checked.Load()
	if ps := c.CheckHook("h", set("a", int64(1))); len(ps) > 0 || c.checked.Load() != first {
		t.Errorf("it is checked again: %v", ps)
	}
	for _, ops := range [][]effect.ValueOp{set("a", "x"), set("b", int64(1)), append(set("b", int64(1)), set("a", int64(1))...)} {
		if ps := c.CheckHook("h", ops); len(ps) == 0 {
			t.Errorf("%v is in order", ops)
		}
	}
	if ps := c.CheckHook("h", set("a", int64(2))); len(ps) > 0 || c.checked.Load() == first {
		t.Errorf("another value is not checked: %v", ps)
	}
}
