package script

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"
)

// values makes values that lie in each other, share parts, and are often alike.
type values struct {
	*rand.Rand
	made []starlark.Value
}

func (g *values) one(depth int) starlark.Value {
	v := g.fresh(depth)
	if len(g.made) < 200 {
		g.made = append(g.made, v)
	}
	return v
}

func (g *values) fresh(depth int) starlark.Value {
	if n := len(g.made); n > 0 && g.IntN(4) == 0 {
		return g.made[g.IntN(n)]
	}
	kinds := 8
	if depth > 0 {
		kinds = 14
	}
	switch g.IntN(kinds) {
	case 0:
		return starlark.None
	case 1:
		return starlark.Bool(g.IntN(2) == 0)
	case 2:
		return starlark.MakeInt(g.IntN(3))
	case 3:
		return []starlark.Value{starlark.Float(1), starlark.Float(0.5), starlark.Float(math.NaN()), starlark.Float(math.Inf(1))}[g.IntN(4)]
	case 4:
		return starlark.String(strings.Repeat("a", g.IntN(3)*80))
	case 5:
		return starlark.Bytes(strings.Repeat("a", g.IntN(2)))
	case 6:
		return starlark.MakeInt(1).Lsh(uint(70 * g.IntN(2)))
	case 7:
		return starlark.Universe["len"]
	case 8, 9:
		elements := make([]starlark.Value, g.IntN(4))
		for i := range elements {
			elements[i] = g.one(depth - 1)
		}
		list := starlark.NewList(elements)
		if len(elements) > 0 && g.IntN(20) == 0 {
			_ = list.SetIndex(0, list)
		}
		return list
	case 10:
		t := make(starlark.Tuple, g.IntN(4))
		for i := range t {
			t[i] = g.one(depth - 1)
		}
		return t
	case 11:
		d := starlark.NewDict(0)
		for range g.IntN(4) {
			_ = d.SetKey(g.one(depth-1), g.one(depth-1))
		}
		return d
	case 12:
		s := starlark.NewSet(0)
		for range g.IntN(4) {
			_ = s.Insert(g.one(depth - 1))
		}
		return s
	}
	fields := starlark.StringDict{}
	for _, name := range []string{"a", "b"}[:g.IntN(3)] {
		fields[name] = g.one(depth - 1)
	}
	constructor := []starlark.Value{starlarkstruct.Default, starlark.String("event")}[g.IntN(2)]
	return starlarkstruct.FromStringDict(constructor, fields)
}

// Comparisons mean what they mean without guards, errors included.
func TestComparisonsAreTheLanguagesOwn(t *testing.T) {
	operators := []syntax.Token{syntax.EQL, syntax.NEQ, syntax.LT, syntax.LE, syntax.GT, syntax.GE}
	outcome := func(ok bool, err error) string { return fmt.Sprint(ok && err == nil, err) }
	equal, failed := 0, 0
	for seed := range uint64(3000) {
		g := &values{Rand: rand.New(rand.NewPCG(seed, 1))}
		for range 10 {
			x, y := g.one(12), g.one(12)
			for _, op := range operators {
				want := outcome(starlark.Compare(op, x, y))
				if got := outcome(boundedComparison().compare(op, x, y, starlark.CompareLimit)); got != want {
					t.Fatalf("seed %d: %s %s %s is %s, want %s", seed, x, op, y, got, want)
				}
				guarded, _, _ := comparedGuard{}.Get(x)
				if got := outcome(starlark.Compare(op, guarded, y)); got != want {
					t.Fatalf("seed %d: guarded %s %s %s is %s, want %s", seed, x, op, y, got, want)
				}
				if op == syntax.EQL && strings.HasPrefix(want, "true") {
					equal++
				} else if strings.Contains(want, "maximum recursion depth") {
					failed++
				}
			}
			guarded, _, _ := searchedGuard{}.Get(y)
			v, err := starlark.Binary(syntax.IN, x, y)
			w, err2 := starlark.Binary(syntax.IN, x, guarded)
			if fmt.Sprint(v, err) != fmt.Sprint(w, err2) {
				t.Fatalf("seed %d: %s in %s is %v, %v, want %v, %v", seed, x, y, w, err2, v, err)
			}
		}
	}
	if equal < 1000 || failed < 20 {
		t.Errorf("%d pairs were equal, %d too deep: the values test too little", equal, failed)
	}
}
