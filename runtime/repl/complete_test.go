package repl

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
)

func TestComplete(t *testing.T) {
	fn, err := starlark.ExecFileOptions(&syntax.FileOptions{}, &starlark.Thread{}, "f.star", "def fun(first, second = 1, *rest):\n  \"\"\"Does it.\"\"\"\n  pass\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	names := builtins.Predeclared()
	names["fun"], names["obj"] = fn["fun"], starlark.NewDict(0)
	c := &Completer{
		Table:  docs.Documented(),
		Names:  func() []string { return names.Keys() },
		Lookup: func(name string) starlark.Value { return names[name] },
		Values: func() map[string]any {
			return map[string]any{"internal": map[string]any{"nodes": []any{1, 2}, "a.b": 1}, "inner": "x", "on": true}
		},
	}
	for _, tt := range []struct {
		text string // up to the cursor
		want string // some of the texts, with "=" before all of them
	}{
		{"k8", "=k8s"},
		{"k8s.", "apply get watch list create"},
		{"k8s.ap", "=apply apply_set"},
		{"x = k8s.wa", "=watch"},
		{"k8s.watch(", "api_version= kind= namespaces= k8s fun"},
		{`k8s.watch("v1", "Pod", na`, "=name= namespaces= namespace_labels= names"},
		{`k8s.watch("v1", "Pod", namespaces = ["a"], names`, "names"},
		{`k8s.watch("v1", "Pod", namespaces = na`, "=names"},
		{`k8s.watch("v1", "Pod", filter = lambda o: na`, "=names"},
		{`k8s.get("v1", "Pod", fun(f`, "first= fun for"},
		{`fun(1, seco`, "=second="},
		{`fun(second = 2, seco`, "="},
		{`fun([1, 2], seco`, "=second="},
		{`fun(1)`, "="},
		{`fun(1).`, "="},
		{`obj.k`, "=keys"},
		{`values.get("in`, "=inner internal internal.nodes"},
		{`values.get("internal.`, "=internal.nodes"},
		{`values.set('o`, "=on"},
		{`values.get("on", "i`, "="},
		{`values.get("on") + values.get("i`, "inner"},
		{`help("k8s.ap`, "=k8s.apply k8s.apply_set"},
		{`print("in`, "="},
		{`# in`, "="},
		{"# in\nk8", "=k8s"},
		{`"""a "quoted" k8`, "="},
		{"def f():\n    retu", "=return"},
		{"1", "="},
		{"ctx.st", "=state"},
		{"ctx.state.", "get set remove"},
		{`print("a" "b", '(', `, "k8s sep="},
		{`x == ke`, "="},
		{"metr", "=metrics"},
	} {
		from, got := c.Complete(tt.text, len(tt.text))
		var texts []string
		for _, one := range got {
			texts = append(texts, one.Text)
			if !strings.HasPrefix(one.Text, tt.text[from:]) {
				t.Errorf("%s: %s does not go on from %q", tt.text, one.Text, tt.text[from:])
			}
		}
		want, all := strings.CutPrefix(tt.want, "=")
		if all && !slices.Equal(texts, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", tt.text, texts, want)
		}
		for word := range strings.FieldsSeq(want) {
			if !slices.Contains(texts, word) {
				t.Errorf("%s: got %q, without %s", tt.text, texts, word)
			}
		}
	}
	for text, doc := range map[string]string{"k8s.appl": "Applies", "fun": "Does it.", `k8s.apply(obj, ow`: "object", `values.get("on`: "bool", "metric": "add"} {
		if _, got := c.Complete(text, len(text)); len(got) == 0 || !strings.Contains(got[0].Doc, doc) {
			t.Errorf("%s: %v, want a doc with %q", text, got, doc)
		}
	}
}

// A cursor may stand anywhere in anything.
func TestCompleteTakesAnyText(t *testing.T) {
	c := &Completer{Table: docs.Documented(), Names: func() []string { return nil }, Lookup: func(string) starlark.Value { return nil }}
	text := "x = k8s.watch(\"v1\", [1, {\"a\": 'b'}], name = \"\"\"c\n\"\"\") # d\n\\\"(((]]]"
	for i := -1; i <= len(text)+1; i++ {
		c.Complete(text, i)
	}
}

func TestCommandsAreCompleted(t *testing.T) {
	f := newFixture(t, Options{Module: "web"})
	f.write("objects/nodes.yaml", "")
	f.write("objects/notes.txt", "")
	if err := os.WriteFile(f.dir+"/x.star", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.eval("values.set(\"a\", {\"b\": 1})\nobj = {\"x\": 1}")
	for text, want := range map[string][]string{
		":r":                             {":reload", ":run", ":runs"},
		":run h":                         {"hooks/each.star:one", "hooks/nodes.star:discover"},
		":run hooks/nodes.star:discover": {"hooks/nodes.star:discover"},
		":run x y":                       nil,
		":load " + f.dir + "/x":          {f.dir + "/x.star"},
		":apply " + f.dir + "/objects/n": {f.dir + "/objects/nodes.yaml"},
		":apply " + f.dir + "/o":         {f.dir + "/objects/", f.dir + "/other/"},
		":load //web/li":                 {"//web/lib/"},
		":delete ConfigM":                {"ConfigMap"},
		":values a":                      {"a", "a.b"},
		":values web a":                  {"a", "a.b"},
		":help k8s.ap":                   {"k8s.apply", "k8s.apply_set"},
		":none x":                        nil,
		"obj.it":                         {"items"},
		"hel":                            {"help"},
	} {
		_, got := f.Completer().Complete(text, len(text))
		var texts []string
		for _, one := range got {
			texts = append(texts, one.Text)
		}
		if !slices.Equal(texts, want) {
			t.Errorf("%s: got %q, want %q", text, texts, want)
		}
	}
}
