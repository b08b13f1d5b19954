// Package tui is the screen of `starling tui`: the modules of an instance as they are now, and for one of them why it
// is so, its log, and what a plan would change. It asks a [Source] beside the keys, so none of them waits for an
// answer. The package does no I/O: a terminal and the time come as messages.
package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/starling-operator/starling/modules/status"
)

// Source is what the screen shows. Its methods may be called side by side, and end with their context.
type Source interface {
	// Look says how all modules are.
	Look(ctx context.Context) (Seen, error)
	// Describe says all that is known of a module, Logs the end of its log.
	Describe(ctx context.Context, module string) (string, error)
	Logs(ctx context.Context, module string) (string, error)
	// Plan says what the module tree would change in the cluster.
	Plan(ctx context.Context) (string, error)
	// Run has the hooks of a module run, and returns their ids.
	Run(ctx context.Context, module string) ([]string, error)
}

// Seen is one answer of an instance.
type Seen struct {
	Status status.Status
	Queues []status.Queue
	// Notes explain what the table does not show.
	Notes []string
}

// Options say what a screen shows.
type Options struct {
	// Source must not be nil.
	Source Source
	// First is what was seen before the screen began, Now when that was.
	First Seen
	Now   time.Time
	// Context ends all questions; nil: they end by themselves.
	Context context.Context
	// Color marks states with colors, and the chosen line by turning its colors around.
	Color bool
}

const (
	// every is how often the instance is asked.
	every = time.Second
	// again is how long a page stays as it is before it is asked for anew.
	again = 2 * time.Second
	// slow is after how long people are told that there is no answer yet.
	slow = 3 * time.Second
)

// Model is the state of the screen; [Model.Update] returns the next one.
type Model struct {
	o             Options
	width, height int
	now           time.Time

	seen    Seen
	looking bool      // a question is under way
	asked   time.Time // when it was asked
	failed  string    // why the last one had no answer, or ""
	since   time.Time // since when there is none

	chosen string // the module of the chosen line
	first  int    // the line of the table at the top of the screen
	filter string // of the table
	typing bool   // a filter is typed
	// asks is the module whose hooks run if the answer is yes, or "".
	asks   string
	notice string // of the last key

	page   *page // over the table; nil: none
	number int   // of questions for pages
}

// New returns a screen without a size: nothing is shown before the terminal says it.
func New(o Options) Model {
	if o.Context == nil {
		o.Context = context.Background()
	}
	return Model{o: o, seen: o.First, now: o.Now}
}

// Messages beside those of the terminal.
type (
	// beat comes once a second.
	beat time.Time
	// looked ends a question how all modules are.
	looked struct {
		seen Seen
		err  error
		at   time.Time
	}
	// answered ends a question for a page, by its number.
	answered struct {
		number int
		text   string
		err    error
		at     time.Time
	}
	// ran ends a question for a run.
	ran struct {
		module string
		hooks  []string
		err    error
	}
)

// Init begins the beats.
func (m Model) Init() tea.Cmd { return wait() }

func wait() tea.Cmd { return tea.Tick(every, func(t time.Time) tea.Msg { return beat(t) }) }

// Update takes one message, and says what to ask.
func (m Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case beat:
		return m.beats(time.Time(msg))
	case looked:
		m.looking = false
		if msg.err != nil {
			if m.failed == "" {
				m.since = msg.at
			}
			m.failed = msg.err.Error()
			break
		}
		m.seen, m.failed, m.now = msg.seen, "", msg.at
	case answered:
		m.page = m.page.answer(msg)
	case ran:
		m.notice = told(msg)
	case tea.KeyMsg: // no terminal is asked to tell when a key is let go
		return m.key(msg)
	case tea.PasteMsg:
		if m.typing {
			m = m.types(msg.Content)
		}
	}
	return m, nil
}

// beats asks what is due.
func (m Model) beats(now time.Time) (tea.Model, tea.Cmd) {
	m.now = now
	cmds := []tea.Cmd{wait()}
	if !m.looking {
		m.looking, m.asked = true, now
		source, ctx := m.o.Source, m.o.Context
		cmds = append(cmds, func() tea.Msg {
			seen, err := source.Look(ctx)
			return looked{seen, err, time.Now()}
		})
	}
	if p := m.page; p != nil && p.ask != nil && p.kind != planned && !p.asking && m.failed == "" && now.Sub(p.at) >= again {
		next := *p
		next.asking = true
		m.page = &next
		cmds = append(cmds, next.question())
	}
	return m, tea.Batch(cmds...)
}

// run asks for a run of the hooks of a module.
func (m Model) run(module string) tea.Cmd {
	source, ctx := m.o.Source, m.o.Context
	return func() tea.Msg {
		hooks, err := source.Run(ctx, module)
		return ran{module, hooks, err}
	}
}

// told says what has become of a run that was asked for.
func told(msg ran) string {
	switch {
	case msg.err != nil:
		return msg.err.Error()
	case len(msg.hooks) == 0:
		return msg.module + ": no hook runs by itself; its release is looked at"
	case len(msg.hooks) == 1:
		return msg.module + ": " + msg.hooks[0] + " will run"
	}
	return msg.module + ": " + strings.Join(msg.hooks, ", ") + " will run"
}

// global stands for the global hooks in the table.
const global = "global"

// modules are the rows of the table: those that the filter lets through.
func (m Model) modules() (rows []status.Module) {
	all := m.seen.Status.Modules
	if row, there := Global(m.seen.Status); there {
		all = append([]status.Module{row}, all...)
	}
	for _, row := range all {
		if m.filter == "" || matches(m.filter, row.Name, string(row.State), m.why(row)) {
			rows = append(rows, row)
		}
	}
	return rows
}

// Global is a row for the global hooks, which are no module of the status.
func Global(st status.Status) (row status.Module, there bool) {
	row = status.Module{Name: global, State: status.ModuleReady, Enabled: true} // nothing switches them off
	for _, h := range st.Hooks {
		if h.Module != global {
			continue
		}
		there = true
		if h.State == status.HookFailed {
			row.State, row.LastError = status.ModuleFailed, h.LastError
		}
	}
	if there && !st.Leader {
		row.State = status.ModuleWaiting
	}
	return row, there
}

// matches says whether one of the texts has all words of a filter; capitals are small letters.
func matches(filter string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(filter)), func(word string) bool {
		return !strings.Contains(all, word)
	})
}

// at is the place of the chosen module among rows; when it has gone, of the one in its place.
func (m Model) at(rows []status.Module) int {
	i, _ := slices.BinarySearchFunc(rows, m.chosen, func(row status.Module, name string) int {
		return strings.Compare(order(row.Name), order(name))
	})
	return max(0, min(i, len(rows)-1))
}

// order puts the global hooks first.
func order(name string) string {
	if name == global || name == "" {
		return ""
	}
	return name
}
