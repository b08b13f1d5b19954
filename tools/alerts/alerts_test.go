// Package alerts holds the tests of deploy/prometheus. It is a Go module apart, so that the versions
// that Prometheus asks for are neither those of the product nor those of the other tools.
package alerts

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

var (
	alert  = regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: (.+)\n(?: +for: (\w+)\n)?`)
	family = regexp.MustCompile("(?m)^\\| `(starling_[a-z_]+)` \\| (\\w+) \\| ([^|]*)\\|")
	used   = regexp.MustCompile(`\$labels\.(\w+)`)
)

// query is what Prometheus is asked, by the name of the rule or panel.
type query struct {
	name, expr string
	// names are the labels that texts about its series use.
	names []string
	// lasts is for how long it must hold until its alert fires.
	lasts time.Duration
}

// rules returns those of alerts.yaml.
func rules(t *testing.T) (out []query) {
	t.Helper()
	text := read(t, "../../deploy/prometheus/alerts.yaml")
	found := alert.FindAllStringSubmatchIndex(text, -1)
	if len(found) < 12 || len(found) != strings.Count(text, "expr:") {
		t.Fatalf("found %d rules", len(found))
	}
	for i, at := range found {
		end := len(text)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		q := query{name: text[at[2]:at[3]], expr: text[at[4]:at[5]], names: namesIn(used, text[at[0]:end])}
		if at[6] >= 0 {
			var err error
			if q.lasts, err = time.ParseDuration(text[at[6]:at[7]]); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, q)
	}
	return out
}

func namesIn(pattern *regexp.Regexp, text string) (out []string) {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}
	return out
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// families are the metrics with the cell of their labels, of docs/monitoring.md, which a test holds
// to the code, and those of the process.
func families(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"process_resident_memory_bytes": "", "process_cpu_seconds_total": ""}
	for _, row := range family.FindAllStringSubmatch(read(t, "../../docs/monitoring.md"), -1) {
		if row[2] != "histogram" {
			out[row[1]] = row[3]
			continue
		}
		out[row[1]+"_bucket"], out[row[1]+"_sum"], out[row[1]+"_count"] = row[3]+"`le`", row[3], row[3]
	}
	return out
}

// check has Prometheus read a query: the metrics that it asks for, with their labels, are there, and
// so are the labels that texts about it use.
func (q query) check(t *testing.T, families map[string]string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(q.expr)
	if err != nil {
		t.Errorf("%s: %v", q.name, err)
		return
	}
	known := ""
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		v, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		of, there := families[v.Name]
		if !there {
			t.Errorf("%s: there is no metric %s", q.name, v.Name)
		}
		known += of
		for _, m := range v.LabelMatchers {
			if m.Name != "__name__" && !strings.Contains(of, "`"+m.Name+"`") {
				t.Errorf("%s: %s has no label %s", q.name, v.Name, m.Name)
			}
		}
		return nil
	})
	for _, name := range q.names {
		if !strings.Contains(known, "`"+name+"`") && name != "instance" { // which each scrape adds
			t.Errorf("%s: its series have no label %s", q.name, name)
		}
	}
}

// Prometheus takes each rule, and each has one name.
func TestAlerts(t *testing.T) {
	all, known := rules(t), families(t)
	var names []string
	for _, q := range all {
		q.check(t, known)
		names = append(names, q.name)
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(all) {
		t.Errorf("two rules have one name: %v", names)
	}
}
