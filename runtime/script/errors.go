package script

import (
	"fmt"
	"strings"

	"github.com/starling-operator/starling/runtime/wording"
)

// Error is one thing that is wrong in a .star file, or went wrong while one ran:
// a diagnostic with a place. The error of a builtin (its own error types) and a
// [LimitError] are found through it by errors.As.
type Error struct {
	// File is the path in the module tree ("web/hooks/nodes.star"), or
	// "@std//k8s.star" for the standard library. Empty when nothing of a file
	// was running yet.
	File string
	// Line and Col count from 1, Col in characters. 0 means unknown.
	Line, Col int
	// Msg says what is wrong, in one line.
	Msg string
	// Hint says what to do about it: "did you mean values?". May be empty.
	Hint string
	// Frames are the calls that led here, outermost first, builtins left out;
	// the load statements that pulled the file in come before them. Empty for
	// what is found before anything runs.
	Frames []Frame
	// Source is the line of File that Line names, without its end; empty when
	// it cannot be read.
	Source string
	// More are the other errors found in the same file at the same time.
	More []*Error

	cause error
	row   *wording.Row // has said it
}

// Frame is one call of a backtrace.
type Frame struct {
	File      string
	Line, Col int
	// Func is the function's name, "<toplevel>" for the file itself.
	Func string
}

// String returns "web/hooks/nodes.star:5:9 in discover".
func (f Frame) String() string {
	return fmt.Sprintf("%s in %s", position(f.File, f.Line, f.Col), f.Func)
}

// Masked returns the error with its texts as hide gives them, and this cause.
func (e *Error) Masked(hide func(string) string, cause error) *Error {
	out := *e
	out.Msg, out.Hint, out.cause = hide(e.Msg), hide(e.Hint), cause
	out.More = make([]*Error, len(e.More))
	for i, m := range e.More {
		out.More[i] = m.Masked(hide, nil)
	}
	return &out
}

// Unwrap returns what a builtin returned, a *LimitError, a *PanicError, or the
// cause of the context's end; nil for plain mistakes in the file.
func (e *Error) Unwrap() error { return e.cause }

// Error returns one line: "file:line:col: message (hint)". When the file has
// more errors, it ends with how many; Render shows them.
func (e *Error) Error() string {
	s := e.head()
	switch len(e.More) {
	case 0:
	case 1:
		s += " (and 1 more error in this file)"
	default:
		s += fmt.Sprintf(" (and %d more errors in this file)", len(e.More))
	}
	return s
}

// Render returns the long form, in lines: each error with its source line, a
// caret below the place, and all frames.
func (e *Error) Render() string {
	var b strings.Builder
	e.render(&b)
	for _, m := range e.More {
		b.WriteByte('\n')
		m.render(&b)
	}
	return b.String()
}

func (e *Error) head() string {
	var b strings.Builder
	if p := position(e.File, e.Line, e.Col); p != "" {
		b.WriteString(p)
		b.WriteString(": ")
	}
	b.WriteString(e.Msg)
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Hint)
		b.WriteByte(')')
	}
	return b.String()
}

func (e *Error) render(b *strings.Builder) {
	b.WriteString(e.head())
	b.WriteByte('\n')
	if e.Source != "" {
		source, caret := excerpt(e.Source, e.Col)
		fmt.Fprintf(b, "    %s\n    %s\n", source, caret)
	}
	for _, f := range e.Frames {
		fmt.Fprintf(b, "  %s\n", f)
	}
}

// excerpt returns what is shown of a source line and the line with the caret
// that goes below it: long lines are cut around the column, and the caret line
// repeats the tabs before it, so that both line up on any terminal.
func excerpt(source string, col int) (line, caret string) {
	const before, after = 100, 60
	r := []rune(source)
	if col < 1 || col > len(r)+1 {
		col = 1
	}
	at := col - 1
	if at > before {
		r, at = r[at-before:], before
	}
	if len(r) > at+after {
		r = r[:at+after]
	}
	pad := make([]rune, at)
	for i := range pad {
		pad[i] = ' '
		if r[i] == '\t' {
			pad[i] = '\t'
		}
	}
	return strings.TrimRight(string(r), " \t\r"), string(pad) + "^"
}

func position(file string, line, col int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file
	case col == 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, col)
}

// LimitError says that a run was stopped because it went over one of its
// [Limits].
type LimitError struct {
	// Limit is "steps", "time", "memory" or "room".
	Limit string
	// Max is the limit in people's words: "50000000 steps", "30s", "256 MiB".
	Max string
}

// The values of [LimitError].Limit.
const (
	LimitSteps  = "steps"
	LimitTime   = "time"
	LimitMemory = "memory"
	LimitRoom   = "room"
)

// Error says which limit it was and what to look at.
func (e *LimitError) Error() string {
	switch e.Limit {
	case LimitSteps:
		return "stopped after " + e.Max + ", the limit of one run: does a loop go over too much?"
	case LimitTime:
		return "stopped after " + e.Max + ", the time limit of one run"
	case LimitRoom:
		return "stopped: the process has no room for " + e.Max + " beside what is in its memory already"
	default:
		return "stopped: it used more than " + e.Max + " of memory, the limit of one run"
	}
}

// Timeout says that it was the time, which a busy machine may not have had.
func (e *LimitError) Timeout() bool { return e.Limit == LimitTime }

func memoryLimit(max int64) *LimitError {
	if max >= 1<<20 {
		return &LimitError{Limit: LimitMemory, Max: fmt.Sprintf("%d MiB", max>>20)}
	}
	return &LimitError{Limit: LimitMemory, Max: fmt.Sprintf("%d bytes", max)}
}

// PanicError is a panic during a run, by a builtin or the interpreter. It is an
// error of that run; the process goes on.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the Go stack, for a debug log. It is in no message.
	Stack []byte
}

// Error returns the panic's value in one line, without the stack.
func (e *PanicError) Error() string {
	msg, _, _ := strings.Cut(fmt.Sprint(e.Value), "\n")
	return "internal error: " + strings.TrimPrefix(msg, "runtime error: ")
}
