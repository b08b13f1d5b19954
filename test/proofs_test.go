package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var nameOfTest = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)\\w+)(/\\w+)?`")

// proofs are the promises of docs/proofs.md, by page, and the cells with their tests.
func proofs(t *testing.T) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	page := ""
	for line := range strings.Lines(read(t, "docs/proofs.md")) {
		if name, is := strings.CutPrefix(line, "## "); is {
			page = "docs/" + strings.TrimSpace(name)
			out[page] = map[string]string{}
			continue
		}
		cells := cellsOf(line)
		if page == "" || len(cells) == 0 || cells[0] == "promise" {
			continue
		}
		if len(cells) != 2 {
			t.Errorf("docs/proofs.md: %q: want a promise and its tests", line)
			continue
		}
		out[page][strings.ReplaceAll(cells[0], "]("+filepath.Base(page)+"#", "](#")] = cells[1]
	}
	return out
}

// cellsOf are the cells of a row of a table; nil of other lines.
func cellsOf(line string) (cells []string) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
		return nil
	}
	line = strings.ReplaceAll(line, `\|`, "\x00")
	for _, cell := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|") {
		cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
	}
	return cells
}

// Each promise of docs/proofs.md still stands on its page, and each test is there. No page with promises there
// names tests itself.
func TestProofsAreThere(t *testing.T) {
	tests, n := namesOfTests(t), 0
	for page, promises := range proofs(t) {
		if !exists(page) {
			t.Errorf("docs/proofs.md names %s, which is not there", page)
			continue
		}
		text := read(t, page)
		if at := nameOfTest.FindString(fenced.ReplaceAllStringFunc(text, blank)); at != "" {
			t.Errorf("%s names %s; pages tell users what holds: put the test into docs/proofs.md, beside the words of the page", page, at)
		}
		all := unwrapped(strings.ReplaceAll(text, `\|`, "|"))
		for promise, cell := range promises {
			n++
			if promise == "" {
				t.Errorf("docs/proofs.md: %s: %s prove no promise; put the words of the page before them", page, cell)
			}
			if !strings.Contains(all, strings.TrimRight(promise, ".;:")) {
				t.Errorf("docs/proofs.md: %s does not say %q any more; change it here, too, and look at its tests", page, promise)
			}
			named := nameOfTest.FindAllStringSubmatch(cell, -1)
			if len(named) == 0 {
				t.Errorf("docs/proofs.md: %s: %q has no test", page, promise)
			}
			for _, m := range named {
				if script := scriptOf(m[1] + m[2]); !tests[m[1]] || script != "" && !exists(script) {
					t.Errorf("docs/proofs.md: %s: %q: there is no test %s%s", page, promise, m[1], m[2])
				}
			}
		}
	}
	if n < 500 {
		t.Errorf("docs/proofs.md has %d promises", n)
	}
}

// A table, or a list, most of whose rows have tests in docs/proofs.md has tests for all of them, or says in its last
// column why not.
func TestProofsAreComplete(t *testing.T) {
	for page, promises := range proofs(t) {
		if !exists(page) {
			continue
		}
		for _, rows := range tablesAndLists(read(t, page)) {
			var missing []string
			for _, cells := range rows {
				proven := false
				for _, cell := range cells {
					proven = proven || promises[cell] != ""
				}
				if last := cells[len(cells)-1]; !proven && (len(cells) < 3 || !strings.HasPrefix(last, "not")) {
					missing = append(missing, cells[0])
				}
			}
			if 2*len(missing) < len(rows) {
				for _, row := range missing {
					t.Errorf("%s: %q has no row in docs/proofs.md, as the others beside it have", page, row)
				}
			}
		}
	}
}

// tablesAndLists are the tables of a page, without their heads, and its lists of one column.
func tablesAndLists(text string) (out [][][]string) {
	var rows [][]string
	kind := ""
	end := func() {
		if kind == "table" && len(rows) > 0 {
			rows = rows[1:]
		}
		if len(rows) > 1 {
			out = append(out, rows)
		}
		rows, kind = nil, ""
	}
	for line := range strings.Lines(fenced.ReplaceAllStringFunc(text, blank)) {
		cells := cellsOf(line)
		item, isItem := strings.CutPrefix(line, "- ")
		switch {
		case len(cells) > 0:
			if kind != "table" {
				end()
			}
			kind, rows = "table", append(rows, cells)
		case isItem:
			if kind != "list" {
				end()
			}
			kind, rows = "list", append(rows, []string{strings.TrimSpace(item)})
		case kind == "list" && strings.HasPrefix(line, "  "):
			rows[len(rows)-1][0] += " " + strings.TrimSpace(line)
		case !strings.HasPrefix(line, "|---"):
			end()
		}
	}
	end()
	return out
}
