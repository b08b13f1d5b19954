package lsp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/starling-operator/starling/lsp/text"
	"github.com/starling-operator/starling/modules/check"
)

// publish tells the client what is wrong with a document; version is nil for one that is not open.
func (s *Server) publish(uri string, version *int, found []diagnostic) {
	if found == nil {
		found = []diagnostic{}
	}
	_ = s.conn.Notify(s.ctx, "textDocument/publishDiagnostics", diagnosticsParams{uri, version, found}) // the client may have gone
}

// diagnosticsOf are findings in a file as editors show them.
func diagnosticsOf(t *text.Text, found []check.Finding) (out []diagnostic) {
	for _, f := range found {
		message := f.Message
		if f.Hint != "" {
			message += "\n" + f.Hint
		}
		severity := severityError
		switch f.Severity {
		case check.Warning:
			severity = severityWarning
		case check.Note:
			severity = severityInformation
		}
		out = append(out, diagnostic{Range: marked(t, f), Severity: severity, Code: f.Check, Source: "starling", Message: message})
	}
	return out
}

// marked is the range that a finding is about: the word or the text at its place, or its line.
func marked(t *text.Text, f check.Finding) text.Range {
	if f.Line == 0 || f.Line > t.Lines() {
		return t.RangeOf(0, 0)
	}
	line := t.Line(f.Line - 1)
	start := t.OfStarlark(f.Line, 1)
	if f.Col == 0 {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		return t.RangeOf(start+indent, start+len(strings.TrimRight(line, " \t")))
	}
	at := t.OfStarlark(f.Line, f.Col)
	return t.RangeOf(at, at+wordLength(line[at-start:]))
}

// wordLength is how long the word, the name with dots, or the text in quotes is that a line begins with; one character
// where it begins with anything else.
func wordLength(s string) int {
	if s == "" {
		return 0
	}
	if quote := s[0]; quote == '"' || quote == '\'' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case quote:
				return i + 1
			}
		}
		return len(s)
	}
	end := strings.IndexFunc(s, func(r rune) bool { return !inWord(r) && r != '.' })
	switch {
	case end < 0:
		return len(s)
	case end == 0:
		_, size := utf8.DecodeRuneInString(s)
		return size
	}
	return end
}

func inWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
