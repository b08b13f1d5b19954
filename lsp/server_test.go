package lsp

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/starling-operator/starling/lsp/text"
)

const counting = `load("//lib/names.star", "ready")

def count(ctx):
    values.set("internal.ready", len([n for n in ctx.snapshots["nodes"] if ready(n)]))

hook(count, on = [k8s.watch("v1", "Node", name = "nodes", filter = lambda o: {"name": o.metadata.name})])
`

func addons(t testing.TB) string {
	return write(t, map[string]string{
		"lib/names.star":                 "def ready(n):\n    \"\"\"Says whether a Node is ready.\"\"\"\n    return n[\"name\"] != \"\"\n",
		"web/module.star":                "module(enabled = True)\n",
		"web/hooks/count.star":           counting,
		"web/openapi/config-values.yaml": "type: object\nproperties:\n  replicas:\n    type: integer\n    default: 1\n    description: How many Pods there are.\n",
		"web/openapi/values.yaml":        "x-extend: {schema: config-values.yaml}\ntype: object\nproperties:\n  internal:\n    type: object\n    default: {}\n    properties:\n      ready: {type: integer}\n",
		"web/values.yaml":                "replicas: 2\n",
	})
}

// While a file is written, the server tells what starling check would: at once what keeps the file from being loaded,
// then all else; and it is gone once it is put right.
func TestDiagnosticsFollowTheBuffer(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/hooks/count.star")
	uri := c.openFile(path)
	if found := c.diagnostics(uri); len(found) > 0 {
		t.Fatalf("got %+v", found)
	}
	for _, step := range []struct {
		old, new  string
		want      string // the message, the code and the marked text
		elsewhere bool
	}{
		{"len([n for", "len([n fro", `got identifier, want ']' load`, false},
		{"values.set", "vlues.set", "undefined: vlues\ndid you mean values? load vlues.set", false},
		{"internal.ready", "internal.raedy", `values "internal.raedy"`, false},
		{`["nodes"]`, `["node"]`, `the hook has no snapshot "node"` + "\ndid you mean \"nodes\"? names \"node\"", false},
	} {
		src := strings.Replace(counting, step.old, step.new, 1)
		c.edit(path, src)
		found := c.diagnostics(uri)
		if len(found) == 0 {
			t.Errorf("%s: nothing was found", step.new)
			continue
		}
		got := found[0].Message + " " + found[0].Code + " " + textIn(t, src, found[0].Range)
		matches := got == step.want
		if code, marked, ok := strings.Cut(step.want, " "); ok && !matches {
			matches = found[0].Code == code && strings.HasSuffix(got, marked)
		}
		if !matches && !strings.HasPrefix(got, strings.TrimSuffix(step.want, " load")) {
			t.Errorf("%s: got %q, want %q", step.new, got, step.want)
		}
	}
	c.edit(path, counting)
	for found := c.diagnostics(uri); len(found) > 0; {
		found = c.diagnostics(uri)
	}
	c.end()
}

// A mistake in a library shows in the hooks that load it, and goes with it; files that nobody has open are told of, too.
func TestDiagnosticsOfOtherFiles(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	lib := filepath.Join(dir, "lib/names.star")
	uri := c.edit(lib, "def redy(n):\n    return n\n")
	other := uriOf(filepath.Join(dir, "web/hooks/count.star"))
	for {
		if p := c.next(); p.URI == other && len(p.Diagnostics) > 0 {
			if !strings.Contains(p.Diagnostics[0].Message, "ready") || p.Version != nil {
				t.Errorf("got %+v", p)
			}
			break
		}
	}
	c.notify("textDocument/didClose", map[string]any{"textDocument": documentID{uri}})
	for {
		if p := c.next(); p.URI == other && len(p.Diagnostics) == 0 {
			break
		}
	}
	c.end()
}

func textIn(t *testing.T, src string, r text.Range) string {
	t.Helper()
	doc := text.New(src)
	from, err1 := doc.Offset(r.Start)
	to, err2 := doc.Offset(r.End)
	if err1 != nil || err2 != nil || from > to {
		t.Fatalf("%+v is no range of %q", r, src)
	}
	return src[from:to]
}

func TestDefinition(t *testing.T) {
	dir := addons(t)
	hook := filepath.Join(dir, "web/hooks/count.star")
	for _, c := range []struct{ marked, file, text string }{
		{strings.Replace(counting, "if ready(", "if re‸ady(", 1), "lib/names.star", "ready"},
		{strings.Replace(counting, `"ready"`, `"rea‸dy"`, 1), "lib/names.star", "ready"},
		{strings.Replace(counting, "//lib", "//l‸ib", 1), "lib/names.star", ""},
		{strings.Replace(counting, "hook(count", "hook(co‸unt", 1), "web/hooks/count.star", "count"},
		{strings.Replace(counting, "len([n for", "len([‸n for", 1), "web/hooks/count.star", "n"},
		{"load(\"@std//k8s.star\", r = \"is_ready\")\nx = r‸\n", "k8s.star", "is_ready"},
	} {
		client := begin(t, dir)
		src, p := at(t, c.marked)
		uri := client.edit(hook, src)
		client.diagnostics(uri)
		var got *location
		client.call("textDocument/definition", place(uri, p), &got)
		if got == nil || !strings.HasSuffix(got.URI, c.file) {
			t.Errorf("%q: got %+v, want %s", c.marked, got, c.file)
			continue
		}
		path, err := pathOf(got.URI)
		if err != nil {
			t.Fatal(err)
		}
		there := client.open[uriOf(path)]
		if there == nil {
			client.openFile(path)
			there = client.open[uriOf(path)]
		}
		if text := textIn(t, there.String(), got.Range); text != c.text {
			t.Errorf("%q: leads to %q, want %q", c.marked, text, c.text)
		}
		client.end()
	}
}

func TestRename(t *testing.T) {
	dir := addons(t)
	hook, lib := filepath.Join(dir, "web/hooks/count.star"), filepath.Join(dir, "lib/names.star")
	for _, c := range []struct{ marked, to, hook, lib, refused string }{
		{
			marked: strings.Replace(counting, "if ready(", "if re‸ady(", 1), to: "is_up",
			hook: strings.ReplaceAll(strings.ReplaceAll(counting, `"ready"`, `"is_up"`), "ready(n)", "is_up(n)"), lib: "def is_up(n):",
		},
		{marked: strings.Replace(counting, "def count", "def ‸count", 1), to: "tally", refused: `write hook(count, name = "hooks/count.star:count", …) first`},
		{marked: "def count(ctx):\n    pass\n\n[hook(f, on = [startup()]) for f in [count‸]]\n", to: "tally", refused: "keeps its name"},
		{
			marked: "def count(ctx):\n    pass\n\nhook(count‸, name = \"hooks/count.star:count\", on = [startup()])\n", to: "tally",
			hook: "def tally(ctx):\n    pass\n\nhook(tally, name = \"hooks/count.star:count\", on = [startup()])\n",
		},
		{
			marked: "def f(a, b = 1):\n    return a‸ + b\n\nx = f(a = 1, b = 2)\ny = [f(b = 3, a = 4), a(a = 5)]\n", to: "c",
			hook: "def f(c, b = 1):\n    return c + b\n\nx = f(c = 1, b = 2)\ny = [f(b = 3, c = 4), a(a = 5)]\n",
		},
		{marked: "def f(x):\r\n    return \"😀\" + str(x‸) + x\r\n", to: "y", hook: "def f(y):\r\n    return \"😀\" + str(y) + y\r\n"},
		{marked: "def f(x):\n    return \"😀\" + str(x‸)\n", to: "len", refused: "is a builtin"},
		{marked: "def f(x):\n    return str(x‸)\n", to: "str", refused: "is a builtin"},
		{marked: "def f(x):\n    return str(x‸)\n", to: "while", refused: "word of the language"},
		{marked: "def f(x):\n    return str(x‸)\n", to: "f", refused: "has a meaning"},
		{
			marked: "load(\"//lib/names.star\", r = \"ready\")\nx = r‸\n", to: "up",
			hook: "load(\"//lib/names.star\", up = \"ready\")\nx = up\n",
		},
		{
			marked: "load(\"@std//k8s.star\", \"is_ready\")\nx = is‸_ready\n", to: "up",
			hook: "load(\"@std//k8s.star\", up = \"is_ready\")\nx = up\n",
		},
		{marked: strings.Replace(counting, "def count", "def ‸help():\n    return 1\n\ndef count", 1), to: "ready", refused: "has a meaning"},
		{marked: strings.Replace(counting, "def count", "def ‸help():\n    return 1\n\ndef count", 1), to: "values", refused: "is a builtin"},
		{marked: strings.Replace(counting, "def count", "def ‸help():\n    return 1\n\ndef count", 1), to: "for", refused: "word of the language"},
		{marked: strings.Replace(counting, "def count", "def ‸help():\n    return 1\n\ndef count", 1), to: "a b", refused: "is no name"},
		{marked: strings.Replace(counting, "if ready(", "if re‸ady(", 1), to: "_up", refused: "begins with _"},
		{marked: strings.Replace(counting, "values.set", "va‸lues.set", 1), to: "x", refused: "no name"},
		{marked: "def f():\n    return ‸(\n", to: "x", refused: "mistake"},
	} {
		client := begin(t, dir)
		src, p := at(t, c.marked)
		uri := client.edit(hook, src)
		client.diagnostics(uri)
		var got workspaceEdit
		err := client.try("textDocument/rename", map[string]any{"textDocument": documentID{uri}, "position": p, "newName": c.to}, &got)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q to %s: got %v, want %s", c.marked, c.to, err, c.refused)
			}
			client.end()
			continue
		}
		if err != nil {
			t.Errorf("%q to %s: %v", c.marked, c.to, err)
			continue
		}
		if now := applied(t, text.New(src), got.Changes[uri]); now != c.hook {
			t.Errorf("%q to %s: got %s", c.marked, c.to, now)
		}
		edits := got.Changes[uriOf(lib)]
		if (c.lib == "") != (len(edits) == 0) {
			t.Errorf("%q to %s: edits of the library: %v", c.marked, c.to, edits)
		} else if c.lib != "" {
			client.openFile(lib)
			if now := applied(t, client.open[uriOf(lib)], edits); !strings.Contains(now, c.lib) {
				t.Errorf("got %s", now)
			}
		}
		client.end()
	}
}

// applied makes edits, the last one first, as they do not overlap.
func applied(t *testing.T, doc *text.Text, edits []text.Edit) string {
	t.Helper()
	src, last := doc.String(), len(doc.String())
	for i := len(edits) - 1; i >= 0; i-- {
		from, err1 := doc.Offset(edits[i].Range.Start)
		to, err2 := doc.Offset(edits[i].Range.End)
		if err1 != nil || err2 != nil || to > last {
			t.Fatalf("edits overlap or are nowhere: %v", edits)
		}
		src, last = src[:from]+edits[i].NewText+src[to:], from
	}
	return src
}

func TestFormatting(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/hooks/count.star")
	src := strings.Replace(counting, "name = \"nodes\"", "name=\"nodes\"", 1)
	uri := c.edit(path, src)
	var edits []text.Edit
	params := map[string]any{"textDocument": documentID{uri}, "options": map[string]any{"tabSize": 4}}
	c.call("textDocument/formatting", params, &edits)
	if got := applied(t, text.New(src), edits); got != counting {
		t.Errorf("got %s", got)
	}
	other := map[string]any{"textDocument": documentID{c.openFile(filepath.Join(dir, "web/values.yaml"))}}
	if c.call("textDocument/formatting", other, &edits); len(edits) > 0 { // editors ask for each file that is saved
		t.Errorf("of a file of values: %v", edits)
	}
	c.edit(path, "def f(:\n")
	c.call("textDocument/formatting", params, &edits)
	if len(edits) > 0 {
		t.Errorf("what does not parse cannot be formatted, got %v", edits)
	}
	params["textDocument"] = documentID{c.edit(filepath.Join(dir, "web/values.yaml"), "a:   1\n")}
	c.call("textDocument/formatting", params, &edits)
	if len(edits) > 0 {
		t.Errorf("YAML is not formatted, got %v", edits)
	}
	c.end()
}

// Editors ask whoever offers to format a document, so the server offers it for .star files alone where an editor lets it.
func TestFormattingIsOfferedForStarFiles(t *testing.T) {
	for _, selects := range []bool{true, false} {
		c := start(t)
		var p initializeParams
		p.Capabilities.TextDocument.Formatting.DynamicRegistration = selects
		var result initializeResult
		c.call("initialize", p, &result)
		if result.Capabilities.DocumentFormattingProvider == selects {
			t.Errorf("%t: got %+v", selects, result.Capabilities)
		}
		c.notify("initialized", map[string]any{})
		if selects {
			var registered []registration
			select {
			case registered = <-c.registered:
			case <-time.After(time.Minute):
			}
			if got := fmt.Sprint(registered); got != "[{format textDocument/formatting map[documentSelector:[map[pattern:**/*.star]]]}]" {
				t.Errorf("got %s", got)
			}
		}
		c.end()
	}
}

// Requests come in any order only after initialize and before shutdown, and what nobody knows is an error.
func TestOrderOfRequests(t *testing.T) {
	c := start(t)
	if err := c.try("textDocument/hover", map[string]any{}, nil); codeOf(err) != codeNotInitialized {
		t.Errorf("before initialize: got %v", err)
	}
	c.call("initialize", map[string]any{"capabilities": map[string]any{}}, nil)
	for _, step := range []struct {
		method string
		params any
		code   int64
	}{
		{"initialize", map[string]any{}, jsonrpc2.CodeInvalidRequest},
		{"nothing/known", nil, jsonrpc2.CodeMethodNotFound},
		{"textDocument/hover", []int{1}, jsonrpc2.CodeInvalidParams},
		{"textDocument/hover", nil, jsonrpc2.CodeInvalidParams},
		{"textDocument/hover", place("file:///not/open.star", text.Position{}), jsonrpc2.CodeInvalidParams},
		{"textDocument/hover", place("https://example.com/", text.Position{}), jsonrpc2.CodeInvalidParams},
		{"textDocument/hover", map[string]any{"textDocument": 1, "position": map[string]any{"line": -1}}, jsonrpc2.CodeInvalidParams},
		{"textDocument/rename", map[string]any{"position": map[string]any{"line": 1e99}}, jsonrpc2.CodeInvalidParams},
	} {
		if err := c.try(step.method, step.params, nil); codeOf(err) != step.code {
			t.Errorf("%s %v: got %v, want %d", step.method, step.params, err, step.code)
		}
	}
	c.call("shutdown", nil, nil)
	if err := c.try("textDocument/hover", nil, nil); codeOf(err) != jsonrpc2.CodeInvalidRequest {
		t.Errorf("after shutdown: got %v", err)
	}
	c.notify("exit", nil)
	if err := <-c.served; err != nil {
		t.Error(err)
	}
}

// An edit at a place that is not there makes the text unknown until it comes as a whole.
func TestLostDocument(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	path := filepath.Join(dir, "web/hooks/count.star")
	uri := c.openFile(path)
	c.versions[uri]++
	c.change(uri, contentChange{Range: &text.Range{Start: text.Position{Line: 1 << 31}, End: text.Position{Line: 1 << 31}}, Text: "x"})
	if err := c.try("textDocument/documentSymbol", map[string]any{"textDocument": documentID{uri}}, nil); err == nil || !strings.Contains(err.Error(), "not known any more") {
		t.Errorf("got %v", err)
	}
	if log := <-c.logs; !strings.Contains(log, "until it comes as a whole") {
		t.Errorf("got %s", log)
	}
	c.edit(path, counting)
	c.change(uri, contentChange{Range: &text.Range{}, Text: strings.Repeat("#", MaxMessage)})
	if err := c.try("textDocument/documentSymbol", map[string]any{"textDocument": documentID{uri}}, nil); err == nil || !strings.Contains(err.Error(), "not known any more") {
		t.Errorf("after an edit that was not read: %v", err)
	}
	c.edit(path, counting)
	c.versions[uri]++
	c.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uri, "version": c.versions[uri]}, "contentChanges": []any{
		map[string]any{"text": "x", "range": map[string]any{"start": map[string]int{"line": 0, "character": -1}, "end": map[string]int{"line": 0}}},
	}})
	if err := c.try("textDocument/documentSymbol", map[string]any{"textDocument": documentID{uri}}, nil); err == nil || !strings.Contains(err.Error(), "not known any more") {
		t.Errorf("after an edit that does not fit: %v", err)
	}
	c.edit(path, counting)
	var symbols []documentSymbol
	c.call("textDocument/documentSymbol", map[string]any{"textDocument": documentID{uri}}, &symbols)
	if fmt.Sprint(len(symbols)) != "1" || symbols[0].Name != "count" {
		t.Errorf("got %+v", symbols)
	}
	c.end()
}

// A file has several URIs: what was shown under one that is not in use any more goes. A file of another machine has no
// path here.
func TestURIsOfAFile(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	uri := c.edit(filepath.Join(dir, "web/hooks/count.star"), misspelt)
	if found := c.diagnostics(uri); len(found) == 0 {
		t.Fatal("no mistake")
	}
	other := strings.Replace(uri, "count.star", "%63ount.star", 1)
	c.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": other, "version": 7, "text": misspelt}})
	for p := c.next(); p.URI != uri || len(p.Diagnostics) > 0; p = c.next() {
	}
	c.end()
	if path, err := pathOf("file://elsewhere/tmp/a.star"); err == nil {
		t.Errorf("it is %s", path)
	}
}
