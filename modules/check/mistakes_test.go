package check

import (
	"strings"
	"testing"
)

// Mistakes in one file: hooks/a.star of module web, whose module.star is given.
func TestMistakesOfHooks(t *testing.T) {
	run := func(body string) string {
		return "def f(ctx):\n    " + strings.ReplaceAll(body, "\n", "\n    ") + "\n\nhook(f, on = [startup()])\n"
	}
	review := func(body, watch string) string {
		return "def f(ctx):\n    " + body + "\n\nhook(f, on = [k8s.validate(\"v1\", \"Pod\", failure_policy = \"fail\"), k8s.watch(\"v1\", \"Node\", name = \"nodes\", filter = lambda o: o.metadata.name" + watch + ")])\n"
	}
	const get = "print(k8s.get(\"v1\", \"Secret\", \"a\"%s))"
	const schema = "type: object\nproperties: {a: {type: string, default: x}, b: {type: string}}\n"
	for name, tt := range map[string]struct {
		module, hook string
		want         string // "": nothing
	}{
		"a misspelt name":               {"", run("found = []\nfor x in [1]:\n    fuond += [x]\nprint(found)"), "error: local variable fuond referenced before assignment (did you mean found?)"},
		"a misspelt name in a branch":   {"", run("found = 0\nif ctx.events:\n    fuond -= 1\nprint(found)"), "error: local variable fuond referenced before"},
		"a name of the file":            {"", "total = 0\n" + run("total += 1"), "a function does not change names of its file"},
		"a name of the function around": {"", run("found = []\ndef g():\n    found += [1]\ng()\nprint(found)"), "error: local variable found referenced before"},
		"a parameter":                   {"", "def g(a, b = 1, *c, **d):\n    a += 1\n    b += 1\n    c += ()\n    d |= {}\n    return a\n\n" + run("g(1)"), ""},
		"names that have values":        {"", run("a, (b, [c]) = 1, (2, [3])\nfor d in [1]:\n    a += 1\n    b += 1\n    c += 1\n    d += 1\nprint(a, b, c)"), ""},
		"an element":                    {"", run("a = [1]\na[0] += 1\nprint(a)"), ""},
		"a text with a percent sign":    {"", run("x = \"day {}\"\nprint(x.format(\"%Y-%m-%d\"))"), ""},
		"a text of a call":              {"", run("x = str(1) + \"{}\"\nprint(x.format(\"%Y-%m-%d\"))"), ""},
		"a time":                        {"", run("x = time.now()\nprint(x.format(\"%Y-%m-%d\"))"), "error: \"%Y-%m-%d\" is no layout"},
		"something":                     {"", "def g(x):\n    return x.format(\"%Y-%m-%d\")\n\n" + run("g(time.now())"), "warning: \"%Y-%m-%d\" is no layout"},
		"a default of the schema":       {"", run("print(config.get(\"a\"))"), "warning: config.get does not see the default that the schema gives a"},
		"a default of a global value":   {"", run("print(config.get(\"global.zone\"))"), "warning: config.get does not see the default that the schema gives global.zone"},
		"a default in the call":         {"", run("print(config.get(\"a\", \"b\"))"), ""},
		"a value without a default":     {"", run("print(config.get(\"b\"))"), ""},
		"a review with a watch":         {"", review("print(ctx.request.object)", ""), "ctx.request is None (add sync = False, events = [], or ask"},
		"a review with a quiet watch":   {"", review("print(ctx.request.object)", ", sync = False"), "ctx.request is None (add events = [], or"},
		"a review with a first sync":    {"", review("print(ctx.request.object)", ", events = []"), "ctx.request is None (add sync = False, or"},
		"a review that only looks":      {"", review("print(ctx.request.object)", ", events = [], sync = False"), ""},
		"a review that asks":            {"", review("if ctx.request: print(ctx.request.object)", ""), ""},
		"another namespace":             {"namespace = \"web\", grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"])]", run(strings.ReplaceAll(get, "%s", ", namespace = \"x\"")), "error: k8s.get: no grant of module web lets it get v1 Secret in namespace x"},
		"another, without namespace=":   {"grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"])]", run(strings.ReplaceAll(get, "%s", ", namespace = \"x\"")), "warning: k8s.get: no grant of module web lets it get v1 Secret in namespace x, if that is not where Starling runs"},
		"none, without namespace=":      {"", run(strings.ReplaceAll(get, "%s", ", namespace = \"x\"")), "error: k8s.get: no grant of module web lets it get v1 Secret in namespace x"},
		"a grant for another":           {"namespace = \"web\", grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"x\"])]", run(strings.ReplaceAll(get, "%s", "")), "error: k8s.get: no grant of module web lets it get v1 Secret in its own namespace (add to module(grants = […]): grant(\"v1\", \"Secret\", verbs = [\"get\"]))"},
		"its own, by name":              {"namespace = \"web\", grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"x\"])]", run(strings.ReplaceAll(get, "%s", ", namespace = \"web\"")), "error: k8s.get: no grant of module web"},
		"a grant for another, nowhere":  {"grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"x\"])]", run(strings.ReplaceAll(get, "%s", "")), "warning: k8s.get: no grant of module web lets it get v1 Secret in the namespace in which Starling runs"},
		"a grant for its own by name":   {"namespace = \"web\", grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"web\"])]", run(strings.ReplaceAll(get, "%s", "")), ""},
		"a grant for all":               {"grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"*\"])]", run(strings.ReplaceAll(get, "%s", ", namespace = \"x\"")), ""},
		"a namespace that is computed":  {"grants = [grant(\"v1\", \"Secret\", verbs = [\"get\"], namespaces = [\"x\"])]", run("ns = values.get(\"b\")\nprint(k8s.get(\"v1\", \"Secret\", \"a\", namespace = ns))"), ""},
		"a kind in no namespace":        {"namespace = \"web\", grants = [grant(\"v1\", \"Node\", verbs = [\"get\"], namespaces = [\"x\"])]", run("print(k8s.get(\"v1\", \"Node\", \"a\"))"), ""},
		"an object of its own": {"namespace = \"web\", grants = [grant(\"v1\", \"ConfigMap\", verbs = [\"apply\"], namespaces = [\"x\"])]",
			run("k8s.apply({\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}})"), "error: k8s.apply: no grant of module web"},
	} {
		t.Run(name, func(t *testing.T) {
			got := findingsIn(t, Options{}, map[string]string{
				"web/module.star": "module(" + tt.module + ")\n", "web/hooks/a.star": tt.hook, "web/openapi/config-values.yaml": schema,
				"global/openapi/config-values.yaml": "type: object\nproperties: {zone: {type: string, default: north}}\n",
			})
			var about []string
			for _, f := range got {
				severity, f, _ := strings.Cut(f, " ")
				_, f, _ = strings.Cut(f, ": ")
				about = append(about, severity+": "+f)
			}
			text := strings.Join(about, "\n")
			if tt.want == "" && text != "" || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}
