package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/message"
)

// diagnose turns what go.starlark.net returned for a run into an *Error. cause
// is why the run was cancelled, or nil; at is the place to name when the error
// has none.
func (h *Host) diagnose(err, cause error, at Frame) *Error {
	return h.diagnoseIn(h.sourceLine, err, cause, at)
}

// lines finds the lines of files, "" for those that it does not know.
type lines func(file string, line int) string

// diagnoseIn is diagnose for code whose lines are elsewhere.
func (h *Host) diagnoseIn(source lines, err, cause error, at Frame) *Error {
	if e, ok := err.(*Error); ok {
		return e
	}
	var resolveErrs resolve.ErrorList
	var syntaxErr syntax.Error
	switch {
	case errors.As(err, &resolveErrs):
		slices.SortStableFunc(resolveErrs, func(a, b resolve.Error) int {
			return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Col, b.Pos.Col))
		})
		var all []*Error
		for i, re := range resolveErrs[:min(len(resolveErrs), maxErrors+1)] {
			if i == maxErrors {
				re.Msg = fmt.Sprintf("this mistake and %d more of this file are not told", len(resolveErrs)-i-1)
			}
			all = append(all, h.at(source, re.Pos, re.Msg))
		}
		first := all[0]
		first.More = all[1:]
		return first
	case errors.As(err, &syntaxErr):
		return h.at(source, syntaxErr.Pos, syntaxErr.Msg)
	}

	out := &Error{File: at.File, Line: at.Line, Col: at.Col}
	if evalErr, ok := errors.AsType[*starlark.EvalError](err); ok {
		out.Frames = frames(evalErr.CallStack)
		if n := len(out.Frames); n > 0 {
			last := out.Frames[n-1]
			out.File, out.Line, out.Col = last.File, last.Line, last.Col
		}
		out.cause = evalErr.Unwrap()
		out.Msg = evalErr.Msg
	} else {
		out.cause = err
		out.Msg = err.Error()
	}

	// A file that failed while another loaded it is reported where it failed,
	// with the load statements as its outer frames.
	if inner, ok := errors.AsType[*Error](out.cause); ok {
		loaded := *inner
		loaded.Frames = append(slices.Clone(out.Frames), inner.Frames...)
		return &loaded
	}
	if label, ok := errors.AsType[*labelError](out.cause); ok {
		out.Msg, out.Hint, out.cause = label.msg, label.hint, nil
	}
	if cause != nil && stoppedBy(err, cause) {
		out.cause, out.Msg = cause, stopMessage(cause)
	}
	out.Msg = message.Cut(message.Line(out.Msg), maxMessage)
	out.Source = source(out.File, out.Line)
	reword(out)
	h.nearKey(out)
	return out
}

var (
	absentKey  = regexp.MustCompile(`^key "([^"\\]*)" not in dict$`)
	writtenKey = regexp.MustCompile(`[{,\s]"([^"\\]+)"\s*:`)
)

// nearKey suggests, for a key that a dict does not have, one that its file writes out: the filter that makes a row
// mostly stands beside the hook that reads it.
func (h *Host) nearKey(e *Error) {
	m := absentKey.FindStringSubmatch(e.Msg)
	if m == nil {
		return
	}
	data, err := h.read(e.File)
	if err != nil {
		return
	}
	var keys []string
	for _, k := range writtenKey.FindAllSubmatch(data, -1) {
		keys = append(keys, string(k[1]))
	}
	if slices.Contains(keys, m[1]) { // some dict has it
		return
	}
	if near := message.Nearest(m[1], keys); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
}

// maxErrors is how many unknown names of one file are told: nobody reads more, and each has its line with it.
const maxErrors = 100

// maxMessage is how long a message may be: the language's own name the key that is not
// there, whatever its size.
const maxMessage = 2000

// stoppedBy reports whether err is how a cancelled run ends, and not a failure
// that came first.
func stoppedBy(err, cause error) bool {
	return errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, new(*LimitError)) || strings.Contains(err.Error(), "Starlark computation cancelled: ")
}

func stopMessage(cause error) string {
	if limit, ok := errors.AsType[*LimitError](cause); ok {
		return limit.Error()
	}
	return "stopped: " + cause.Error()
}

func (h *Host) at(source lines, pos syntax.Position, msg string) *Error {
	e := &Error{File: pos.Filename(), Line: int(pos.Line), Col: int(pos.Col), Msg: message.Cut(message.Line(msg), maxMessage)}
	if name, ok := undefinedName(e.Msg); ok {
		theirs := ""
		if m := suggested.FindStringSubmatch(e.Msg); m != nil {
			theirs = m[1]
		}
		e.Msg = "undefined: " + name
		if e.Hint = h.hintFor(name, theirs); e.Hint == "" && comprehended(source, e, name) {
			e.Hint = fmt.Sprintf("%s is known in its brackets alone, […for %s in…]: loop in a for statement, or take xs[-1]", name, name)
		}
	}
	if e.Col == 1 && e.Line > 1 && strings.HasPrefix(e.Msg, "got newline, want ") {
		e.Line-- // the parser is behind the line that lacks something
		e.Col = 1 + utf8.RuneCountInString(source(e.File, e.Line))
	}
	e.Source = source(e.File, e.Line)
	reword(e)
	return e
}

// comprehended says whether a line above uses a name in a comprehension, where Python keeps it to its end, too.
func comprehended(source lines, e *Error, name string) bool {
	in := regexp.MustCompile(`[\[{(].*\bfor\b[^\]}]*\b` + regexp.QuoteMeta(name) + `\b[^\]}]*\bin\b`)
	for line := e.Line - 1; line > max(0, e.Line-50); line-- {
		if in.MatchString(source(e.File, line)) {
			return true
		}
	}
	return false
}

var suggested = regexp.MustCompile(` \(did you mean ([^ ]+)\?\)$`)

func undefinedName(msg string) (string, bool) {
	rest, ok := strings.CutPrefix(msg, "undefined: ")
	name, _, _ := strings.Cut(rest, " ")
	return name, ok
}

// hintFor says which name was meant by an undefined one: a name of the file
// (their suggestion, starlark-go's, which knows locals and globals only), of
// the builtins, or of the language.
func (h *Host) hintFor(name, theirs string) string {
	if hint := foreignHint(name); hint != "" {
		return hint
	}
	candidates := h.names
	if theirs != "" {
		candidates = append([]string{theirs}, candidates...)
	}
	return message.DidYouMean(name, candidates, "")
}

// frames leaves the builtins' frames out: they have no place in a file.
func frames(stack starlark.CallStack) []Frame {
	var out []Frame
	for _, f := range stack {
		if f.Pos.Line == 0 || f.Pos.Filename() == "<builtin>" {
			continue
		}
		out = append(out, Frame{File: f.Pos.Filename(), Line: int(f.Pos.Line), Col: int(f.Pos.Col), Func: f.Name})
	}
	return out
}

func (h *Host) sourceLine(file string, line int) string {
	if file == "" || line < 1 {
		return ""
	}
	data, err := h.read(file)
	if err != nil {
		return ""
	}
	return SourceLine(data, line)
}
