package tui

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/starling-operator/starling/runtime/message"
)

// kind is what a page shows.
type kind string

const (
	why     kind = "why"
	logged  kind = "log"
	planned kind = "plan"
	helped  kind = "keys"
)

// page is a text over the table.
type page struct {
	kind   kind
	module string
	number int
	// ask asks for the text; nil: it stays.
	ask    func(context.Context) (string, error)
	ctx    context.Context
	cancel context.CancelFunc

	asking bool
	at     time.Time // of the last answer
	lines  []string
	failed string // why there is no answer
	filter string

	// below is what the keys were asked for over, or nil.
	below *page

	top, left int
	end       bool // the last line stays on the screen as lines come
}

// open puts a page over the table.
func (m Model) open(k kind, module string, ask func(context.Context) (string, error)) (tea.Model, tea.Cmd) {
	m = m.close()
	m.number++
	p := &page{kind: k, module: module, number: m.number, ask: ask, asking: true, end: k == logged}
	p.ctx, p.cancel = context.WithCancel(m.o.Context)
	m.page = p
	return m, p.question()
}

// close goes back to the table; a question that is under way ends.
func (m Model) close() Model {
	for p := m.page; p != nil; p = p.below {
		if p.cancel != nil {
			p.cancel()
		}
	}
	m.page = nil
	return m
}

// question asks for the text.
func (p *page) question() tea.Cmd {
	number, ask, ctx := p.number, p.ask, p.ctx
	return func() tea.Msg {
		text, err := ask(ctx)
		return answered{number, text, err, time.Now()}
	}
}

// answer takes in the answer to the page's question; those for pages before it count no more.
func (p *page) answer(a answered) *page {
	if p == nil {
		return nil
	}
	next := *p
	if p.number != a.number {
		next.below = p.below.answer(a)
		return &next
	}
	next.asking, next.at = false, a.at
	if a.err != nil {
		next.failed = a.err.Error()
		return &next
	}
	next.failed, next.lines = "", linesOf(a.text)
	return &next
}

// linesOf cuts a text into lines that cannot steer a terminal.
func linesOf(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(message.Clean(strings.ReplaceAll(line, "\t", "    ")), " ")
	}
	return lines
}

// shown are the lines that the filter lets through.
func (p *page) shown() (lines []string) {
	if p.filter == "" {
		return p.lines
	}
	for _, line := range p.lines {
		if matches(p.filter, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// widest is by how much the widest line is wider than the screen.
func (p *page) widest(width int) (more int) {
	for _, line := range p.shown() {
		more = max(more, ansi.StringWidth(line)-width)
	}
	return more
}

// scroll moves the page by lines, and stays on it.
func (p *page) scroll(by, height int) *page {
	next := *p
	last := max(0, len(p.shown())-height)
	next.top = max(0, min(next.first(height)+by, last))
	next.end = p.kind == logged && next.top == last
	return &next
}

// first is the line at the top of a screen of that height.
func (p *page) first(height int) int {
	last := max(0, len(p.shown())-height)
	if p.end {
		return last
	}
	return min(p.top, last)
}
