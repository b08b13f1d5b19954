package check

import (
	"cmp"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
)

// Severity says how bad a [Finding] is.
type Severity string

const (
	// Error: it will not work.
	Error Severity = "error"
	// Warning: it probably is not what was wanted.
	Warning Severity = "warning"
	// Note: worth knowing, nothing is wrong.
	Note Severity = "note"
)

// Finding is one thing that a check has to say.
type Finding struct {
	Severity Severity `json:"severity"`
	// Check names what was looked at: "load", "kinds", "values", "charts", …
	Check string `json:"check"`
	// Module is the module's name, "global", or empty.
	Module string `json:"module,omitempty"`
	// File is the path in the tree, "@std//…" in the standard library; Line and Col
	// count from 1, 0 means unknown.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	// Message in one line, and what to do about it; Hint may be empty.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`

	// call is the line at which the call begins that it is about, 0 without one.
	call   int
	source string
	frames []script.Frame
	// rendered are the lines that a template rendered to around the place.
	rendered []string
}

// Render returns the finding in lines, as people read it: the severity, the place, the
// message, and, when the place is known, its line with a caret. name changes a path of
// the tree into the one to print; nil keeps it.
func (f Finding) Render(name func(string) string) string {
	if name == nil {
		name = func(path string) string { return path }
	}
	e := script.Error{File: name(f.File), Line: f.Line, Col: f.Col, Msg: f.Message, Hint: f.Hint, Source: f.source}
	for _, frame := range f.frames {
		frame.File = name(frame.File)
		e.Frames = append(e.Frames, frame)
	}
	out := string(f.Severity) + ": " + e.Render()
	if len(f.rendered) > 0 {
		out += "  which renders to:\n"
	}
	for _, line := range f.rendered {
		out += "    " + line + "\n"
	}
	return out
}

// add takes a finding, and the line it is about.
func (c *checker) add(f Finding) {
	f.Message = message.Line(f.Message)
	if f.source == "" && f.Line > 0 {
		if src, err := fs.ReadFile(c.tree.Files, f.File); err == nil {
			f.source = script.SourceLine(src, f.Line)
			if f.Col == 0 {
				f.Col = 1 + len(f.source) - len(strings.TrimLeft(f.source, " \t"))
			}
		}
	}
	if f.Module == "" {
		f.Module = c.moduleOf(f.File)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings = append(c.findings, f)
}

// addError takes an error apart: joined ones, and all that were found in one file.
func (c *checker) addError(check, module string, err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range many.Unwrap() {
			c.addError(check, module, e)
		}
		return
	}
	var at *script.Error
	if !errors.As(err, &at) {
		c.addText(Error, check, module, err.Error())
		return
	}
	for _, f := range findingsOf(check, at) {
		f.Module = module
		c.add(f)
	}
}

// findingsOf are all errors that were found in one file.
func findingsOf(check string, at *script.Error) (out []Finding) {
	for _, e := range append([]*script.Error{at}, at.More...) {
		out = append(out, Finding{
			Severity: Error, Check: check, File: e.File, Line: e.Line, Col: e.Col,
			Message: message.Line(e.Msg), Hint: e.Hint, source: e.Source, frames: e.Frames,
		})
	}
	return out
}

// begins is how messages begin: "web/hooks/a.star:3:5: ", line and column left out at
// times.
var begins = regexp.MustCompile(`^([^\s:"]+)(?::(\d+))?(?::(\d+))?: `)

// placeOf reads the place at which a text begins, and what follows it: no file without one.
func placeOf(text string) (file string, line, col int, rest string) {
	m := begins.FindStringSubmatch(text)
	if m == nil {
		return "", 0, 0, text
	}
	line, _ = strconv.Atoi(m[2])
	col, _ = strconv.Atoi(m[3])
	return m[1], line, col, text[len(m[0]):]
}

// addText takes a message that may begin with its place.
func (c *checker) addText(s Severity, check, module, text string) {
	f := Finding{Severity: s, Check: check, Module: module, Message: text}
	if file, line, col, rest := placeOf(text); file != "" {
		if _, err := fs.Stat(c.tree.Files, file); err == nil {
			f.File, f.Line, f.Col, f.Message = file, line, col, rest
		}
	}
	c.add(f)
}

// addAt takes a message about a place as declarations have it: "file:line" or
// "file:line:col".
func (c *checker) addAt(s Severity, check, module, pos, message, hint string) {
	file, line, col, _ := placeOf(pos + ": ")
	c.add(Finding{
		Severity: s, Check: check, Module: module, File: cmp.Or(file, pos), Line: line, Col: col, Message: message, Hint: hint,
	})
}

// sorted returns all findings once each, by place.
func (c *checker) sorted() []Finding {
	slices.SortStableFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line, a.Col-b.Col, cmp.Compare(a.Message, b.Message), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Hint, b.Hint))
	})
	return slices.CompactFunc(c.findings, func(a, b Finding) bool {
		return a.File == b.File && a.Line == b.Line && a.Message == b.Message && a.Hint == b.Hint && (a.Col == b.Col || a.Line > 0)
	})
}
