package lsp

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All that may stand at a place is offered, with its documentation, whether the file parses there or not.
func TestCompletion(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	hook := filepath.Join(dir, "web/hooks/count.star")
	c.diagnostics(c.openFile(hook)) // now the tree has been loaded
	for _, e := range []struct {
		marked, label, detail, doc string
		not                        string
	}{
		{marked: "def f(ctx):\n    k8s.‸\n", label: "apply", detail: "(obj", doc: "Phases", not: "k8s"},
		{marked: "def f(ctx):\n    k8s.ap‸\n", label: "apply_set"},
		{marked: "def f(ctx):\n    x = va‸\n", label: "values", doc: "`get`"},
		{marked: "def f(ctx):\n    ctx.‸\n", label: "snapshots", not: "children"},
		{marked: "def f(c):\n    return c.‸key\n\nhook(f, on = [startup()])\n", label: "snapshots"},
		{marked: "def f(ctx):\n    return ctx.request.‸kind\n\nhook(f, on = [k8s.validate(\"v1\", \"Pod\")])\n", label: "operation", detail: "string", not: "body"},
		{marked: "def f(ctx):\n    return ctx.state.‸get\n\nhook(f, on = [startup()])\n", label: "set", detail: "(key"},
		{marked: "def f(ctx):\n    for e in ctx.events:\n        print(e.‸type)\n\nhook(f, on = [k8s.watch(\"v1\", \"Pod\")])\n", label: "result", detail: "any"},
		{marked: strings.Replace(counting, `"nodes"]`, `"‸"]`, 1), label: "nodes", detail: "v1 Node"},
		{marked: strings.Replace(counting, `"internal.ready"`, `"‸"`, 1), label: "replicas", detail: "integer", doc: "How many Pods there are."},
		{marked: strings.Replace(counting, `"internal.ready", len`, `"internal.‸", len`, 1), label: "ready", not: "replicas"},
		{marked: strings.Replace(counting, `"internal.ready", len`, `"global.‸", len`, 1), label: "", not: "replicas"},
		{marked: "load(\"‸\")\n", label: "//lib/names.star"},
		{marked: "load(\"@std//k8s.star\", \"‸\")\n", label: "is_ready", detail: "("},
		{marked: "load(\"//lib/names.star\", \"ready\")\n\ndef f(ctx):\n    only = 1\n    return ‸\n", label: "only", not: "ready2"},
		{marked: "load(\"//lib/names.star\", \"ready\")\n\ndef f(ctx):\n    return re‸\n", label: "ready", doc: "Says whether a Node is ready."},
		{marked: "hook(f, on = [k8s.watch(\"v1\", \"Node\", ‸\n", label: "filter = ", doc: "function"},
		{marked: "hook(f, on = [k8s.watch(\"v1\", \"Node\", filter = None, ‸\n", label: "name = ", not: "filter = "},
		{marked: "# k8s.‸\n", not: "apply"},
		{marked: "x = \"k8s.‸\"\n", not: "apply"},
		{marked: "x = \"\"\"\nk8s.‸", not: "apply"},
	} {
		src, p := at(t, e.marked)
		uri := c.edit(hook, src)
		var got completionList
		c.call("textDocument/completion", place(uri, p), &got)
		i := slices.IndexFunc(got.Items, func(item completionItem) bool { return item.Label == e.label })
		switch {
		case e.label == "":
		case i < 0:
			t.Errorf("%q: %s is not offered among %d", e.marked, e.label, len(got.Items))
		case !strings.Contains(got.Items[i].Detail, e.detail), e.doc != "" && (got.Items[i].Documentation == nil || !strings.Contains(got.Items[i].Documentation.Value, e.doc)):
			t.Errorf("%q: got %+v %+v", e.marked, got.Items[i], got.Items[i].Documentation)
		}
		if slices.ContainsFunc(got.Items, func(item completionItem) bool { return item.Label == e.not }) {
			t.Errorf("%q: %s is offered", e.marked, e.not)
		}
	}
	c.end()
}

func TestSignatureHelp(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	hook := filepath.Join(dir, "web/hooks/count.star")
	c.diagnostics(c.openFile(hook))
	for _, e := range []struct {
		marked, label, active string
	}{
		{"k8s.watch(‸", "k8s.watch(api_version", "api_version"},
		{"k8s.watch(\"v1\", ‸)", "k8s.watch(", "kind"},
		{"k8s.watch(\"v1\", \"a, (b\", filter = lambda o: {\"a\": [1, ‸", "k8s.watch(", "filter=None"},
		{"load(\"//lib/names.star\", \"ready\")\nx = ready(‸)\n", "ready(n)", "n"},
		{"def f(a, b = 1):\n    return a\n\nx = f(1, ‸)\n", "f(a, b=1)", "b=1"},
		{"x = (1, ‸", "", ""},
	} {
		src, p := at(t, e.marked)
		uri := c.edit(hook, src)
		var got *signatureHelp
		c.call("textDocument/signatureHelp", place(uri, p), &got)
		if e.label == "" {
			if got != nil {
				t.Errorf("%q: got %+v", e.marked, got)
			}
			continue
		}
		if got == nil || !strings.HasPrefix(got.Signatures[0].Label, e.label) {
			t.Errorf("%q: got %+v", e.marked, got)
			continue
		}
		sig := got.Signatures[0]
		if got.ActiveParameter >= len(sig.Parameters) {
			t.Errorf("%q: no parameter is active", e.marked)
			continue
		}
		if at := sig.Parameters[got.ActiveParameter].Label; !strings.HasPrefix(sig.Label[at[0]:at[1]], e.active) {
			t.Errorf("%q: %s is active, want %s", e.marked, sig.Label[at[0]:at[1]], e.active)
		}
	}
	c.end()
}

func TestHover(t *testing.T) {
	dir := addons(t)
	c := begin(t, dir)
	hook := filepath.Join(dir, "web/hooks/count.star")
	c.diagnostics(c.openFile(hook))
	for _, e := range []struct{ marked, want string }{
		{strings.Replace(counting, "k8s.watch", "k8s.wa‸tch", 1), "k8s.watch(api_version, kind"},
		{strings.Replace(counting, "k8s.watch", "k8s.wa‸tch", 1), `hook(count, on = [k8s.watch("v1", "Pod"`},
		{strings.Replace(counting, "if ready(", "if re‸ady(", 1), "Says whether a Node is ready."},
		{strings.Replace(counting, "ctx.snapshots", "ctx.snap‸shots", 1), "ctx.snapshots"},
		{strings.Replace(counting, `["nodes"]`, `["no‸des"]`, 1), "of v1 Node"},
		{strings.Replace(counting, `internal.ready`, `internal.re‸ady`, 1), "integer"},
		{strings.Replace(counting, "filter =", "fil‸ter =", 1), "`filter` ("},
		{strings.Replace(counting, "//lib", "//l‸ib", 1), "lib/names.star"},
		{strings.Replace(counting, "len(", "le‸n(", 1), "Starlark itself"},
		{strings.Replace(counting, "def count", "d‸ef count", 1), ""},
		{"# k8s.wat‸ch\n" + counting, ""},
		{"x = k8s.watch(‸k8s", ""},
	} {
		src, p := at(t, e.marked)
		uri := c.edit(hook, src)
		var got *hover
		c.call("textDocument/hover", place(uri, p), &got)
		if got == nil && e.want == "" {
			continue
		}
		if e.want != "" && (got == nil || !strings.Contains(got.Contents.Value, e.want)) {
			t.Errorf("%q: got %+v, want %s", e.marked, got, e.want)
		}
	}
	c.end()
}

// The keys of files of values are those of the schema.
func TestValuesFiles(t *testing.T) {
	dir := write(t, map[string]string{
		"global/openapi/config-values.yaml": "type: object\nproperties:\n  zone: {type: string, description: Where it is.}\n",
		"web/module.star":                   "module()\n",
		"web/openapi/config-values.yaml": "type: object\nproperties:\n  mode: {type: string, enum: [fast, safe]}\n  quiet: {type: boolean}\n" +
			"  hosts:\n    type: array\n    items: {type: object, properties: {name: {type: string}, port: {type: integer}}}\n",
		"web/values.yaml": "mode: fast\n",
		"values.yaml":     "web:\n  mode: safe\n",
	})
	c := begin(t, dir)
	file := filepath.Join(dir, "values.yaml")
	c.diagnostics(c.openFile(file))
	for _, e := range []struct{ file, marked, label, not string }{
		{"values.yaml", "‸", "web", "mode"},
		{"values.yaml", "we‸\n", "webEnabled", ""},
		{"values.yaml", "global:\n  ‸\n", "zone", "mode"},
		{"values.yaml", "web:\n  mode: safe\n  ‸", "quiet", "web"},
		{"values.yaml", "web:\n  mode: ‸", "safe", "true"},
		{"values.yaml", "web:\n  quiet: ‸", "true", "safe"},
		{"values.yaml", "web:\n  hosts:\n    - ‸", "name", "mode"},
		{"values.yaml", "web:\n  hosts:\n  - name: a\n    ‸", "port", "mode"},
		{"values.yaml", "web:\n  hosts:\n  - name: a\n  - po‸", "port", "mode"},
		{"values.yaml", "web:\n  hosts:\n  - name: a\n  qu‸", "quiet", "port"},
		{"values.yaml", "web: # mo‸", "", "mode"},
		{"values.yaml", "web:\n  mode: safe\n\n  # more\n  ‸", "quiet", "mode"},
		{"values.yaml", "web:\n  ‸\n  hosts:\n  - name: a\n  mode: safe\n", "quiet", "mode"},
		{"values.yaml", "global:\n  mode: a\nweb:\n  ‸\nother:\n  quiet: true\n", "mode", ""},
		{"values.yaml", "global:\n  mode: a\nweb:\n  ‸\nother:\n  quiet: true\n", "quiet", ""},
		{"values.yaml", "web:\n  hosts:\n  - name: a\n    ‸\n  - port: 1\n", "port", "name"},
		{"values.yaml", "web:\n  hosts:\n  - name: a\n  - ‸\n    port: 1\n", "name", "port"},
		{"web/values.yaml", "‸", "mode", "web"},
	} {
		src, p := at(t, e.marked)
		uri := c.edit(filepath.Join(dir, e.file), src)
		var got completionList
		c.call("textDocument/completion", place(uri, p), &got)
		has := func(label string) bool {
			return slices.ContainsFunc(got.Items, func(item completionItem) bool { return item.Label == label })
		}
		if e.label != "" && !has(e.label) || e.not != "" && has(e.not) {
			t.Errorf("%s %q: got %+v", e.file, e.marked, got.Items)
		}
	}
	src, p := at(t, "global:\n  zo‸ne: a\n")
	var got *hover
	c.call("textDocument/hover", place(c.edit(file, src), p), &got)
	if got == nil || !strings.Contains(got.Contents.Value, "Where it is.") {
		t.Errorf("got %+v", got)
	}
	uri := c.edit(file, "web:\n  mode: quick\n")
	for {
		if found := c.diagnostics(uri); len(found) > 0 {
			if found[0].Range.Start.Line != 1 || found[0].Code != "values" {
				t.Errorf("got %+v", found)
			}
			break
		}
	}
	c.end()
}
