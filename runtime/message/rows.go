package message

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// rowWidth is how long a line of rows is at most, unless a word is longer.
const rowWidth = 110

// Rows writes a name and a text in each line; a text that is long goes on in the lines below.
func Rows(rows [][2]string) string {
	longest := 0
	for _, r := range rows {
		longest = max(longest, utf8.RuneCountInString(r[0]))
	}
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		line := fmt.Sprintf("  %-*s ", longest, r[0])
		at := utf8.RuneCountInString(line)
		for word := range strings.FieldsSeq(r[1]) {
			n := utf8.RuneCountInString(word)
			if at > longest+3 && at+1+n > rowWidth {
				b.WriteString(line + "\n")
				line = strings.Repeat(" ", longest+3)
				at = longest + 3
			}
			line += " " + word
			at += 1 + n
		}
		b.WriteString(strings.TrimRight(line, " "))
	}
	return b.String()
}

// Paragraph breaks a text between words into lines as long as those of [Rows].
func Paragraph(text string) string { return wrap(text, rowWidth) }

// pageWidth is how long a line of a page is at most, unless a word is longer: pages end before column 120.
const pageWidth = 118

// PageParagraph breaks a text between words into lines of a page of the docs.
func PageParagraph(text string) string { return wrap(text, pageWidth) }

func wrap(text string, width int) string {
	var b strings.Builder
	at := 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case at == 0:
		case at+1+n > width:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
