package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/starling-operator/starling/modules/status"
)

// source answers at once.
type source struct {
	seen     Seen
	err      error // of all questions
	describe string
	logs     string
	plan     string
	ran      []string
	planning context.Context
}

func (s *source) Look(context.Context) (Seen, error) { return s.seen, s.err }
func (s *source) Describe(_ context.Context, module string) (string, error) {
	return module + "\n" + s.describe, s.err
}
func (s *source) Logs(context.Context, string) (string, error) { return s.logs, s.err }
func (s *source) Plan(ctx context.Context) (string, error) {
	s.planning = ctx
	return s.plan, s.err
}
func (s *source) Run(_ context.Context, module string) ([]string, error) {
	s.ran = append(s.ran, module)
	return []string{module + "/hooks/a.star:f"}, s.err
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// instance is one with a module of each sort.
func instance() Seen {
	ran := noon.Add(-12 * time.Second)
	next := noon.Add(5 * time.Second)
	return Seen{
		Status: status.Status{
			Instance: "ops/starling", Leader: true,
			Modules: []status.Module{
				{Name: "db", State: status.ModuleReady, Drifted: []status.Drifted{{Object: "Deployment db/db"}}},
				{Name: "off", State: status.ModuleOff, Reason: "offEnabled: false in ConfigMap ops/starling"},
				{Name: "web", State: status.ModuleFailed, Reason: "hook hooks/a.star:f: boom", NextTry: &next},
			},
			Hooks: []status.Hook{
				{ID: "global/hooks/g.star:g", Module: "global", State: status.HookOK},
				{ID: "web/hooks/a.star:f", Module: "web", State: status.HookFailed, LastRun: &ran, LastError: "boom"},
			},
		},
		Queues: []status.Queue{{Module: "web", Queue: "main", Length: 2, Running: []string{"web/hooks/a.star:f"}}, {Module: "db", Queue: "main", Length: 1}},
	}
}

// screen is a model and what it has asked for.
type screen struct {
	*testing.T
	m Model
}

func open(t *testing.T, s *source, width, height int) *screen {
	x := &screen{t, New(Options{Source: s, First: s.seen, Now: noon})}
	x.take(tea.WindowSizeMsg{Width: width, Height: height})
	return x
}

// take hands a message over, and answers all that is asked for by it.
func (x *screen) take(msg tea.Msg) {
	x.Helper()
	next, cmd := x.m.Update(msg)
	x.m = next.(Model)
	x.answer(cmd)
}

func (x *screen) answer(cmd tea.Cmd) {
	x.Helper()
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case answered:
		msg.at = x.m.now
		x.take(msg)
	case looked:
		msg.at = x.m.now
		x.take(msg)
	case ran:
		x.take(msg)
	case tea.BatchMsg:
		for _, one := range msg[1:] { // the first waits for the next beat
			x.answer(one)
		}
	}
}

// keys presses keys, by their names.
func (x *screen) keys(names ...string) {
	x.Helper()
	for _, name := range names {
		x.take(keyOf(name))
	}
}

// key is one that a terminal tells of.
type key tea.Key

func (k key) Key() tea.Key   { return tea.Key(k) }
func (k key) String() string { return tea.Key(k).String() }

func keyOf(name string) tea.KeyMsg {
	switch name {
	case "enter":
		return key{Code: tea.KeyEnter}
	case "esc":
		return key{Code: tea.KeyEscape}
	case "down":
		return key{Code: tea.KeyDown}
	case "right":
		return key{Code: tea.KeyRight}
	case "left":
		return key{Code: tea.KeyLeft}
	case "backspace":
		return key{Code: tea.KeyBackspace}
	case "pgdown":
		return key{Code: tea.KeyPgDown}
	case "ctrl+c":
		return key{Code: 'c', Mod: tea.ModCtrl}
	}
	return key{Code: rune(name[0]), Text: name}
}

// wants compares the screen, without spaces at the ends of lines; each line fits.
func (x *screen) wants(want string) {
	x.Helper()
	lines := strings.Split(x.m.screen(), "\n")
	if len(lines) != x.m.height {
		x.Errorf("%d lines on a screen of %d", len(lines), x.m.height)
	}
	for i, line := range lines {
		if n := ansi.StringWidth(line); n > x.m.width {
			x.Errorf("line %d has %d columns of %d: %q", i+1, n, x.m.width, line)
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	if got := strings.Join(lines, "\n"); strings.TrimSpace(want) != strings.TrimSpace(got) {
		x.Errorf("the screen shows\n%s\nwant\n%s", got, want)
	}
}

func (x *screen) shows(words string) {
	x.Helper()
	if got := x.m.screen(); !strings.Contains(got, words) {
		x.Errorf("no %q on the screen\n%s", words, got)
	}
}

func TestTheTable(t *testing.T) {
	x := open(t, &source{seen: instance()}, 80, 9)
	x.wants(`
3 modules, 1 failed - starling ops/starling

 MODULE  STATE   QUEUE    LAST RUN    DRIFT      WHY
>global  ready   -        -           -          -
 db      ready   1        -           1 changed  -
 off     off     -        -           -          offEnabled: false in ConfigMap…
 web     failed  runs, 2  12s failed  -          hook hooks/a.star:f: boom; nex…

? keys  enter why  l log  r run  p plan  / filter  q end
`)
	x.take(tea.WindowSizeMsg{Width: 40, Height: 8})
	x.keys("G")
	x.wants(`
3 modules, 1 failed - starling ops/star…

 MODULE  STATE   WHY
 global  ready   -
 db      ready   -
 off     off     offEnabled: false in C…
>web     failed  hook hooks/a.star:f: b…
? keys  enter why  l log  r run  p plan…
`)
	x.take(tea.WindowSizeMsg{Width: 12, Height: 2})
	if n := strings.Count(x.m.screen(), "\n"); n != 1 {
		t.Errorf("a screen of two lines has %d", n+1)
	}
}

// Enter and d show why, l the log, ? the keys; q goes back, and ends at the table.
func TestPages(t *testing.T) {
	s := &source{seen: instance(), describe: "State: failed\n" + strings.Repeat("x", 50) + "end", logs: "1\n2\n3\n4\n5"}
	x := open(t, s, 40, 6)
	x.keys("j", "down", "j", "enter")
	x.wants(`
why of web - starling ops/starling

web
State: failed
xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
esc back  / filter  ←→ move
`)
	x.keys("right")
	x.shows("xxxxxxend")
	x.keys("right", "right", "left") // no further than the end of the widest line
	x.shows("State: failed")
	x.keys("/", "s", "t", "A")
	x.shows("/stA_")
	x.keys("enter")
	x.wants(`
why of web /stA - starling ops/starling

State: failed


esc back  / filter  ←→ move
`)
	x.keys("esc")
	x.shows("xxxx")
	x.keys("q", "l")
	x.wants(`
log of web - starling ops/starling

3
4
5
esc back  / filter  ←→ move  5 of 5
`)
	s.logs += "\n6"
	x.take(beat(noon.Add(time.Minute)))
	x.shows("\n6\nesc")
	x.keys("g")
	s.logs += "\n7"
	x.take(beat(noon.Add(2 * time.Minute)))
	x.shows("\n1\n2\n3\n")
	x.keys("?", "?")
	x.shows("a line down or up")
	s.logs += "\n8"
	x.take(beat(noon.Add(3 * time.Minute)))
	x.keys("esc", "G") // the page below is as it was, and goes on
	x.take(beat(noon.Add(4 * time.Minute)))
	x.shows("\n7\n8\nesc")
	x.keys("q")
	if _, cmd := x.m.Update(keyOf("q")); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not end at the table")
	}
	x.keys("d")
	if next, cmd := x.m.Update(keyOf("ctrl+c")); cmd == nil || cmd() != tea.Quit() || next.(Model).page != nil {
		t.Error("Ctrl-C does not end on a page")
	}
}

// r asks first; the answer, or the refusal, stands at the bottom until the next key.
func TestARunIsAskedForTwice(t *testing.T) {
	s := &source{seen: instance()}
	x := open(t, s, 80, 8)
	x.keys("G", "r")
	x.shows("run the hooks of web now? y/n")
	x.keys("n")
	x.shows("web: nothing was run")
	if len(s.ran) > 0 {
		t.Errorf("%q ran", s.ran)
	}
	x.keys("r", "y")
	x.shows("web: web/hooks/a.star:f will run")
	s.err = errors.New("this starling stands by: starling-1 leads; ask that one")
	x.keys("r", "y")
	x.shows("this starling stands by: starling-1 leads")
	x.keys("enter", "r", "y")
	if len(s.ran) != 3 {
		t.Errorf("%q ran", s.ran)
	}
}

// An answer that comes while the keys are shown is for the page below.
func TestAnAnswerBelowTheKeys(t *testing.T) {
	m := New(Options{Source: &source{plan: "nothing changes"}, First: instance(), Now: noon})
	sized, _ := m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	asking, plan := sized.Update(keyOf("p"))
	over, _ := asking.Update(keyOf("?"))
	told, _ := over.Update(plan())
	if text := told.(Model).screen(); !strings.Contains(text, "a line down or up") {
		t.Errorf("the keys are gone\n%s", text)
	}
	back, _ := told.Update(keyOf("esc"))
	if text := back.(Model).screen(); !strings.Contains(text, "nothing changes") {
		t.Errorf("the plan is lost\n%s", text)
	}
}

// WHY of a module that is ready names its hook that fails, as starling get modules does.
func TestWhyOfAReadyModule(t *testing.T) {
	seen := instance()
	seen.Status.Modules[0].Drifted = nil
	seen.Status.Hooks = append(seen.Status.Hooks, status.Hook{ID: "db/hooks/b.star:g", Module: "db", State: status.HookOK, LastError: "denied"})
	open(t, &source{seen: seen}, 120, 9).shows("db/hooks/b.star:g: denied")
}

// A key that does nothing says so, on the table and on pages.
func TestAKeyThatDoesNothing(t *testing.T) {
	x := open(t, &source{seen: instance()}, 80, 9)
	x.keys(":")
	x.shows(": does nothing here; ? lists the keys")
	x.keys("j", "enter", "y")
	x.shows("y does nothing here")
	x.keys("esc", "p", "l") // a plan is of no module
	x.shows("l does nothing here")
}

// A plan has its signs in color; one that is left ends.
func TestAPlan(t *testing.T) {
	s := &source{seen: instance(), plan: "~ module web\n  + ConfigMap web/a\nnothing"}
	x := open(t, s, 80, 8)
	x.m.o.Color = true
	x.keys("p")
	x.shows("\x1b[33m~ module web\x1b[0m\n\x1b[32m  + ConfigMap web/a\x1b[0m\nnothing\n")
	if s.planning.Err() != nil {
		t.Error("it ends before its page")
	}
	x.take(beat(noon.Add(time.Hour))) // it is not made anew
	planning := s.planning
	x.keys("q")
	if planning.Err() == nil || s.planning != planning {
		t.Error("it goes on without its page")
	}
	s.err = errors.New("a plan needs the module tree; name it")
	x.keys("p")
	x.shows("a plan needs the module tree")
}

// The filter is for names, states and reasons; the choice stays where it was while it may.
func TestTheFilter(t *testing.T) {
	x := open(t, &source{seen: instance()}, 80, 9)
	x.keys("G", "/", "b", "o", "o", "m", "1", "backspace", " ", "W", "e", "b")
	x.shows("/boom Web_")
	x.keys("enter")
	x.wants(`
3 modules, 1 failed /boom Web - starling ops/starling

 MODULE  STATE   QUEUE    LAST RUN    DRIFT  WHY
>web     failed  runs, 2  12s failed  -      hook hooks/a.star:f: boom; next tr…




esc shows all  ? keys  enter why  l log  r run  p plan  / filter  q end
`)
	x.keys("/", "x")
	x.shows("no module matches; esc shows all")
	x.keys("enter", "j", "r", "enter", "esc")
	x.shows(">web")
}

// On a narrow screen a sentence takes more lines, and the table fewer: why nobody answers, why a key is refused, and
// why a page is not there.
func TestSentencesOnANarrowScreen(t *testing.T) {
	s := &source{seen: instance()}
	x := open(t, s, 40, 12)
	s.err = errors.New("this starling stands by: starling-1 leads; ask that one")
	x.take(beat(noon.Add(time.Second)))
	x.keys("G", "r", "y")
	x.wants(`
3 modules, 1 failed - starling ops/star…
not answering since 12:00:01, tries
again: this starling stands by:
starling-1 leads; ask that one
 MODULE  STATE   WHY
 global  ready   -
 db      ready   -
 off     off     offEnabled: false in C…
>web     failed  hook hooks/a.star:f: b…

this starling stands by: starling-1
leads; ask that one
`)
	x.keys("p")
	x.m.failed = ""
	x.wants(`
plan - starling ops/starling

this starling stands by: starling-1
leads; ask that one







esc back  / filter  ←→ move
`)
	s.err = errors.New(strings.Repeat("endless ", 50))
	x.take(beat(noon.Add(2 * time.Second)))
	x.shows("endless endless…\n")
	x.take(tea.WindowSizeMsg{Width: 40, Height: 3}) // no room for more than one line of each
	x.wants(`
plan - starling ops/starling
not answering since 12:00:02, tries aga…
esc back  / filter  ←→ move
`)
}

// A starling dev is called so; global hooks are never off.
func TestTheScreenNamesASimulatedCluster(t *testing.T) {
	s := &source{seen: instance()}
	s.seen.Status.Simulated = true
	x := open(t, s, 80, 9)
	x.shows("3 modules, 1 failed - starling dev ops/starling\n")
	if title := x.m.View().WindowTitle; title != "starling dev ops/starling" {
		t.Errorf("title %q", title)
	}
	if row, there := Global(s.seen.Status); !there || !row.Enabled {
		t.Errorf("%+v", row)
	}
}

// While nobody answers the last state stays, with the time since when it is old.
func TestNobodyAnswers(t *testing.T) {
	s := &source{seen: instance()}
	x := open(t, s, 80, 9)
	s.err = errors.New("no starling runs here\x1b[2J")
	x.take(beat(noon.Add(time.Second)))
	x.take(beat(noon.Add(time.Minute)))
	x.shows("not answering since 12:00:01, tries again: no starling runs here [2J\n")
	x.shows(" web     failed")
	s.err, s.seen.Status.Modules = nil, s.seen.Status.Modules[:1]
	x.take(beat(noon.Add(2 * time.Minute)))
	if strings.Contains(x.m.screen(), "not answering") {
		t.Error("it answers again")
	}
	x.shows("1 module - ")
}

// One question at a time, however long it takes, and the keys go on meanwhile.
func TestQuestionsDoNotPileUp(t *testing.T) {
	m := New(Options{Source: &source{}, First: instance(), Now: noon})
	synctest.Test(t, func(t *testing.T) { // the beats take a second each
		for i := range 10 {
			next, cmd := m.Update(beat(noon.Add(time.Duration(i) * time.Second)))
			batch, asks := cmd().(tea.BatchMsg)
			if asks != (i == 0) || asks && len(batch) != 2 {
				t.Errorf("beat %d asks %d questions", i, len(batch))
			}
			if next, _ = next.Update(keyOf("j")); next.(Model).chosen == "" {
				t.Error("a key waits")
			}
			m = next.(Model)
		}
	})
	m.width, m.height = 80, 9
	if text := m.screen(); !strings.Contains(text, "asked at 12:00:00, no answer yet; this is how it was") {
		t.Errorf("nobody is told that there is no answer\n%s", text)
	}
	// The answer to a page that was left does not show on the next one.
	next, _ := m.Update(keyOf("enter"))
	old := next.(Model).page.number
	next, _ = next.(Model).close().Update(keyOf("l"))
	next, _ = next.Update(answered{number: old, text: "late"})
	if p := next.(Model).page; !p.asking || p.lines != nil {
		t.Errorf("%+v", p)
	}
}

// Texts from the cluster neither steer the terminal nor take more than their line, in any view.
func TestHostileTexts(t *testing.T) {
	evil := "a\x1b]0;owned\x07\x1b[2J\r\nb\u202ec\u2028d"
	seen := instance()
	seen.Notes = []string{evil, evil}
	seen.Status.Instance = evil
	for i := range seen.Status.Modules {
		seen.Status.Modules[i].Name += evil
		seen.Status.Modules[i].Reason = evil
		seen.Status.Modules[i].State = status.ModuleState(evil)
	}
	s := &source{seen: seen, describe: evil, logs: evil, plan: evil}
	for _, color := range []bool{false, true} {
		x := open(t, s, 60, 10)
		x.m.o.Color = color
		x.keys("G")
		for _, name := range []string{"", "enter", "l", "p", "r", "y", "/"} {
			if name != "" {
				x.keys(name)
			}
			x.take(tea.PasteMsg{Content: evil})
			text := x.m.screen()
			if n := strings.Count(text, "\n") + 1; n != 10 {
				t.Errorf("after %q: %d lines", name, n)
			}
			for _, code := range []string{"0", "1", "7", "31", "32", "33", "90"} {
				text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
			}
			if strings.ContainsAny(text, "\x1b\x07\r\u202e\u2028") || !color && text != x.m.screen() {
				t.Errorf("after %q: %q", name, text)
			}
		}
		if title := x.m.View().WindowTitle; strings.ContainsAny(title, "\x1b\x07") {
			t.Errorf("title %q", title)
		}
	}
}

// A thousand modules: the chosen one is always on the screen, and all can be reached.
func TestAThousandModules(t *testing.T) {
	s := &source{}
	for i := range 1000 {
		s.seen.Status.Modules = append(s.seen.Status.Modules, status.Module{Name: fmt.Sprintf("m%03d", i), State: status.ModuleReady})
	}
	x := open(t, s, 80, 24)
	reached := 0
	for i := range 1000 {
		if !strings.Contains(x.m.screen(), fmt.Sprintf("\n>m%03d ", i)) {
			t.Fatalf("module %d is not on the screen\n%s", i, x.m.screen())
		}
		reached++
		x.keys("j")
	}
	x.keys("g", "pgdown", "k")
	x.shows(">m020")
	x.shows("q end  21 of 1000")
	x.keys("G")
	x.shows(">m999")
	// The chosen one goes: the next one is in its place.
	x.keys("/", "m", "5", "enter")
	x.shows(">m599")
	s.seen.Status.Modules = append(s.seen.Status.Modules[:500:500], s.seen.Status.Modules[600:]...)
	x.take(beat(noon))
	x.shows("no module matches")
	x.keys("esc")
	x.shows(">m999")
	if reached != 1000 {
		t.Errorf("%d reached", reached)
	}
}
