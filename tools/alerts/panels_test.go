package alerts

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// dashboard is what Grafana reads of dashboard.json, as far as it is checked.
type dashboard struct {
	Templating struct {
		List []struct{ Name string }
	}
	Panels []struct {
		ID          int
		Type, Title string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ RefID, Expr, LegendFormat string }
	}
}

var (
	legend = regexp.MustCompile(`\{\{(\w+)\}\}`)
	// variables are put in as Grafana does: all modules, and the time between two scrapes four times.
	variables = strings.NewReplacer("$__rate_interval", "1m", "$module", ".*")
)

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "../../deploy/prometheus/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// panels returns the queries of dashboard.json.
func panels(t *testing.T) (out []query) {
	t.Helper()
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			out = append(out, query{name: p.Title + " " + target.RefID, expr: variables.Replace(target.Expr), names: namesIn(legend, target.LegendFormat)})
		}
	}
	if len(out) < 30 {
		t.Fatalf("found %d queries", len(out))
	}
	return out
}

// Prometheus takes the query of each panel, with metrics and labels that there are, and each metric
// of Starling is shown, but for what says which version runs, and how many failures are allowed.
func TestPanels(t *testing.T) {
	known, all := families(t), ""
	for _, q := range panels(t) {
		q.check(t, known)
		if strings.Contains(q.expr, "$") {
			t.Errorf("%s: a variable is left in %s", q.name, q.expr)
		}
		all += q.expr + "\n"
	}
	for _, row := range family.FindAllStringSubmatch(read(t, "../../docs/monitoring.md"), -1) {
		switch name := row[1]; {
		case name == "starling_build_info", name == "starling_hook_allowed_failures_total":
		case !regexp.MustCompile(name + `(_bucket|_sum)?\b`).MatchString(all):
			t.Errorf("no panel shows %s", name)
		}
	}
}

// Each panel has one id and one place, and asks the source that people choose.
func TestPanelsHavePlaces(t *testing.T) {
	d := readDashboard(t)
	if len(d.Templating.List) != 2 || d.Templating.List[0].Name != "datasource" || d.Templating.List[1].Name != "module" {
		t.Errorf("the variables are %+v", d.Templating.List)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && p.Datasource.UID != "${datasource}" {
			t.Errorf("%s asks %q", p.Title, p.Datasource.UID)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s ends at column %d of 24", p.Title, p.GridPos.X+p.GridPos.W)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
