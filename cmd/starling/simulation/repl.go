package simulation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/process"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/repl"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

type replFlags struct {
	world   World
	verbose bool
}

func newReplCommand(version string) *cobra.Command {
	f := &replFlags{world: World{Version: version}}
	cmd := &cobra.Command{
		Use:   "repl [TREE] [MODULE]",
		Short: "Try Starlark out, line by line, in a simulated cluster",
		Long: `Each line runs as a hook does: k8s, values, metrics and all other builtins are there,
what it asks for is shown and done at once, and what follows from that happens, too.
MODULE, a name or a folder, is the module that the lines belong to: they see its
values, and its grants bind them. Without it nothing binds them, and all modules of
TREE, if it is given, are there as their values say.

The cluster is simulated. With --live, --context or --kubeconfig it lies over a real
one, which is only read: :plan shows what would be written.

help() lists the builtins, :help the commands; Tab completes. In a pipe it reads a
script: its output is what expressions come to, and the first error ends it.`,
		Example: `  starling repl examples/quickstart/hello
  starling repl addons ingress-nginx --context production
  echo 'semver.compare("1.2.0", "1.10.0")' | starling repl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one module, got %s; see: %s --help", cmd.CommandPath(), message.Count(len(args), "argument"), cmd.CommandPath())
			}
			return nil
		},
		RunE: f.run,
	}
	f.world.scratch = true
	f.world.AddFlags(cmd.Flags(), false)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "in a pipe, tell on stderr what lines do: effects, runs, logs")
	command.TreeFirst(cmd, &f.world.Modules, 0, 1)
	return cmd
}

func (f *replFlags) run(cmd *cobra.Command, args []string) error {
	module := ""
	if len(args) > 0 {
		module = f.module(args[0])
	}
	if slices.Contains(f.world.Files, "-") {
		return errors.New("--filename -: stdin is the session's; in it, :apply - takes objects")
	}
	in, out := cmd.InOrStdin(), cmd.OutOrStdout()
	talks := process.IsTerminal(in) && process.IsTerminal(out)
	ctx, begins := cmd.Context(), func() bool { return true }
	if talks { // once it has begun Ctrl-C ends a line, not the session
		session, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		ctx, begins = session, context.AfterFunc(ctx, stop)
	}
	w, gen, err := f.world.Open(ctx, nil, nil)
	if err != nil {
		return err
	}
	if module != "" && module != "global" {
		if err := SwitchOn(w, gen, module); err != nil {
			return err
		}
	}
	o := repl.Options{
		World: w, Generation: gen, Load: f.world.load, Module: module, Live: f.world.Live,
		Files: repl.Files{Tree: f.world.Modules, Std: stdlib.FS}, Name: "stdin", Script: true,
	}
	color := command.Colorful(cmd)
	if talks {
		o.Name, o.Script = "repl", false
		o.Show = func(line repl.Line) { fmt.Fprintln(out, paint(color && line.Note, "2", line.Text)) }
		fmt.Fprintln(out, "A simulated cluster; :help tells what there is, Ctrl-D ends.")
	}
	s, begun, err := repl.New(ctx, o)
	if !begins() {
		return errInterrupted
	}
	if err != nil {
		return err
	}
	if talks {
		return f.talk(ctx, s, module, in, out, color)
	}
	return f.script(ctx, s, begun, in, out, cmd.ErrOrStderr())
}

// module returns the name of a module that is given by its folder, too, which says where
// the tree is.
func (f *replFlags) module(arg string) string {
	if f.world.Modules != "" {
		return arg
	}
	dir, err := filepath.Abs(arg)
	if err != nil || filepath.Base(dir) != "global" && !tree.IsModule(dir) {
		return arg
	}
	f.world.Modules = filepath.Dir(dir)
	if number, name, weighed := strings.Cut(filepath.Base(dir), "-"); weighed && strings.Trim(number, "0123456789") == "" {
		return name
	}
	return filepath.Base(dir)
}

// maxScriptLine bounds a line of a script.
const maxScriptLine = 4 << 20

// script reads lines from a pipe until one fails.
func (f *replFlags) script(ctx context.Context, s *repl.Session, begun repl.Output, in io.Reader, out, stderr io.Writer) error {
	show := func(o repl.Output) error {
		for _, line := range o.Lines {
			to := out
			if line.Note {
				if to = stderr; !f.verbose {
					continue
				}
			}
			if _, err := fmt.Fprintln(to, line.Text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := show(begun); err != nil {
		return err
	}
	lines := make(chan string)
	var failed error // once lines is closed
	done := make(chan struct{})
	defer close(done)
	go func() {
		defer close(lines)
		read := bufio.NewScanner(in)
		read.Buffer(nil, maxScriptLine)
		for read.Scan() {
			select {
			case lines <- read.Text():
			case <-done:
				return
			}
		}
		if err := read.Err(); err != nil {
			failed = fmt.Errorf("stdin: %w", err)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return errInterrupted
		case line, more := <-lines:
			var o repl.Output
			var err error
			if more {
				o, _, err = s.Eval(ctx, line)
			} else {
				o, err = s.End(ctx)
			}
			if shown := show(o); err == nil {
				err = shown
			}
			switch {
			case errors.Is(err, repl.ErrQuit):
				return nil
			case err != nil:
				return err
			case !more:
				return failed
			}
		}
	}
}

// talk is a session at a terminal.
func (f *replFlags) talk(ctx context.Context, s *repl.Session, module string, in io.Reader, out io.Writer, color bool) error {
	prompt := "starling> "
	switch {
	case module != "":
		prompt = module + "> "
	case f.world.Live:
		prompt = "live> "
	}
	defer f.restoreTerminal(in)()
	history := repl.OpenHistory(repl.HistoryFile(os.Getenv))
	history.Quiet = s.TakesObjects
	e := newEditor(s, prompt, history, in, out)
	more := false
	for {
		text, err := e.read(more)
		switch {
		case errors.Is(err, errInterrupted):
			s.Forget()
			more = false
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(out)
			return nil
		case err != nil:
			return err
		}
		more, err = evalInterruptibly(ctx, s, text)
		switch {
		case errors.Is(err, repl.ErrQuit):
			return nil
		case err != nil:
			var at *script.Error
			text := err.Error()
			if errors.As(err, &at) && len(at.Frames) > 1 || at != nil && at.Source != "" {
				text = strings.TrimRight(at.Render(), "\n")
			}
			fmt.Fprintln(out, paint(color, "31", "error: "+text))
		}
	}
}

// paint gives a text a colour.
func paint(color bool, code, text string) string {
	if !color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// evalInterruptibly has Ctrl-C end a line.
func evalInterruptibly(ctx context.Context, s *repl.Session, text string) (more bool, err error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	_, more, err = s.Eval(ctx, text)
	return more, err
}

// restoreTerminal has the terminal be as it was when the process is told to end, which
// may be in the middle of a line.
func (f *replFlags) restoreTerminal(in io.Reader) (stop func()) {
	file, ok := in.(*os.File)
	if !ok {
		return func() {}
	}
	state, err := term.GetState(int(file.Fd()))
	if err != nil {
		return func() {}
	}
	told, end := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	forget := context.AfterFunc(told, func() {
		_ = term.Restore(int(file.Fd()), state)
		os.Exit(1)
	})
	return func() { forget(); end() }
}
