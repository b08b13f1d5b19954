package testrunner

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/starling-operator/starling/runtime/script"
)

//go:embed coverpage.html
var pageText string

// piece is a part of a line: what has run, what has not, or neither.
type piece struct{ Class, Text string }

type pageLine struct {
	Number int
	Missed bool
	Pieces []piece
}

type pageFile struct {
	Path, Percent, Missed string
	Ran, All              int
	Lines                 []pageLine
}

// WritePage writes one HTML page that needs nothing else: the files with how much of
// them has run, and their text in colours.
func (c *Coverage) WritePage(w io.Writer) error {
	page, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	data := struct {
		Summary string
		Files   []pageFile
	}{Summary: c.Summary()}
	for _, f := range c.Files {
		data.Files = append(data.Files, pageFile{
			Path: f.Path, Percent: percent(f), Missed: ranges(f.Missed()), Ran: f.Ran(), All: len(f.Statements), Lines: pageLines(f),
		})
	}
	return page.Execute(w, data)
}

// pageLines cuts the text of a file where statements begin and end.
func pageLines(f script.Covered) []pageLine {
	var out []pageLine
	next := 0
	for i, text := range strings.Split(strings.TrimSuffix(string(f.Source), "\n"), "\n") {
		line, chars, at := pageLine{Number: i + 1}, []rune(strings.TrimSuffix(text, "\r")), 0
		add := func(class string, to int) {
			if to = min(to, len(chars)); to > at {
				line.Pieces = append(line.Pieces, piece{class, string(chars[at:to])})
				at = to
			}
		}
		for next < len(f.Statements) && f.Statements[next].Line <= i+1 {
			s := f.Statements[next]
			class := "ran"
			if !s.Ran {
				class, line.Missed = "missed", true
			}
			if s.Line == i+1 {
				add("", s.Col-1)
			} else {
				add("", len(chars)-len([]rune(strings.TrimLeft(string(chars), " \t"))))
			}
			if s.EndLine > i+1 { // it goes on
				add(class, len(chars))
				break
			}
			next++
			if next < len(f.Statements) && f.Statements[next].Line == i+1 {
				add(class, s.EndCol-1)
			} else {
				add(class, len(chars)) // with the colon or the comment that ends the line
			}
		}
		add("", len(chars))
		out = append(out, line)
	}
	return out
}
