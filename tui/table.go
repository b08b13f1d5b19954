package tui

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

const (
	// widestName is how wide a column of names may be on a wide screen; on others a third of it.
	widestName = 40
	// leastWhy is the least width of the column with reasons: those before it go when there is less.
	leastWhy = 14
	between  = 2
)

// column is one of the table.
type column struct {
	head string
	cell func(status.Module) string
	// keep is which columns go first on a narrow screen: those with the least.
	keep  int
	width int
}

// top is the row at the top of the table, so that the chosen one is on the screen.
func (m Model) top(rows []status.Module) int {
	n := max(1, m.body()-1) // without its head
	at := m.at(rows)
	return max(0, min(max(m.first, at-n+1), at, len(rows)-1))
}

// table draws the head and the rows that the screen has room for.
func (m Model) table() (lines []string) {
	rows := m.modules()
	if len(rows) == 0 {
		if m.filter != "" {
			return []string{m.fit("no module matches; esc shows all")}
		}
		return []string{m.fit("no modules")}
	}
	first := m.top(rows)
	shown := rows[first:min(len(rows), first+max(1, m.body()-1))]
	columns := m.columns(shown)
	lines = append(lines, m.mark(bold, m.row(columns, func(c column) string { return c.head })))
	chosen := rows[m.at(rows)].Name
	for _, row := range shown {
		line := m.row(columns, func(c column) string { return orDash(c.cell(row)) })
		if row.Name == chosen {
			line = m.mark(turned, ">"+pad(line[1:], m.width-1))
		} else if m.o.Color {
			line = m.row(columns, func(c column) string { return orDash(c.cell(row)) }, "STATE")
		}
		lines = append(lines, line)
	}
	return lines
}

// row draws one row: a place for the mark of the chosen one, then the cells, those of some columns in color.
func (m Model) row(columns []column, cell func(column) string, colored ...string) string {
	var b strings.Builder
	b.WriteString(" ")
	for _, c := range columns {
		text := ansi.Truncate(message.Clean(cell(c)), c.width, "…")
		gap := strings.Repeat(" ", c.width-ansi.StringWidth(text)+between)
		if slices.Contains(colored, c.head) {
			text = status.Colored(text)
		}
		b.WriteString(text + gap)
	}
	return ansi.Truncate(strings.TrimRight(b.String(), " "), m.width, "…")
}

// pad makes a text as wide as a column.
func pad(text string, width int) string {
	text = ansi.Truncate(text, width, "…")
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// columns are those that the screen has room for.
func (m Model) columns(rows []status.Module) []column {
	queues, runs := m.queues(), m.lastRuns()
	all := []column{
		{head: "MODULE", keep: 4, cell: func(r status.Module) string { return r.Name }},
		{head: "STATE", keep: 4, cell: func(r status.Module) string { return string(r.State) }},
		{head: "QUEUE", keep: 2, cell: func(r status.Module) string { return queues[r.Name] }},
		{head: "LAST RUN", keep: 1, cell: func(r status.Module) string { return runs[r.Name] }},
		{head: "DRIFT", keep: 3, cell: func(r status.Module) string { return r.Drift() }},
		{head: "WHY", keep: 4, cell: m.why},
	}
	last := len(all) - 1
	for i := range all[:last] {
		c := &all[i]
		c.width = ansi.StringWidth(c.head)
		for _, r := range rows {
			c.width = max(c.width, ansi.StringWidth(message.Clean(c.cell(r))))
		}
		c.width = min(c.width, max(8, m.width/3), widestName)
	}
	for {
		left, least := m.width-1, 0
		for i, c := range all[:last] {
			left -= c.width + between
			if all[i].keep < all[least].keep {
				least = i
			}
		}
		if left >= leastWhy || all[least].keep == all[0].keep {
			all[last].width = max(1, left)
			return all
		}
		all = append(all[:least:least], all[least+1:]...)
		last--
	}
}
