package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
)

// tone is the colour of a table's cell, as the number of an ANSI escape.
type tone int

const (
	plain  tone = 0
	red    tone = 31
	green  tone = 32
	yellow tone = 33
	grey   tone = 90
)

// cell is one field of a table. An empty text is shown as "-".
type cell struct {
	text string
	tone tone
}

// table is rows under a header, in columns as wide as their widest cell.
type table struct {
	header []string
	rows   [][]cell
}

func (t *table) add(row ...cell) {
	for i := range row {
		if row[i].text = plainText(row[i].text); row[i].text == "" {
			row[i].text = "-"
		}
	}
	t.rows = append(t.rows, row)
}

// write writes the table as kubectl does: three blanks between columns, none at
// the end of a line, colours only when asked for.
func (t *table) write(w io.Writer, colours bool) error {
	head := make([]cell, len(t.header))
	for i, name := range t.header {
		head[i].text = name
	}
	all := append([][]cell{head}, t.rows...)
	width := make([]int, len(head))
	for _, row := range all {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, row := range all {
		for i, c := range row {
			text := c.text
			if colours && c.tone != plain {
				text = fmt.Sprintf("\x1b[%dm%s\x1b[0m", c.tone, text)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// short writes a duration as kubectl's AGE column does; below a second in
// milliseconds, and never negative.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return max(d.Round(time.Millisecond), time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
