// Package repl is a session in which somebody tries things out: lines of Starlark, each
// run as a hook in a simulated world, and commands that begin with a colon. It knows no
// terminal: text goes in, text comes out.
package repl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/plan"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/sim"
)

// Options says what session it is. World, Generation and Load are required.
type Options struct {
	// World is where the lines work; no process works in it yet.
	World *sim.World
	// Generation is the module tree, Load reads and compiles it as it is now.
	Generation *generation.Generation
	Load       func(ctx context.Context, number int) (*generation.Generation, error)
	// Module is the one that the lines belong to: they see its values, and its grants
	// bind them. "global" stands for the global hooks. Empty: no grants bind them, and
	// all modules are there, on or off as their values say.
	Module string
	// Live says that the world lies over a real cluster. In another, a module is there
	// alone, whatever it requires.
	Live bool
	// Files finds what :load and :apply name.
	Files Files
	// Name is what errors call the text: "repl" if empty.
	Name string
	// Show takes each line of output as it comes; nil: it is returned once all is done.
	Show func(Line)
	// Script says that the text is a file's: empty lines do not end blocks.
	Script bool
}

// Session is one session. It is not safe for concurrent use.
type Session struct {
	o      Options
	module string // that of the lines; "global" without one
	hook   string // id of the hook that runs them
	gen    *generation.Generation
	world  *sim.World
	begun  *plan.Begun // the world as it was
	scope  *script.Scope
	out    Output

	pending []string // lines of a piece that is not finished
	yaml    []string // lines of :apply -, while heredoc
	heredoc bool

	piece     *script.Piece  // what is to run
	inside    bool           // it runs
	refused   bool           // what it asked for has come to nothing
	called    string         // the hook of :run, while that runs
	calledKey string         // the object that it runs for
	caught    bool           // its ctx is known
	past      starlark.Value // the ctx of the last :run; nil: there was none
	reported  int            // of the world's runs
	revisions map[string]int // of releases, as they were reported
}

// hookName is the id of the session's hook in its module.
const hookName = "repl"

// New begins a session: it starts a process in its world. The text in Output came of
// that.
func New(ctx context.Context, o Options) (*Session, Output, error) {
	o.Name = cmp.Or(o.Name, "repl")
	s := &Session{o: o, world: o.World, module: o.Module, revisions: map[string]int{}, out: Output{show: o.Show}}
	s.module = cmp.Or(s.module, "global")
	s.hook = s.module + "/" + hookName
	var err error
	if s.gen, err = s.prepare(o.Generation); err != nil {
		return nil, Output{}, err
	}
	s.world.Use(s.gen)
	s.scope = s.gen.Host.NewScope(script.ScopeOptions{File: o.Name, Dir: s.dir()})
	s.defineHelp()
	s.offer("ctx", starlark.None) // a line that names it gets that of its run
	s.world.Listen(s.log)
	s.world.Watch(s.ran)
	if s.begun, err = plan.Begin(ctx, s.world); err != nil {
		return nil, Output{}, err
	}
	if err := s.knowReleases(ctx); err != nil {
		return nil, Output{}, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, Output{}, err
	}
	return s, s.take(), nil
}

// knowReleases notes the releases that are there already: they are no news.
func (s *Session) knowReleases(ctx context.Context) error {
	refs, err := s.world.Installed(ctx)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		r, err := s.world.ReleaseOf(ctx, ref)
		if err != nil {
			return err
		}
		if r != nil {
			s.revisions[ref.Module] = r.Revision
		}
	}
	return nil
}

// prepare puts the session's hook into a generation.
func (s *Session) prepare(gen *generation.Generation) (*generation.Generation, error) {
	if m := s.o.Module; m != "" && m != "global" && gen.Modules[m] == nil {
		hint := "; " + message.DidYouMean(m, append([]string{"global"}, gen.Names...), "the tree has "+strings.Join(gen.Names, ", "))
		return nil, fmt.Errorf("there is no module %q%s", m, hint)
	}
	if s.o.Module != "" && !s.o.Live {
		gen = gen.Only(s.o.Module)
	}
	return gen.WithSession(s.module, &builtins.HookDecl{
		ID: hookName, Fn: starlark.NewBuiltin(hookName, s.runPiece), KeepValues: true, Timeout: lineTimeout, Retry: builtins.DefaultRetry,
	}, s.o.Module == ""), nil
}

// lineTimeout is how long a line may take, as a hook may.
const lineTimeout = 30 * time.Second

// dir is the folder of the session's module in the tree.
func (s *Session) dir() string {
	m := s.gen.Modules[s.o.Module]
	if s.o.Module == "global" {
		m = s.gen.Global
	}
	if m == nil || m.Tree == nil {
		return ""
	}
	return m.Tree.Dir
}

// Eval takes the next lines in. More says that the last of them begins something that
// goes on; nothing of it has run then. An error is one of the line that it came to: what
// follows it in text is left out. A line that ctx ends leaves the session as it is.
func (s *Session) Eval(ctx context.Context, text string) (out Output, more bool, err error) {
	for line := range strings.SplitSeq(text, "\n") {
		if err = s.line(ctx, strings.TrimSuffix(line, "\r")); err != nil {
			s.Forget()
			if errors.Is(err, context.Canceled) && !errors.As(err, new(*script.Error)) {
				err = context.Cause(ctx)
			}
			break
		}
	}
	s.forgetRuns()
	return s.take(), len(s.pending) > 0 || s.heredoc, err
}

// End takes in that no more lines follow.
func (s *Session) End(ctx context.Context) (Output, error) {
	var err error
	switch {
	case s.heredoc:
		err = s.endHeredoc(ctx)
	case len(s.pending) > 0:
		err = s.finish(ctx)
	}
	s.Forget()
	return s.take(), err
}

// Forget drops what is pending.
func (s *Session) Forget() { s.pending, s.yaml, s.heredoc = nil, nil, false }

// TakesObjects says that the next line is one of :apply -.
func (s *Session) TakesObjects() bool { return s.heredoc }

// Unfinished reports whether a text goes on if it is what comes next: an editor then
// has another line typed.
func (s *Session) Unfinished(text string) bool {
	lines := append(slices.Clone(s.pending), strings.Split(text, "\n")...)
	if s.heredoc || blank(lines[0]) || strings.HasPrefix(lines[0], ":") {
		return false
	}
	return script.Unfinished(s.code(lines))
}

// line takes one line in.
func (s *Session) line(ctx context.Context, line string) error {
	if s.heredoc {
		return s.heredocLine(ctx, line)
	}
	if len(s.pending) > 0 && s.endsBlock(line) {
		if err := s.finish(ctx); err != nil {
			return err
		}
	}
	if len(s.pending) == 0 {
		switch {
		case blank(line):
			s.scope.Skip(line)
			return nil
		case strings.HasPrefix(line, ":"):
			at := s.scope.Line()
			s.scope.Skip(line)
			return s.at(at, s.command(ctx, line))
		}
	}
	s.pending = append(s.pending, line)
	if size(s.pending) > script.MaxFileSize || !s.unfinished() {
		return s.finish(ctx)
	}
	return nil
}

func size(lines []string) int {
	n := 0
	for _, line := range lines {
		n += len(line) + 1
	}
	return n
}

// blank reports whether a line says nothing.
func blank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

// endsBlock reports whether a line comes after the block that is pending, and not in
// it.
func (s *Session) endsBlock(line string) bool {
	if blank(line) || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		return false
	}
	for _, word := range []string{"else", "elif"} {
		if rest, ok := strings.CutPrefix(line, word); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t:(")) {
			return false
		}
	}
	return script.Parses(strings.Join(s.pending, "\n"))
}

// unfinished reports whether the piece goes on.
func (s *Session) unfinished() bool { return script.Unfinished(s.code(s.pending)) }

// code leaves out the lines that end no block though they would where people type: those
// with a comment alone, in a file empty ones, too. It is good for nothing but finding an
// end.
func (s *Session) code(lines []string) []string {
	var out []string
	for _, line := range lines {
		comment := strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.Contains(line, `"""`) && !strings.Contains(line, "'''")
		if comment || s.o.Script && strings.TrimSpace(line) == "" {
			continue
		}
		out = append(out, line)
	}
	return out
}

// finish runs what is pending.
func (s *Session) finish(ctx context.Context) error {
	text := strings.Join(s.pending, "\n")
	s.pending = nil
	piece, err := s.scope.Compile(ctx, text)
	if err != nil {
		return err
	}
	return s.run(ctx, piece)
}

// at says of a command's error in which line it was.
func (s *Session) at(line int, err error) error {
	if err == nil || !s.o.Script || errors.Is(err, ErrQuit) {
		return err
	}
	return fmt.Errorf("%s:%d: %w", s.o.Name, line, err)
}
