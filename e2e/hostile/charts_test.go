package hostile

import (
	"fmt"
	"strings"
	"testing"
)

// chart returns an attack by one template of the module's chart.
func chart(name, template string, says ...string) attack {
	return attack{name: name, says: says, files: map[string]string{"templates/a.yaml": template}}
}

// charts are those that ask for all memory or all time there is.
var charts = []attack{
	chart("chart-until", "a: {{ until 1000000000 | len }}", "it takes more than 256 MiB of memory", "a template loops without end"),
	chart("chart-repeat", `a: {{ repeat 2000000000 "xxxx" }}`, "it takes more than 256 MiB of memory"),
	chart("chart-nindent", `a: {{ "x" | nindent 2000000000 }}`, "it takes more than 256 MiB of memory"),
	chart("chart-range", "{{ range 1000000000000 }}{{ end }}", "a template loops without end"),
	chart("chart-tpl", `{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`,
		"a template calls itself without end", "it takes more than 256 MiB of memory", "a template loops without end"),
	chart("chart-from-yaml", `{{ $y := printf "a: &a %s\nb: [%s]" (repeat 100000 "x") (repeat 20000 "*a,") | fromYaml }}a: {{ len $y.b }}`,
		"it takes more than 256 MiB of memory"),
	chart("chart-aliases", `a: &a {{ repeat 100000 "x" }}`+"\nb: [{{ repeat 20000 \"*a,\" }}]", "a document that it renders to is too large: with its aliases"),
}

// Charts that fill the memory at once, and keep it as long as they may, leave the kernel
// nothing to kill: where it kills a container as a group, that would be the process.
func TestFourCharts(t *testing.T) {
	a := newArena(t)
	if a.memory == nil {
		t.Skip("there is no memory cgroup")
	}
	a.start()
	beats := a.beat(a.waitBeat())
	var bombs []attack
	for i := range 4 {
		bombs = append(bombs, chart(fmt.Sprintf("chart-keeps-%d", i), `{{ $x := repeat 120000000 "xx" }}{{ range 1000000000000 }}{{ end }}a: {{ len $x }}`,
			"it takes more than 256 MiB of memory", "a template loops without end"))
	}
	for _, bomb := range bombs {
		a.write(bomb.tree())
	}
	for _, bomb := range bombs {
		a.waitSays(bomb)
	}
	beats.end()
	a.stop()
	if n, err := a.memory.Kills(); err != nil || n > 0 {
		t.Errorf("the kernel has killed %d processes: %v", n, err)
	}
}

// aliases is a text of 500 KB that is 5 GB as soon as it is JSON.
var aliases = "a: &a " + strings.Repeat("x", 400_000) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n"

// yamls are texts that no parser may be given.
var yamls = []attack{
	{name: "yaml-values", files: map[string]string{"values.yaml": aliases}, says: []string{"values.yaml is too large: with its aliases"}},
	{name: "yaml-chart", files: map[string]string{"Chart.yaml": aliases}, says: []string{"Chart.yaml is too large: with its aliases"}},
	{name: "yaml-subchart", files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n", "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
		"charts/sub/values.yaml": aliases}, says: []string{"charts/sub/values.yaml is too large: with its aliases"}},
	{name: "yaml-crds", files: map[string]string{"crds/a.yaml": aliases}, says: []string{"crds/a.yaml: document 1 is too large: with its aliases"}},
	{name: "yaml-schema", files: map[string]string{"openapi/values.yaml": aliases}, says: []string{"openapi/values.yaml: is too large: with its aliases"}},
	{name: "section", config: aliases, says: []string{"is too large: with its aliases"}},
	{name: "defaults", config: "list: [" + strings.Repeat("{},", 50_000) + "]\n", files: map[string]string{"openapi/config-values.yaml": large},
		says: []string{"the schema's defaults would add more than"}},
	{name: "mistakes", config: "list: [" + strings.Repeat("x,", 100_000) + "]\n", files: map[string]string{"openapi/config-values.yaml": "properties: {list: {type: array, items: {type: integer}}}\n"},
		says: []string{"only 99 problems are looked for at once"}},
	{name: "pattern", config: "text: " + strings.Repeat("a", 800_000) + "\n", files: map[string]string{"openapi/config-values.yaml": "properties: {text: {type: string, pattern: '^(([ab]?){1000}|c)*d$'}}\n"},
		says: []string{"there is too much to check"}},
	{name: "schema-fields", files: map[string]string{"openapi/values.yaml": "properties: {a: {allOf: [" + strings.Repeat("{},", 60_000) + "]}}\n"},
		says: []string{"the schema describes more than"}},
	{name: "schema-rules", files: map[string]string{"openapi/values.yaml": "x-kubernetes-validations: [" + strings.Repeat("{rule: 'true'},", 30_000) + "]\n"},
		says: []string{"the schema has more than"}},
}

// large is a schema with a default of 2,000 values for each item of a list.
var large = "properties:\n  list:\n    type: array\n    items:\n      type: object\n      properties:\n        a:\n          type: array\n          items: {type: integer}\n" +
	"          default: [" + strings.Repeat("1,", 2_000) + "]\n"
