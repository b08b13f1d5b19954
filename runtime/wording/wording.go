// Package wording says in better words what dependencies say, by tables that stand in texts.
//
// A row of a table is a line, PATTERN => MESSAGE (HINT); a line that begins with spaces goes on with the one above. The
// pattern is a regular expression for what is said; $1 is a group of it. A row without a message keeps what is said.
// PATTERN ~ LINE is about a mistake in a line of a file that the second pattern finds; then $1 is a group of that one,
// and its group "at" is where the mistake is. Lines with ## are headings. One with an … stands for the rows below it,
// which give what comes into its place, left and right. In the place of words, @NAME is a function of Go that makes
// them. Lines with # name the versions of dependencies that say these texts; a test compares them with go.mod.
package wording

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
	"unicode/utf8"
)

// Table has rows; the first one that fits counts.
type Table []*Row

// Row is a text of a dependency, with better words for it.
type Row struct {
	// Text is the row as it is written.
	Text string

	match, line   func() *regexp.Regexp // line may be nil
	part          string                // which each match holds: to look for that takes less time than to match
	says          string
	message, hint string
	made          func(groups []string) string // instead; nil: there are words
}

// Read makes a table of a text. Each pattern is compiled when it is needed. functions make words of what a pattern
// finds and of its groups; it may be nil.
func Read(text string, functions map[string]func(groups []string) string) (t Table) {
	const any = "… => …"
	frame := any
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\n    ", " "), "\n") {
		heading, isHeading := strings.CutPrefix(line, "## ")
		switch {
		case isHeading && strings.Contains(heading, "…"):
			frame = heading
		case isHeading:
			frame = any
		case line != "" && line[0] != '#':
			r := newRow(frame, line)
			if name, is := strings.CutPrefix(r.says, "@"); is {
				r.made = functions[name]
			}
			t = append(t, r)
		}
	}
	return t
}

func newRow(frame, text string) *Row {
	left, right, _ := strings.Cut(text+" ", " => ")
	right = strings.TrimSpace(right)
	pattern, says, _ := strings.Cut(frame, " => ")
	pattern, says = strings.Replace(pattern, "…", left, 1), strings.Replace(says, "…", right, 1)
	match, line, inLine := strings.Cut(pattern, " ~ ")
	r := &Row{Text: text, match: compiled(match), part: partOf(match), says: says, message: says}
	if inLine {
		r.line = compiled(line)
	}
	if at := strings.Index(" "+says, " ("); at >= 0 && strings.HasSuffix(says, ")") {
		r.message, r.hint = strings.TrimSpace(says[:at]), says[at+1:len(says)-1]
	}
	return r
}

func compiled(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// partOf is the longest plain text that all matches of a pattern hold.
func partOf(pattern string) (longest string) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	for _, e := range append(tree.Sub, tree) {
		text := string(e.Rune)
		inAll := e == tree || tree.Op == syntax.OpConcat
		if inAll && e.Op == syntax.OpLiteral && e.Flags&syntax.FoldCase == 0 && len(text) > len(longest) {
			longest = text
		}
	}
	return longest
}

// Mistake is what is said, and the line of a file that it is about: "" is none. The mistake begins before column Col,
// counted from 1: a parser sees it where it ends, or later.
type Mistake struct {
	Said, Line string
	Col        int
}

// Better are the words of a row for a mistake.
type Better struct {
	*Row
	// Message is "" where what is said stays.
	Message, Hint string
	// Col is that of the mistake.
	Col int
}

// Find returns the words of the first row that fits.
func (t Table) Find(m Mistake) (Better, bool) {
	for _, r := range t {
		if !strings.Contains(m.Said, r.part) {
			continue
		}
		pattern, text, col := r.match(), m.Said, m.Col
		groups := pattern.FindStringSubmatchIndex(text)
		if groups != nil && r.line != nil {
			pattern, text = r.line(), m.Line
			groups = Before(pattern, m)
		}
		if groups == nil {
			continue
		}
		if r.line != nil {
			col = 1 + utf8.RuneCountInString(text[:begins(pattern, text, groups)])
		}
		say := func(words string) string { return string(pattern.ExpandString(nil, words, text, groups)) }
		return Better{r, say(r.message), say(r.hint), col}, true
	}
	return Better{}, false
}

// Hint returns the hint for what is said, "" when there is none.
func (t Table) Hint(said string) string {
	better, _ := t.Find(Mistake{Said: said})
	return better.Hint
}

// Rewrite puts the words of each row in the place of what its pattern finds, one row after the other.
func (t Table) Rewrite(text string) string {
	for _, r := range t {
		switch {
		case !strings.Contains(text, r.part):
		case r.made == nil:
			text = r.match().ReplaceAllString(text, r.says)
		default:
			text = r.match().ReplaceAllStringFunc(text, func(all string) string {
				return r.made(r.match().FindStringSubmatch(all))
			})
		}
	}
	return text
}

// Before finds the last match in the line of a mistake that begins before its column.
func Before(pattern *regexp.Regexp, m Mistake) (groups []int) {
	for _, found := range pattern.FindAllStringSubmatchIndex(m.Line, -1) {
		if utf8.RuneCountInString(m.Line[:found[0]]) < m.Col {
			groups = found
		}
	}
	return groups
}

// begins is where in the line the mistake is.
func begins(line *regexp.Regexp, text string, groups []int) int {
	if at := line.SubexpIndex("at"); at >= 0 {
		return groups[2*at]
	}
	match := text[groups[0]:]
	return groups[0] + len(match) - len(strings.TrimLeft(match, " \t"))
}
