package lsp

import (
	"strings"
)

// cursor is what stands around a place in a text of Starlark, as far as it can be read without its end: while somebody
// writes, it does not parse.
type cursor struct {
	src    string
	offset int
	// quote is where the string begins that the place is in, behind its quotes; -1: it is in none. In a comment nothing
	// is completed.
	quote   int
	comment bool
	// open are the brackets that are open, the outermost first.
	open []bracket
}

// bracket is one that is open.
type bracket struct {
	char byte
	// callee is the name with dots before it; "" for none.
	callee string
	// commas are those at its level before the place, and argument is where what follows the last one begins.
	commas, argument int
}

// read reads a text up to a place.
func read(src string, offset int) cursor {
	c := cursor{src: src, offset: offset, quote: -1}
	for i := 0; i < offset; {
		switch b := src[i]; b {
		case '#':
			end := strings.IndexByte(src[i:], '\n')
			if end < 0 || i+end >= offset {
				c.comment = true
				return c
			}
			i += end
		case '"', '\'':
			begin, end := stringAt(src, i)
			if end > offset || end == len(src) && !closed(src, i, end) {
				c.quote = min(begin, offset)
				return c
			}
			i = end
			continue
		case '(', '[', '{':
			c.open = append(c.open, bracket{char: b, callee: chainBefore(src, i), argument: i + 1})
		case ')', ']', '}':
			if n := len(c.open); n > 0 {
				c.open = c.open[:n-1]
			}
		case ',':
			if n := len(c.open); n > 0 {
				c.open[n-1].commas++
				c.open[n-1].argument = i + 1
			}
		}
		i++
	}
	return c
}

// stringAt returns where the content of the string at i begins, and where the string ends, its quotes included; one that
// is not closed ends with its line, or with the text.
func stringAt(src string, i int) (begin, end int) {
	quote := src[i : i+1]
	if strings.HasPrefix(src[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	begin = i + len(quote)
	for j := begin; j < len(src); j++ {
		switch {
		case src[j] == '\\':
			j++
		case strings.HasPrefix(src[j:], quote):
			return begin, j + len(quote)
		case src[j] == '\n' && len(quote) == 1:
			return begin, j + 1 // the place may be at its end
		}
	}
	return begin, len(src)
}

// closed says whether the string from i to end has its second quotes.
func closed(src string, i, end int) bool {
	quote := src[i]
	return end-i >= 2 && src[end-1] == quote
}

func isWordByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80
}

// chainBefore is the name with dots that ends at a place: "k8s.watch".
func chainBefore(src string, end int) string {
	start := end
	for start > 0 && (isWordByte(src[start-1]) || src[start-1] == '.') {
		start--
	}
	return src[start:end]
}

// word is where the word begins that is being written, or what is in the string.
func (c cursor) word() (start int, text string) {
	if c.quote >= 0 {
		return c.quote, c.src[c.quote:c.offset]
	}
	start = c.offset
	for start > 0 && isWordByte(c.src[start-1]) {
		start--
	}
	return start, c.src[start:c.offset]
}

// call is the innermost call that is open, with what stands around it; ok is false for none. A lambda or a list in an
// argument is of that argument.
func (c cursor) call() (bracket, bool) {
	for i := len(c.open) - 1; i >= 0; i-- {
		if c.open[i].char == '(' && c.open[i].callee != "" {
			return c.open[i], true
		}
	}
	return bracket{}, false
}

// inside is the innermost bracket that is open; ok is false for none.
func (c cursor) inside() (bracket, bool) {
	if len(c.open) == 0 {
		return bracket{}, false
	}
	return c.open[len(c.open)-1], true
}

// keyword is the name of the argument that is being written; "" for one by position.
func (c cursor) keyword(b bracket) string {
	text := strings.TrimLeft(c.src[b.argument:c.offset], " \t\r\n")
	end := 0
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	rest := strings.TrimLeft(text[end:], " ")
	if end == 0 || !strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, "==") {
		return ""
	}
	return text[:end]
}
