package docs

import (
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/spec"
)

// Each function that a builtin takes, and that Starling calls later, is in the table of callbacks.
func TestEachFunctionThatIsGivenHasACallback(t *testing.T) {
	for _, s := range Documented() {
		if strings.HasPrefix(s.Name, "ctx.") || strings.HasPrefix(s.Name, "t.") || strings.HasPrefix(s.Name, "expect.") || strings.HasPrefix(s.Name, "assert") {
			continue // for tests: they are called at once
		}
		for _, p := range s.Params {
			name := s.Name + "(" + p.Name + ")"
			fn := p.Type == spec.Function || p.Type == spec.Filter || p.Type == spec.Wakes
			if fn && name != "hook(fn)" && CallbackOf(name) == nil { // what calls fn are the triggers
				t.Errorf("%s is not in the table of callbacks", name)
			}
		}
		if strings.Contains(s.Returns, "a binding for hook") && CallbackOf(s.Name) == nil && s.Name != "k8s.convert" {
			t.Errorf("trigger %s is not in the table of callbacks", s.Name)
		}
	}
}

// Examples of fields are values as Starlark writes them, of the type that the table names.
func TestExamplesOfCtxAreValues(t *testing.T) {
	for _, f := range CtxFields() {
		if !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: the doc is no sentence: %q", f.Path, f.Doc)
		}
		if f.Example == "" {
			continue
		}
		v, err := starlark.EvalOptions(&syntax.FileOptions{}, &starlark.Thread{}, "x", f.Example, builtins.Predeclared())
		if err != nil {
			t.Errorf("%s: %v", f.Path, err)
			continue
		}
		first, _, _ := strings.Cut(f.Type, " ")
		is := map[string]string{"time.time": "time", "dict": "dict"}[v.Type()]
		if is == "" {
			is = v.Type()
		}
		if first != "any" && first != is && !(first == "object" && is == "dict") {
			t.Errorf("%s: the example is a %s, the type is %s", f.Path, v.Type(), f.Type)
		}
	}
}

func TestMembersOfCtxAreThoseOfACallback(t *testing.T) {
	names := func(fields []CtxField) (out []string) {
		for _, f := range fields {
			out = append(out, f.Path[strings.LastIndexByte(f.Path, '.')+1:])
		}
		slices.Sort(out)
		return out
	}
	for _, tt := range []struct{ callback, path, want string }{
		{"startup", "ctx", "attempt events module now snapshots state synced"},
		{"hook(for_each)", "ctx", "attempt events key module now object snapshots state synced"},
		{"startup", "ctx.events[]", "binding type"},
		{"k8s.watch", "ctx.events[]", "binding name namespace object old result type"},
		{"http.receive", "ctx.request", "body headers json method path query"},
		{"k8s.mutate", "ctx.request.user", "extra groups name uid"},
		{"controller(status)", "ctx", "children key object observed observed_at reached reads"},
		{"controller(status)", "ctx.reads.NAME", "all by get"},
		{"startup", "ctx.request", ""},
		{"", "ctx", "attempt events key module now object request snapshots state synced"},
		{"no such", "ctx", ""},
	} {
		if got := strings.Join(names(CtxMembers(tt.callback, tt.path)), " "); got != tt.want {
			t.Errorf("%s of %q: got %s, want %s", tt.path, tt.callback, got, tt.want)
		}
	}
}

func TestHelpKnowsEachName(t *testing.T) {
	for _, name := range HelpNames() {
		if text, found := Help(name); !found || strings.TrimSpace(text) == "" {
			t.Errorf("there is no help for %s", name)
		}
	}
	for name, want := range map[string]string{
		"ctx":               "  ctx.snapshots  dict of lists: ",
		"ctx.events.type":   "ctx.events[].type: string\n",
		"ctx.key":           "In hook(for_each), hook(cleanup).",
		"ctx.state":         "ctx.state has\n\n  get ",
		"ctx.request":       "  ctx.request.json ",
		"controller":        "controller(name, parent, ",
		"enabled":           "It returns True, False, ",
		"k8s.watch(filter)": "called with (object)",
	} {
		if text, _ := Help(name); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", name, want, text)
		}
	}
	if _, found := Help("k8s.aply"); found {
		t.Error("there is help for nothing")
	}
}
