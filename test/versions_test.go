package test

import (
	"regexp"
	"strings"
	"testing"
)

// The table of versions in upgrade.md names what tests run with.
func TestVersionsInDocs(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "docs/upgrade.md"), "\n## Versions\n")
	table, _, _ := strings.Cut(text, "\n## ")
	for _, c := range []struct{ says, file, module string }{
		{"all tests run on ", "cmd/devcluster/go.mod", "k8s.io/kubernetes v"},
		{"rendered by Helm ", "go.mod", "helm.sh/helm/v3 v"},
		{"compares with Helm ", "tools/helm4/go.mod", "helm.sh/helm/v4 v"},
	} {
		m := regexp.MustCompile(regexp.QuoteMeta(c.module) + `(\d+\.\d+)\.`).FindStringSubmatch(read(t, c.file))
		if m == nil {
			t.Errorf("%s names no %s", c.file, c.module)
		} else if !regexp.MustCompile(regexp.QuoteMeta(c.says+m[1]) + `\D`).MatchString(table) {
			t.Errorf("the table of versions does not say %q", c.says+m[1])
		}
	}
	_, oldest, _ := strings.Cut(read(t, "modules/check/kinds.go"), "that Starling works with: ")
	if oldest, _, _ = strings.Cut(oldest, ".\n"); !strings.Contains(table, oldest+" or newer") {
		t.Errorf("the table of versions does not say %q", oldest+" or newer")
	}
}

// The tables of better words are about what dependencies say in the versions that go.mod has.
func TestWordingsAreOfTheseVersions(t *testing.T) {
	seen := regexp.MustCompile(`(?m)^# Seen with (\S+) (\S+)$`)
	for _, file := range glob(t, "*/*/wording/*.txt") {
		for _, m := range seen.FindAllStringSubmatch(read(t, file), -1) {
			if !regexp.MustCompile(`(?m)^\t?` + regexp.QuoteMeta(m[1]+" "+m[2]) + `\b`).MatchString(read(t, "go.mod")) {
				t.Errorf("%s has words for what %s %s says, go.mod has another version: run the tests beside the table, read what "+
					"has changed in the messages of that module, mend the rows, and write the new version there", file, m[1], m[2])
			}
		}
	}
}
