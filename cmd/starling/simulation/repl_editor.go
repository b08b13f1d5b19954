package simulation

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/reeflective/readline"

	"github.com/starling-operator/starling/runtime/repl"
)

// errInterrupted says that Ctrl-C was typed.
var errInterrupted = errors.New("interrupted")

// editor reads what people type at a terminal.
type editor interface {
	// read returns the next text, of one or several lines. more asks for a line of
	// something that has begun. Errors are io.EOF and errInterrupted.
	read(more bool) (string, error)
}

// newEditor returns the editor that the terminal can show.
func newEditor(s *repl.Session, prompt string, history *repl.History, in io.Reader, out io.Writer) (e editor) {
	plain := &plainEditor{in: bufio.NewReader(in), out: out, prompt: prompt}
	if term := os.Getenv("TERM"); term == "" || term == "dumb" {
		return plain
	}
	defer func() {
		if recover() != nil { // the library needs a user with a home
			e = plain
		}
	}()
	shell := readline.NewShell()
	shell.History.Delete()
	shell.History.Add("starling", history)
	// Tab shows what there is, before it chooses; letters may have more than one byte;
	// a terminal that does not say where its cursor is has none waiting for it.
	for name, value := range map[string]any{
		"menu-complete-display-prefix": true, "colored-completion-prefix": true,
		"convert-meta": false, "input-meta": true, "output-meta": true, "cursor-position-probe": false,
	} {
		if err := shell.Config.Set(name, value); err != nil {
			return plain
		}
	}
	for _, keymap := range []string{"emacs", "vi-insert"} {
		shell.Config.Bind(keymap, "\t", "menu-complete", false)
	}
	shell.AcceptMultiline = func(line []rune) bool { return !s.Unfinished(string(line)) }
	shell.Completer = func(line []rune, cursor int) readline.Completions {
		return completions(s.Completer(), string(line[:min(cursor, len(line))]))
	}
	shell.Prompt.Secondary(func() string { return shown(prompt, true) })
	return &shellEditor{shell: shell, prompt: prompt}
}

// shown is the prompt, or that of one more line.
func shown(prompt string, more bool) string {
	if more {
		return strings.Repeat(".", len(prompt)-1) + " "
	}
	return prompt
}

// completions hands candidates to the library. It takes the text up to the last blank
// for the word, unless it is told of another one that is not empty.
func completions(c *repl.Completer, text string) readline.Completions {
	from, found := c.Complete(text, len(text))
	shown := from
	if from == len(text) && from > 0 {
		_, n := utf8.DecodeLastRuneInString(text)
		from -= n
	}
	var all []readline.Completion
	for _, one := range found {
		all = append(all, readline.Completion{Value: text[from:shown] + one.Text, Display: one.Text, Description: one.Doc})
	}
	out := readline.CompleteRaw(all).NoSort()
	out.PREFIX = text[from:]
	if len(out.PREFIX) != utf8.RuneCountInString(out.PREFIX) {
		return readline.Completions{} // the library counts bytes
	}
	return out
}

type shellEditor struct {
	shell  *readline.Shell
	prompt string
}

func (e *shellEditor) read(more bool) (string, error) {
	e.shell.Prompt.Primary(func() string { return shown(e.prompt, more) })
	text, err := e.shell.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		err = errInterrupted
	}
	return text, err
}

// plainEditor reads lines from a terminal that can do nothing else.
type plainEditor struct {
	in     *bufio.Reader
	out    io.Writer
	prompt string
}

func (e *plainEditor) read(more bool) (string, error) {
	fmt.Fprint(e.out, shown(e.prompt, more))
	line, err := e.in.ReadString('\n')
	if err != nil && line == "" {
		return "", io.EOF
	}
	return strings.TrimRight(line, "\r\n"), nil
}
