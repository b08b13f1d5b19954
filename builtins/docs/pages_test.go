package docs

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

// Each builtin and each parameter has one text in docs/, and each text there is of a builtin.
func TestEachBuiltinHasAText(t *testing.T) {
	texts := map[string]text{}
	for _, p := range pages() {
		shared := map[string]bool{}
		for _, one := range p.texts {
			if _, twice := texts[one.name]; twice {
				t.Errorf("%s has two texts in docs/", one.name)
			}
			texts[one.name] = one
			for name := range one.shared {
				shared[name] = shared[name] || one.params[name] == ""
			}
		}
		for name, used := range shared {
			if !used {
				t.Errorf("docs/, page %q: no builtin needs the shared text of %s", p.title, name)
			}
		}
	}
	for _, s := range Documented() {
		one, found := texts[s.Name]
		if !found {
			t.Errorf("%s has no text; write one into a page of docs/", s.Name)
			continue
		}
		if one.example == "" {
			t.Errorf("%s has no example in docs/", s.Name)
		}
		for _, p := range s.Params {
			if p.Doc == "" {
				t.Errorf("%s: parameter %s has no text in docs/", s.Name, p.Name)
			}
			delete(one.params, strings.TrimLeft(p.Name, "*"))
		}
		if left := slices.Sorted(maps.Keys(one.params)); len(left) > 0 {
			t.Errorf("%s has texts in docs/ for parameters that it does not have: %s", s.Name, strings.Join(left, ", "))
		}
		delete(texts, s.Name)
	}
	if left := slices.Sorted(maps.Keys(texts)); len(left) > 0 {
		t.Errorf("docs/ has texts of no builtin: %s", strings.Join(left, ", "))
	}
}

// TestTable holds every declaration to what docs, help and stubs need.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Documented() {
		if seen[s.Name] {
			t.Errorf("%s: declared twice", s.Name)
		}
		seen[s.Name] = true
		if !strings.HasSuffix(s.Doc, ".") && !strings.HasSuffix(s.Doc, ".)") {
			t.Errorf("%s: the doc is no sentence: %q", s.Name, s.Doc)
		}
		if s.Phases == 0 {
			t.Errorf("%s: no phases", s.Name)
		}
		if s.Constant() == (s.Call != nil) {
			t.Errorf("%s: neither function nor constant, or both", s.Name)
		}
		if s.Effect == spec.NoEffect && !s.Constant() && s.Returns == "" && s.Phases == spec.Anywhere && s.Name != "fail" {
			t.Errorf("%s: pure, but returns nothing", s.Name)
		}
		if s.Effect != spec.NoEffect && s.Phases&spec.InFilter != 0 {
			t.Errorf("%s: has an effect, but filters may call it", s.Name)
		}
		optional := false
		for _, p := range s.Params {
			if p.Doc == "" || p.Name == "" || p.Type == "" {
				t.Errorf("%s: parameter %q is not documented", s.Name, p.Name)
			}
			if !strings.HasSuffix(p.Doc, ".") {
				t.Errorf("%s: %s: the doc is no sentence: %q", s.Name, p.Name, p.Doc)
			}
			if strings.HasPrefix(p.Name, "*") || p.Keyword {
				continue
			}
			if p.Default == "" && optional {
				t.Errorf("%s: %s is required, but comes after optional ones", s.Name, p.Name)
			}
			optional = optional || p.Default != ""
		}
	}
}

func BenchmarkDocumented(b *testing.B) {
	for b.Loop() {
		Documented()
	}
}

func BenchmarkTable(b *testing.B) {
	for b.Loop() {
		builtins.Table()
	}
}

func TestReadPage(t *testing.T) {
	p := readPage("# Group\n\n- a: Shared\n  text.\n\n## x.f\n\nReturns is\na word.\n\n- b: Of b: all.\n- a: Own.\n\n" +
		"Returns a dict.\n\n```starlark\nx.f()\n```\n\n## g\n\nDoes g.\n")
	if p.title != "Group" || len(p.texts) != 2 {
		t.Fatalf("got %+v", p)
	}
	params := []spec.Param{{Name: "a"}, {Name: "**b"}}
	f, g := spec.Spec{Params: params}, spec.Spec{Params: params}
	document(&f, p.texts[0])
	document(&g, p.texts[1])
	if f.Doc != "Returns is a word." || f.Returns != "a dict" || f.Example != "x.f()\n" || f.Params[0].Doc != "Own." || f.Params[1].Doc != "Of b: all." {
		t.Errorf("x.f: %+v", f)
	}
	if g.Doc != "Does g." || g.Returns != "" || g.Example != "" || g.Params[0].Doc != "Shared text." || params[0].Doc != "" {
		t.Errorf("g: %+v", g)
	}
}
