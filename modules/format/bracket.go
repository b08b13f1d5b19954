package format

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// bracketed returns src with the brackets that buildifier needs: around a condition in a
// tuple that has none itself, as in `return a, b if c else d`.
func bracketed(file *syntax.File, src []byte) []byte {
	if bytes.IndexByte(src, '\r') >= 0 {
		return src // the end of a line for one parser, and none for the other
	}
	type bracket struct {
		at   int
		text string
	}
	var brackets []bracket
	lines := lineStarts(src)
	closed := map[syntax.Expr]bool{} // has brackets
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParenExpr:
			closed[n.X] = true
		case *syntax.TupleExpr:
			for i, e := range n.List {
				if cond, is := e.(*syntax.CondExpr); is && i > 0 && !closed[n] {
					start, _ := cond.Span()
					brackets = append(brackets, bracket{offset(src, lines, start), "("}, bracket{offset(src, lines, end(cond)), ")"})
				}
			}
		}
		return true
	})
	slices.SortStableFunc(brackets, func(a, b bracket) int { return b.at - a.at })
	text := string(src)
	for _, b := range brackets {
		text = text[:b.at] + b.text + text[b.at:]
	}
	return []byte(text)
}

// end is where an expression ends; that of an index is said to end before its bracket.
func end(e syntax.Expr) syntax.Position {
	switch e := e.(type) {
	case *syntax.CondExpr:
		return end(e.False)
	case *syntax.BinaryExpr:
		return end(e.Y)
	case *syntax.UnaryExpr:
		return end(e.X)
	case *syntax.LambdaExpr:
		return end(e.Body)
	case *syntax.IndexExpr:
		return after(e.Rbrack)
	case *syntax.SliceExpr:
		return after(e.Rbrack)
	}
	_, at := e.Span()
	return at
}

func after(p syntax.Position) syntax.Position {
	p.Col++
	return p
}

func lineStarts(src []byte) []int {
	starts := []int{0}
	for line := range strings.Lines(string(src)) {
		starts = append(starts, starts[len(starts)-1]+len(line))
	}
	return starts
}

// offset is the place of a position, whose columns count characters, in bytes.
func offset(src []byte, lines []int, p syntax.Position) int {
	at := lines[p.Line-1]
	for range p.Col - 1 {
		_, n := utf8.DecodeRune(src[at:])
		at += n
	}
	return at
}
