// Package alerts holds the test of deploy/prometheus. It is a Go module apart, so that the versions
// that Prometheus asks for are neither those of the product nor those of the other tools.
package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

var (
	rule   = regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: (.+)\n`)
	family = regexp.MustCompile("(?m)^\\| `(starling_[a-z_]+)` \\| (\\w+) \\| ([^|]*)\\|")
	used   = regexp.MustCompile(`\$labels\.(\w+)`)
)

// Prometheus takes each rule, and the metrics that it asks for, with their labels, are those of
// docs/operations.md, which a test holds to the code.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{}
	for _, row := range family.FindAllStringSubmatch(string(page), -1) {
		labels[row[1]] = row[3]
	}
	rules := rule.FindAllStringSubmatchIndex(string(text), -1)
	if len(rules) < 12 || len(rules) != strings.Count(string(text), "expr:") {
		t.Fatalf("found %d rules", len(rules))
	}
	for i, at := range rules {
		name, expr, end := string(text[at[2]:at[3]]), string(text[at[4]:at[5]]), len(text)
		if i+1 < len(rules) {
			end = rules[i+1][0]
		}
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		known := ""
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if v, ok := n.(*parser.VectorSelector); ok {
				of, there := labels[v.Name]
				if !there {
					t.Errorf("%s: there is no metric %s", name, v.Name)
				}
				known += of
				for _, m := range v.LabelMatchers {
					if m.Name != "__name__" && !strings.Contains(of, "`"+m.Name+"`") {
						t.Errorf("%s: %s has no label %s", name, v.Name, m.Name)
					}
				}
			}
			return nil
		})
		for _, label := range used.FindAllStringSubmatch(string(text[at[0]:end]), -1) {
			if !strings.Contains(known, "`"+label[1]+"`") {
				t.Errorf("%s: its series have no label %s", name, label[1])
			}
		}
	}
	var names []string
	for _, at := range rules {
		names = append(names, string(text[at[2]:at[3]]))
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(rules) {
		t.Errorf("two rules have one name: %v", names)
	}
}
