package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// levels is a section whose list holds 10^n values.
func levels(key string, n int) string {
	text := key + ":\n  l0: &" + key + "0 x\n"
	for i := range n {
		text += fmt.Sprintf("  l%d: &%s%d [%s]\n", i+1, key, i+1, strings.Repeat(fmt.Sprintf("*%s%d,", key, i), 10))
	}
	return text
}

// A section of values.yaml that takes too much of what all modules share is an error of its module.
func TestASectionIsTooLarge(t *testing.T) {
	const rest = "apiEnabled: true\napi:\n  a: 1\n"
	much := func(key string, n int) string {
		return key + ":\n  a: &" + key + " " + strings.Repeat("x", 1<<20) + "\n  b: [" + strings.Repeat("*"+key+",", n) + "]\n"
	}
	for _, tt := range []struct{ name, text, fails, says string }{
		{"values", levels("web", 7) + rest, "web", "values.yaml:1: section web: values.yaml is too large: with its aliases"},
		{"at the end", rest + levels("web", 7), "web", "values.yaml:4: section web: "},
		{"overflow", levels("web", 60) + rest, "web", ""},
		{"most values are aliases", levels("web", 5) + rest, "web", "excessive aliasing"},
		{"text", much("web", 40) + rest, "web", ""},
		{"each would fit", much("web", 20) + much("db", 15) + rest, "web", ""},
		{"two of them", much("web", 40) + levels("db", 8) + rest, "db web", ""},
		{"endless", "web: &a\n  b: [*a]\n" + rest, "web", "is endless"},
		{"nested", "web: &w " + strings.Repeat("[", 1100) + strings.Repeat("]", 1100) + "\ndb: {a: &b {}, c: *b}\n" + rest, "web", "nested deeper"},
		{"without aliases", "web: [" + strings.Repeat("{},", 110_000) + "]\n" + rest, "web", "more than some 100000 values"},
		{"global", levels("global", 7) + rest, "api db global web", ""},
		{"of no module", levels("none", 7) + rest, "", ""},
		{"a switch", "webEnabled: &w [" + strings.Repeat("{},", 110_000) + "]\n" + rest, "web", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := mapFS("web/module.star", "db/module.star", "api/module.star", "global/hooks/a.star")
			files["values.yaml"] = &fstest.MapFile{Data: []byte(tt.text)}
			tr, err := Read(files, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var failed []string
			for _, m := range append(slices.Clone(tr.Modules), tr.Global) {
				if m.Err != nil {
					failed = append(failed, m.Name)
					if !strings.Contains(m.Err.Error(), tt.says) || len(m.Err.Error()) > 500 {
						t.Errorf("%s: %v", m.Name, m.Err)
					}
				}
			}
			slices.Sort(failed)
			if got := strings.Join(failed, " "); got != tt.fails {
				t.Errorf("these fail: %s", got)
			}
			if api, _ := tr.Values["api"].(map[string]any); api["a"] != int64(1) || tr.Values["apiEnabled"] != true {
				t.Errorf("others have %v", tr.Values)
			}
			if _, there := tr.Values["web"]; there && strings.Contains(tt.fails, "web") && tt.name != "global" && tt.name != "a switch" {
				t.Error("what is too large is there")
			}
			if tt.name == "of no module" && !strings.Contains(fmt.Sprint(tr.Problems), `"none" belongs to no module, and is too large`) {
				t.Errorf("%v", tr.Problems)
			}
		})
	}
}
