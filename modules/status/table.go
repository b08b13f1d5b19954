package status

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// PrintTable writes rows of cells, of which the first is the head, as the other tables
// are: the cells of column state may have colors.
func PrintTable(w io.Writer, rows [][]string, state int, o Options) error {
	for _, row := range rows {
		for i := range row {
			row[i] = line(row[i])
		}
	}
	return table(rows).write(w, state, o)
}

// Widths are those of the columns of a table that goes on: rows that come stand below those that
// are there, without another head.
type Widths struct{ columns []int }

// table is rows of cells, the first row is the head.
type table [][]string

// write prints the table; the cells of column state may have colors. An empty
// cell shows as "-", an empty last one as nothing.
func (t table) write(w io.Writer, state int, o Options) error {
	if len(o.Events) > 0 && len(o.Events) == len(t)-1 {
		for r, event := range append([]string{"EVENT"}, o.Events...) {
			t[r] = append([]string{event}, t[r]...)
		}
		if state >= 0 {
			state++
		}
	}
	goesOn := o.Widths
	if goesOn == nil {
		goesOn = &Widths{}
	}
	hasHead := !o.NoHead && len(goesOn.columns) == 0
	if len(goesOn.columns) == 0 {
		goesOn.columns = make([]int, len(t[0]))
	}
	widths := goesOn.columns
	for r, row := range t {
		for i, cell := range row {
			if r > 0 || hasHead {
				widths[i] = max(widths[i], utf8.RuneCountInString(cell))
			}
		}
	}
	var b strings.Builder
	for r, row := range t {
		if r == 0 && !hasHead {
			continue
		}
		for i, cell := range row {
			last := i == len(row)-1
			if cell == "" && !last {
				cell = "-"
			}
			pad := ""
			if !last && (i < len(row)-2 || row[i+1] != "") {
				pad = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3)
			}
			if o.Color && r > 0 && i == state {
				cell = color(cell)
			}
			b.WriteString(cell + pad)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Colored is a state as tables mark it.
func Colored(state string) string { return color(line(state)) }

// color marks a state: green is well, red is not, yellow will change.
func color(state string) string {
	const green, yellow, red, grey = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[90m"
	mark := yellow
	switch {
	case slices.Contains([]string{string(ModuleReady), string(HookOK)}, state):
		mark = green
	case slices.Contains([]string{string(ModuleFailed), string(ModuleBroken)}, state):
		mark = red
	case slices.Contains([]string{string(ModuleOff), string(ModulePaused)}, state):
		mark = grey
	}
	return mark + state + "\x1b[0m"
}
