package test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

// bindingsOfOthers are the bindings of shell-operator and addon-operator, as their configs name them.
var bindingsOfOthers = []string{
	"onStartup", "schedule", "kubernetes", "kubernetesValidating", "kubernetesMutating", "kubernetesCustomResourceConversion",
	"beforeHelm", "afterHelm", "beforeDeleteHelm", "afterDeleteHelm", "beforeAll", "afterAll",
}

// docs/hooks.md has hooks in both languages for each binding. Ours work as the page shows them, with the
// grants that it names: the tests of each section are in test/testdata/hooks.
func TestPairsOfThePageRun(t *testing.T) {
	intro, sections := pairsOfThePage(t)
	grants := regexp.MustCompile("`(module|global/module).star` needs\\s+`grants = (\\[[^`]*\\])`")
	shown := map[string]bool{}
	for _, section := range sections {
		heading, _, _ := strings.Cut(section, "\n")
		t.Run(heading, func(t *testing.T) {
			anchor := strings.ToLower(strings.ReplaceAll(heading, " ", "-"))
			if !strings.Contains(intro, "](#"+anchor+")") {
				t.Errorf("no link at the head of the page leads to #%s", anchor)
			}
			theirs, ours := inBash.FindAllStringSubmatch(section, -1), inStarlark.FindAllStringSubmatch(section, -1)
			if len(theirs) == 0 || len(theirs) != len(ours) {
				t.Fatalf("it has %d hooks of shell-operator and %d of Starling", len(theirs), len(ours))
			}
			for _, binding := range strings.Split(heading, " and ") {
				shown[binding] = regexp.MustCompile(`\b` + binding + `"?:`).MatchString(theirs[0][1])
			}
			folder := "web"
			if strings.Contains(heading, "All") {
				folder = "global"
			}
			allowed := "[]"
			if m := grants.FindStringSubmatch(section); m != nil {
				allowed = m[2]
			}
			files := fstest.MapFS{
				"web/templates/config.yaml":      {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {replicas: {{ .Values.replicas | quote }}, zone: {{ .Values.global.zone | quote }}}\n")},
				"web/values.yaml":                {Data: []byte("replicas: 0\n")},
				"values.yaml":                    {Data: []byte("global: {highAvailability: true, zone: \"\"}\nwebEnabled: true\n")},
				"web/module.star":                {Data: []byte(`module(namespace = "web")`)},
				folder + "/hooks/page_test.star": {Data: []byte(read(t, "test/testdata/hooks/"+strings.ReplaceAll(heading, " ", "-")+".star"))},
			}
			if folder == "global" {
				files["global/module.star"] = &fstest.MapFile{Data: []byte(`module(grants = ` + allowed + `)`)}
			} else {
				files["web/module.star"].Data = []byte(`module(namespace = "web", grants = ` + allowed + `)`)
			}
			for i, m := range ours {
				files[folder+"/hooks/page"+strconv.Itoa(i)+".star"] = &fstest.MapFile{Data: []byte(m[1])}
			}
			runTests(t, files)
		})
	}
	for _, binding := range bindingsOfOthers {
		if !shown[binding] {
			t.Errorf("%s has no hook in both languages", binding)
		}
	}
}

var (
	inBash     = regexp.MustCompile("(?ms)^```bash\n(.*?)^```")
	inStarlark = regexp.MustCompile("(?ms)^```python\n(.*?)^```")
)

// pairsOfThePage returns the text of docs/hooks.md before the hooks in both languages, and a section per binding.
func pairsOfThePage(t *testing.T) (intro string, sections []string) {
	t.Helper()
	intro, pairs, found := strings.Cut(read(t, "docs/hooks.md"), "\n## Hooks in both languages\n")
	if !found {
		t.Fatal("docs/hooks.md has no hooks in both languages")
	}
	pairs, _, _ = strings.Cut(pairs, "\n## ")
	return intro, strings.Split(pairs, "\n### ")[1:]
}

// The global hook of docs/from-addon-operator.md that keeps global.discovery.apiVersions.
func TestKindsAreAValue(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/from-addon-operator.md"), "\n### Kinds that are there\n")
	_, hook, _ := strings.Cut(section, "```python\n")
	hook, _, _ = strings.Cut(hook, "```")
	runTests(t, fstest.MapFS{
		"global/hooks/kinds.star":      {Data: []byte(hook)},
		"global/hooks/kinds_test.star": {Data: []byte(read(t, "test/testdata/hooks/kinds.star"))},
		"values.yaml":                  {Data: []byte("webEnabled: true\n")},
		"web/templates/config.yaml":    {Data: []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: chart}, data: {found: "{{ has "example.org/v1/Thing" .Values.global.discovery.apiVersions }}"}}`)},
		"web/module.star":              {Data: []byte(`module(namespace = "web")`)},
	})
}

// runTests runs the tests of a tree in simulated clusters.
func runTests(t *testing.T, files fstest.MapFS) {
	t.Helper()
	read, err := tree.Read(files, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	gen := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
	for _, m := range gen.All() {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
	}
	tests := 0
	err = testrunner.Run(context.Background(), testrunner.Options{Tree: read, Generation: gen, Std: stdlib.FS}, func(f testrunner.File) {
		if f.Err != nil {
			t.Error(f.Err)
		}
		for _, r := range f.Tests {
			tests++
			if r.Err != nil {
				t.Errorf("%s: %v\n%s", r.Name, r.Err, strings.Join(r.Log, "\n"))
			}
		}
	})
	if err != nil || tests == 0 {
		t.Errorf("%d tests, %v", tests, err)
	}
}
