package pages

import (
	"path"
	"regexp"
)

const (
	WithoutCluster = "TestCommandsOfPagesRun" // in cmd/starling
	BesideStarling = "TestCommandsBesideAStarling"
	Pods           = "TestPageOnACluster"
	Operations     = "TestPageOperations"
	ByHelm         = "TestPageByHelm"
	Dev            = "TestPageDev"
	Examples       = "TestReadmesOfExamples"
)

// table says who runs the commands of a page that match an expression. The first row that fits counts.
var table = []struct {
	pages string // as path.Match takes it; "" stands for all
	lines string // "" stands for all
	runBy string // a test, or a reason
}{
	{"examples/quickstart/README.md", `^make run`, Examples},
	{"", `^make `, "its target is there, says TestCommandsInDocsExist; .ci/run runs those that need neither hours nor npm"},
	{"", `^docker `, "it needs Docker: TestImageExample reads the same Dockerfile"},
	{"docs/benchmarks.md", ``, "it takes up to an hour; TestQuick runs the same at small sizes"},
	{"docs/editors.md", `^code `, "it needs VS Code: tried by hand"},
	{"docs/migrate.md", `^STARLING_OLD_TREES=`, "it needs trees of others: TestMigrations has its own"},
	{"CONTRIBUTING.md", `^go test`, "a test of the project"},
	{"", `^go build `, "make build does the same"},
	{"docs/charts.md", `^starling fetch`, "it needs registries: TestChartsWithALogin has some"},

	{"docs/on-a-cluster.md", ``, Pods},
	{"docs/install.md", `^(helm|kubectl (create|label) namespace|starling rbac addons -n starling-system --live -o values)`, ByHelm},
	{"docs/install.md", `^(kubectl|starling (check|rbac))`, Operations},
	{"docs/monitoring.md", `^(kubectl|go tool pprof)|--context`, Operations},
	{"docs/replicas.md", `^(kubectl|while)|--context`, Operations},
	{"docs/upgrade.md", `^(kubectl|starling detach)`, Operations},
	{"docs/modules.md", `^kubectl`, Operations},
	{"docs/charts.md", `^kubectl`, Operations},
	{"docs/from-addon-operator.md", `^kubectl`, Operations},
	{"docs/from-flux.md", `^kubectl`, Operations},
	{"docs/commands.md", `--context production`, Operations},
	{"docs/replay.md", `^starling (get|replay) .*--context production|^kubectl|--key-file`, Operations},
	{"docs/dev.md", ``, Dev},
	{"docs/commands.md", `--dev`, Dev},
	{"examples/*/README.md", ``, Examples},
	{"docs/reload.md", ``, Examples},
	{"README.md", `kubectl create namespace|starling run`, Examples},
	{"CONTRIBUTING.md", `^(kubectl|bin/)`, Examples},

	{"", `--live|--context|--from-run`, BesideStarling},
	{"", `^(bin/)?starling (check|docs|fmt|new|render|repl|test)\b`, WithoutCluster},
	{"", `^(bin/)?starling (plan .*--offline|explain .*--modules)|\| starling repl$`, WithoutCluster},
	{"", `^((bin/|kubectl )?starling|ln) `, BesideStarling},
}

func runBy(page, command string) string {
	for _, row := range table {
		inPage, err := path.Match(row.pages, page)
		if (row.pages == "" || inPage && err == nil) && regexp.MustCompile(row.lines).MatchString(command) {
			return row.runBy
		}
	}
	return ""
}
