package test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Claims of README, --help and pages have tests that bear them out, each feature that README lists among them.
func TestClaimsHaveProofs(t *testing.T) {
	tests := namesOfTests(t)
	var claimed []string // of README
	for line := range strings.Lines(read(t, "test/testdata/claims.txt")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 3 {
			t.Errorf("test/testdata/claims.txt: %q: want a file, words that stand in it and tests, with tabs between them", line)
			continue
		}
		file, words := cells[0], cells[1]
		if !strings.Contains(unwrapped(read(t, file)), words) {
			t.Errorf("test/testdata/claims.txt: %s does not say %q any more; change the claim, and look at its tests", file, words)
		}
		if file == "README.md" {
			claimed = append(claimed, words)
		}
		for _, test := range strings.Split(cells[2], ", ") {
			name, _, _ := strings.Cut(test, "/")
			if script := scriptOf(test); !tests[name] || script != "" && !exists(script) {
				t.Errorf("test/testdata/claims.txt: %q: there is no test %s", words, test)
			}
		}
	}
	_, features, _ := strings.Cut(read(t, "README.md"), "\n## Features, and what is missing\n")
	features, _, _ = strings.Cut(features, "\n## ")
	bullets := strings.Split(features, "\n- ")[1:]
	for _, bullet := range bullets {
		bullet, _, _ = strings.Cut(unwrapped(bullet), ". ")
		if !slices.ContainsFunc(claimed, func(words string) bool { return strings.Contains(bullet, words) }) {
			t.Errorf("test/testdata/claims.txt has no proof of %q in README.md", bullet)
		}
	}
	if len(bullets) < 8 {
		t.Errorf("README.md lists %d features", len(bullets))
	}
}

func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// namesOfTests are the names of all tests in Go.
func namesOfTests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// scriptOf is the file of a test TestScripts/name; "" for others.
func scriptOf(test string) string {
	name, is := strings.CutPrefix(test, "TestScripts/")
	if !is {
		return ""
	}
	return "cmd/starling/testdata/script/" + name + ".txtar"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
