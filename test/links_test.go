package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

// Links between pages lead to files that are there, and to headings that they have.
func TestLinksInDocs(t *testing.T) {
	for _, page := range pages(t) {
		for _, link := range links.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(link[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, link[1])
				continue
			}
			if anchor != "" && filepath.Ext(target) == ".md" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s: the link %s: %s has no such heading", page, link[1], target)
			}
		}
	}
}

// docs/README.md finds a page by its task: it names each page as a whole, for make site makes its sidebar of these links.
func TestIndexNamesEachPage(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, page := range glob(t, "docs/*.md") {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not name %s; add the task that it is for", page)
		}
	}
}

// The index of decisions has one line for each record, with its number and its title.
func TestIndexNamesEachDecision(t *testing.T) {
	index := read(t, "docs/decisions/README.md")
	for _, page := range glob(t, "docs/decisions/0*.md") {
		title, _, _ := strings.Cut(strings.TrimPrefix(read(t, page), "# "), "\n")
		number, title, _ := strings.Cut(title, ". ")
		line := "| " + number + " | [" + title + "](" + filepath.Base(page) + ") |"
		if n := strings.Count(index, line); n != 1 {
			t.Errorf("docs/decisions/README.md has %q %d times; it belongs below one theme", line, n)
		}
	}
}

// anchors are the names that a page's headings have in links.
func anchors(text string) (out []string) {
	for _, heading := range headings.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, heading[1]))
	}
	return out
}
