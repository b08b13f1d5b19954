package adoption

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// gen makes a generation of lines like "web > db" (requires) or "web! > db" (broken). A module of
// before with the same line is taken over.
func gen(before *generation.Generation, lines ...string) *generation.Generation {
	g := &generation.Generation{Modules: map[string]*generation.Module{}, Tree: &tree.Tree{Values: map[string]any{}}}
	for _, line := range lines {
		name, requires, _ := strings.Cut(line, " > ")
		name, hollow := strings.CutPrefix(name, "hollow ")
		if hollow {
			g.Tree.Hollow = append(g.Tree.Hollow, name)
			continue
		}
		name, broken := strings.CutSuffix(name, "!")
		m := &generation.Module{Name: name, Key: name, Tree: &tree.Module{}, Decl: builtins.ModuleDecl{Namespace: line, Requires: strings.Fields(requires)}}
		if before != nil && before.Modules[name] != nil && before.Modules[name].Decl.Namespace == line {
			m = before.Modules[name]
		}
		if broken {
			m.Err = errors.New("boom")
		}
		g.Modules[name] = m
		g.Tree.Values[name] = line
	}
	g.Names = slices.Sorted(maps.Keys(g.Modules))
	return g
}

// decide is one decision, about modules that are broken by themselves alone.
func decide(before, next *generation.Generation) *generation.Generation {
	in := Input{Before: before, Next: next, Unusable: map[string]string{}, Errors: map[string]string{}, Changed: map[string]bool{}}
	for name, m := range before.Modules {
		if m.Err != nil {
			in.Unusable[name] = m.Err.Error()
		}
	}
	for name, m := range next.Modules {
		if in.Changed[name] = before.Modules[name] != m; m.Err != nil {
			in.Errors[name] = m.Err.Error()
		}
	}
	return Decide(in)
}

func TestDecide(t *testing.T) {
	for name, tt := range map[string]struct {
		before, next []string
		held, unfit  string
	}{
		"nothing":                         {[]string{"a", "b"}, []string{"a", "b"}, "", ""},
		"edited, new and gone":            {[]string{"a", "b"}, []string{"a > c", "c"}, "", ""},
		"broken":                          {[]string{"a", "b"}, []string{"a!", "b > a"}, "a b", ""},
		"broken for long":                 {[]string{"a!", "b"}, []string{"a!", "b > a"}, "", ""},
		"down a row":                      {[]string{"a", "b > a", "c > b", "d"}, []string{"a!", "b > a d", "c > b d", "d > c"}, "a b c d", ""},
		"a row that rests":                {[]string{"a", "b > a", "c > b"}, []string{"a!", "b > a", "c > b"}, "a", ""},
		"a name that is new":              {[]string{"a"}, []string{"b!"}, "a", "b"},
		"a name that is new, and another": {[]string{"a", "c"}, []string{"b!", "c > d", "d"}, "a", "b"},
		"hollow":                          {[]string{"a", "b"}, []string{"hollow a", "b"}, "a", ""},
		"hollow and new":                  {[]string{"b"}, []string{"hollow a", "b"}, "", ""},
		"gone, and required":              {[]string{"a", "b > a"}, []string{"b! > a"}, "a b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := gen(nil, tt.before...)
			for _, again := range []bool{false, true} {
				next := gen(before, tt.next...)
				got := decide(before, next)
				names := func(of map[string]string) string { return strings.Join(slices.Sorted(maps.Keys(of)), " ") }
				if diff := cmp.Diff([]string{tt.held, tt.unfit}, []string{names(got.Held), names(got.Unfit)}); diff != "" {
					t.Fatalf("again: %v (-want +got):\n%s", again, diff)
				}
				for name := range got.Held {
					if got.Modules[name] != before.Modules[name] || got.Tree.Values[name] != before.Tree.Values[name] {
						t.Errorf("module %s is another one, or its values are", name)
					}
				}
				if tt.held == "" && got != next {
					t.Error("it is not the generation of the tree")
				}
				before = got
			}
		})
	}
}
