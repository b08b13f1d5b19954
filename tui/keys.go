package tui

import (
	"context"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/starling-operator/starling/runtime/message"
)

// help is what ? shows. Keys are those of k9s.
const help = `j k ↓ ↑           a line down or up
Ctrl-F Ctrl-B     a page, also PgDn PgUp
g G               the first line, the last
Ctrl-L            draw the screen anew
/                 show matching lines alone:
                  all words must be there
enter d           why a module is as it is
l                 the log of a module
r                 run the hooks of a module
p                 plan: what the tree changes
← →               move a page that is wide
esc q             back; q ends at the table
Ctrl-C            end
`

// key handles one key.
func (m Model) key(k tea.KeyMsg) (tea.Model, tea.Cmd) {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return m.close(), tea.Quit
	case name == "ctrl+l":
		return m, tea.ClearScreen
	case m.typing:
		return m.typed(name, k.Key().Text), nil
	case m.asks != "":
		module := m.asks
		m.asks = ""
		if name == "y" {
			m.notice = module + ": asks for a run"
			return m, m.run(module)
		}
		m.notice = module + ": nothing was run"
		return m, nil
	}
	m.notice = ""
	if m.page != nil {
		return m.keyOfPage(name)
	}
	return m.keyOfTable(name)
}

func (m Model) keyOfTable(name string) (tea.Model, tea.Cmd) {
	rows := m.modules()
	if by, moves := m.moves(name, len(rows)); moves {
		if len(rows) > 0 {
			m.chosen = rows[max(0, min(m.at(rows)+by, len(rows)-1))].Name
			m.first = m.top(rows)
		}
		return m, nil
	}
	switch name {
	case "q":
		return m, tea.Quit
	case "esc":
		m.filter = ""
		return m, nil
	}
	if len(rows) > 0 {
		m.chosen = rows[m.at(rows)].Name
		return m.keyOfModule(name, m.chosen)
	}
	return m.keyOfModule(name, "")
}

// keyOfModule handles a key that is for the table and for pages, about a module or about none.
func (m Model) keyOfModule(name, module string) (tea.Model, tea.Cmd) {
	source := m.o.Source
	switch name {
	case "/":
		m.typing = true
		return m, nil
	case "?":
		return m.openHelp()
	case "p":
		return m.open(planned, "", source.Plan)
	}
	if module == "" {
		return m.unknown(name), nil
	}
	switch name {
	case "enter", "d":
		return m.open(why, module, func(ctx context.Context) (string, error) { return source.Describe(ctx, module) })
	case "l":
		return m.open(logged, module, func(ctx context.Context) (string, error) { return source.Logs(ctx, module) })
	case "r":
		m.asks = module
		return m, nil
	}
	return m.unknown(name), nil
}

// unknown says of a key that it does nothing.
func (m Model) unknown(name string) Model {
	m.notice = message.Cut(name, 20) + " does nothing here; ? lists the keys"
	return m
}

func (m Model) keyOfPage(name string) (tea.Model, tea.Cmd) {
	p := m.page
	if by, moves := m.moves(name, len(p.shown())); moves {
		m.page = p.scroll(by, m.body())
		return m, nil
	}
	next := *p
	switch name {
	case "q", "esc":
		if p.filter != "" && name == "esc" {
			next.filter = ""
			m.page = &next
			return m, nil
		}
		if p.kind == helped && p.below != nil {
			m.page = p.below
			return m, nil
		}
		return m.close(), nil
	case "left", "right":
		if next.left = min(p.left+step, p.widest(m.width)); name == "left" {
			next.left = max(0, p.left-step)
		}
		m.page = &next
		return m, nil
	}
	return m.keyOfModule(name, p.module)
}

// step is by how many columns a wide page moves.
const step = 20

// openHelp shows the keys over a page, which stays as it is below.
func (m Model) openHelp() (tea.Model, tea.Cmd) {
	if m.page == nil || m.page.kind != helped {
		m.page = &page{kind: helped, lines: linesOf(help), below: m.page}
	}
	return m, nil
}

// moves says by how many lines a key moves, of so many.
func (m Model) moves(name string, lines int) (by int, is bool) {
	switch name {
	case "j", "down":
		return 1, true
	case "k", "up":
		return -1, true
	case "ctrl+f", "pgdown", "space":
		return m.body(), true
	case "ctrl+b", "pgup":
		return -m.body(), true
	case "g", "home":
		return -lines, true
	case "G", "end":
		return lines, true
	}
	return 0, false
}

// maxFilter bounds a filter, in bytes.
const maxFilter = 200

// typed handles a key while a filter is typed.
func (m Model) typed(name, text string) Model {
	filter := m.filtered()
	switch name {
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m = m.filters("")
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(filter)
		m = m.filters(filter[:len(filter)-size])
	case "ctrl+u":
		m = m.filters("")
	default:
		m = m.types(text)
	}
	return m
}

// types adds a text to the filter.
func (m Model) types(text string) Model {
	return m.filters(message.Cut(m.filtered()+message.Clean(text), maxFilter))
}

// filtered is the filter of what is shown.
func (m Model) filtered() string {
	if m.page != nil {
		return m.page.filter
	}
	return m.filter
}

// filters sets it.
func (m Model) filters(filter string) Model {
	filter = strings.TrimLeft(filter, " ")
	if m.page == nil {
		m.filter, m.first = filter, 0
		return m
	}
	next := *m.page
	next.filter, next.top = filter, 0
	m.page = &next
	return m
}
