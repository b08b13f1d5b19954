package object

import (
	"strings"
	"unicode"
)

// Clean keeps a text from the cluster from steering the terminal that it is shown on, from
// looking like more than one line, and from turning the order of what is read around: such
// characters become spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if Unclean(r) {
			return ' '
		}
		return r
	}, s)
}

// Unclean says whether a character does any of that.
func Unclean(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
