package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/runtime/message"
)

// mostBroken is into how many lines a note, or what is said of a key, is broken at most where the screen is narrow.
const mostBroken = 3

const (
	red, yellow, green = "31", "33", "32"
	bold, turned       = "1", "7"
)

// body is how many lines a page has, or the table with its head.
func (m Model) body() int { return max(1, m.height-1-len(m.notes())-max(1, len(m.said()))) }

// View draws the screen.
func (m Model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = message.Clean(m.who())
	return v
}

// screen is the whole text: as many lines as the terminal has, none of them wider.
func (m Model) screen() string {
	if m.width <= 0 || m.height <= 0 {
		return ""
	}
	lines := append([]string{m.mark(bold, m.title())}, m.notes()...)
	if m.page != nil {
		lines = append(lines, m.pageLines()...)
	} else {
		lines = append(lines, m.table()...)
	}
	below := m.said()
	if below == nil {
		below = []string{m.footer()}
	}
	for len(lines) < m.height-len(below) {
		lines = append(lines, "")
	}
	lines = append(lines[:max(0, m.height-len(below))], below...)
	return strings.Join(lines[max(0, len(lines)-m.height):], "\n")
}

// broken makes lines of a sentence, as few as the screen is wide; where that is too many, the last one is cut.
func (m Model) broken(code, text string) (lines []string) {
	lines = wrapped(text, m.width)
	if most := max(1, min(mostBroken, m.height/4)); len(lines) > most {
		lines = append(lines[:most-1], strings.Join(lines[most-1:], " "))
	}
	for i, line := range lines {
		lines[i] = m.mark(code, line)
	}
	return lines
}

// wrapped breaks a text between words, or within one that is wider than the screen.
func wrapped(text string, width int) []string {
	return strings.Split(ansi.Wrap(message.Clean(text), width, ""), "\n")
}

// fit makes a text one line that is no wider than the screen, and cannot steer the terminal.
func (m Model) fit(text string) string { return ansi.Truncate(message.Clean(text), m.width, "…") }

// mark puts a line into a color of the terminal.
func (m Model) mark(code, text string) string {
	text = m.fit(text)
	if !m.o.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// title says of which instance what is shown.
func (m Model) title() string {
	st := m.seen.Status
	if p := m.page; p != nil {
		of := string(p.kind)
		if p.module != "" {
			of += " of " + p.module
		}
		return of + m.filterSaid(p.filter) + " - " + m.who()
	}
	counts := map[status.ModuleState]int{}
	for _, row := range st.Modules {
		counts[row.State]++
	}
	said := fmt.Sprintf("%d modules", len(st.Modules))
	if len(st.Modules) == 1 {
		said = "1 module"
	}
	for _, state := range []status.ModuleState{status.ModuleFailed, status.ModuleBroken} {
		if n := counts[state]; n > 0 {
			said += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return said + m.filterSaid(m.filter) + " - " + m.who()
}

// who is asked.
func (m Model) who() string {
	if m.seen.Status.Simulated {
		return "starling dev " + m.seen.Status.Instance
	}
	return "starling " + m.seen.Status.Instance
}

func (m Model) filterSaid(filter string) string {
	if filter == "" || m.typing {
		return ""
	}
	return " /" + filter
}

// notes say that nobody answers, or explain what is shown: a line at least.
func (m Model) notes() []string {
	switch {
	case m.failed != "":
		return m.broken(red, fmt.Sprintf("not answering since %s, tries again: %s", m.since.Format(time.TimeOnly), m.failed))
	case m.looking && m.now.Sub(m.asked) >= slow:
		return m.broken(yellow, fmt.Sprintf("asked at %s, no answer yet; this is how it was", m.asked.Format(time.TimeOnly)))
	case m.page != nil && m.page.failed != "" && m.page.lines != nil:
		return m.broken(red, m.page.failed)
	case m.page != nil && m.page.asking && m.page.lines == nil && m.page.failed == "":
		return []string{m.fit("asks …")}
	case len(m.seen.Notes) > 1:
		return m.broken(yellow, fmt.Sprintf("(1 of %d) %s", len(m.seen.Notes), m.seen.Notes[0]))
	case len(m.seen.Notes) == 1:
		return m.broken(yellow, m.seen.Notes[0])
	}
	return []string{""}
}

// said is what is asked, or what has become of the last key; nil: neither.
func (m Model) said() []string {
	switch {
	case m.typing:
		return nil
	case m.asks != "":
		return m.broken(yellow, "run the hooks of "+m.asks+" now? y/n")
	case m.notice != "":
		return m.broken(yellow, m.notice)
	}
	return nil
}

// footer says which keys there are, and where on the whole the screen is.
func (m Model) footer() string {
	switch {
	case m.typing:
		return m.fit("/" + m.filtered() + "_")
	case m.page != nil && m.page.kind == helped:
		return m.fit("esc back")
	case m.page != nil:
		return m.fit("esc back  / filter  ←→ move" + m.where())
	}
	keys := "? keys  enter why  l log  r run  p plan  / filter  q end"
	if m.filter != "" {
		keys = "esc shows all  " + keys
	}
	rows := m.modules()
	if len(rows) < m.body() {
		return m.fit(keys)
	}
	place := fmt.Sprintf("  %d of %d", m.at(rows)+1, len(rows))
	return ansi.Truncate(keys, max(0, m.width-len(place)), "…") + m.fit(place)
}

// where says how far the page is scrolled.
func (m Model) where() string {
	all := len(m.page.shown())
	if all <= m.body() {
		return ""
	}
	return fmt.Sprintf("  %d of %d", min(all, m.page.first(m.body())+m.body()), all)
}

func (m Model) pageLines() (lines []string) {
	p, n := m.page, m.body()
	if p.lines == nil && p.failed != "" {
		for _, line := range wrapped(p.failed, m.width) {
			lines = append(lines, m.mark(red, line))
		}
		return lines[:min(len(lines), n)]
	}
	shown := p.shown()
	first := p.first(n)
	for _, line := range shown[first:min(len(shown), first+n)] {
		line = ansi.TruncateLeft(line, p.left, "")
		if code := signOf(line); code != "" && p.kind == planned {
			line = m.mark(code, line)
		}
		lines = append(lines, ansi.Truncate(line, m.width, "…"))
	}
	return lines
}

// signOf is the color of a line of a plan.
func signOf(line string) string {
	switch sign, _, _ := strings.Cut(strings.TrimSpace(line), " "); sign {
	case "+":
		return green
	case "-", "!":
		return red
	case "~":
		return yellow
	}
	return ""
}

func (m Model) why(row status.Module) string {
	return status.Options{Now: m.now}.Why(status.WithFailing(m.seen.Status.Hooks, []status.Module{row})[0])
}

// queues says how many runs of each module wait, and whether one is under way.
func (m Model) queues() map[string]string {
	waiting, running := map[string]int{}, map[string]int{}
	for _, q := range m.seen.Queues {
		waiting[q.Module] += q.Length
		running[q.Module] += len(q.Running)
	}
	out := map[string]string{}
	for module, n := range waiting {
		switch {
		case running[module] > 0 && n > 0:
			out[module] = fmt.Sprintf("runs, %d", n)
		case running[module] > 0:
			out[module] = "runs"
		case n > 0:
			out[module] = fmt.Sprint(n)
		}
	}
	return out
}

// lastRuns says of each module how long ago a hook of it has run, and how that has ended.
func (m Model) lastRuns() map[string]string {
	last := map[string]status.Hook{}
	for _, h := range m.seen.Status.Hooks {
		if at := h.LastRun; at != nil && (last[h.Module].LastRun == nil || at.After(*last[h.Module].LastRun)) {
			last[h.Module] = h
		}
	}
	out := map[string]string{}
	for module, h := range last {
		out[module] = status.Options{Now: m.now}.Age(*h.LastRun)
		if h.LastError != "" {
			out[module] += " failed"
		}
	}
	return out
}

// orDash is what an empty cell shows.
func orDash(text string) string { return cmp.Or(text, "-") }
