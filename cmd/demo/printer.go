package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// mark says how a line of the commentary is meant.
type mark int

const (
	good mark = iota // something came about
	note             // something happened, its effect follows
	bad
)

// line is one line of the commentary: what happened, and its particulars.
type line struct {
	mark   mark
	what   string
	detail string
}

// printer writes the commentary in columns; on a terminal with marks and colours.
type printer struct {
	out   *os.File
	marks map[mark]string
	fancy bool
}

func newPrinter(out *os.File) *printer {
	p := &printer{out: out, fancy: term.IsTerminal(int(out.Fd())) && os.Getenv("TERM") != "dumb"}
	switch {
	case p.fancy && os.Getenv("NO_COLOR") == "":
		p.marks = map[mark]string{good: "\x1b[32m✓\x1b[0m", note: "\x1b[36m•\x1b[0m", bad: "\x1b[31m✗\x1b[0m"}
	case p.fancy:
		p.marks = map[mark]string{good: "✓", note: "•", bad: "✗"}
	default:
		p.marks = map[mark]string{good: "ok", note: "--", bad: "!!"}
	}
	return p
}

func (p *printer) line(since time.Duration, l line) {
	fmt.Fprintf(p.out, "  %s %5.1f s  %-20s  %s\n", p.marks[l.mark], since.Seconds(), l.what, l.detail)
}

func (p *printer) title(text string) { fmt.Fprintf(p.out, "\n  %s\n\n", p.bold(text)) }

func (p *printer) text(text string) { fmt.Fprint(p.out, text) }

func (p *printer) blank() { fmt.Fprintln(p.out) }

func (p *printer) bold(text string) string {
	if !p.fancy {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}
