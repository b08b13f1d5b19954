package values

import (
	"fmt"
	"strings"
	"testing"
)

func TestPositions(t *testing.T) {
	bomb := "a0: &a0 {}\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d {<<: [%s]}\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 50))
	}
	for _, test := range []struct {
		name, text string
		path       []string
		line, near int
	}{
		{"a key", "a: 1\nb:\n  c: 2\n", []string{"b", "c"}, 3, 3},
		{"in braces", "{\"a\":\n {\"b.c\": 1}}", []string{"a", "b.c"}, 2, 2},
		{"what is not there", "a: 1\nb:\n  c: 2\n", []string{"b", "x", "y"}, 0, 2},
		{"nothing near", "a: 1\n", []string{"b"}, 0, 0},
		{"through an alias", "x: &x\n  y: 1\na: *x\n", []string{"a", "y"}, 2, 2},
		{"through itself", "x: &x\n  y: *x\n", []string{"x", "y", "y", "y", "z"}, 0, 2},
		{"merged, the first wins", "x: &x {k: 1}\ny: &y {k: 2}\na:\n  <<: [*y, *x]\n", []string{"a", "k"}, 2, 2},
		{"a bare word of older YAML", "on: 1\n\"yes\": 2\nNo: 3\n", []string{"false"}, 3, 3},
		{"merges without end", bomb, []string{"a11", "k"}, 0, 12},
		{"no YAML", "a: [", []string{"a"}, 0, 0},
		{"nothing", "", []string{"a"}, 0, 0},
		{"a list", "- a\n", []string{"0"}, 0, 0},
	} {
		p := newPositions([]byte(test.text))
		if line, near := p.line(test.path), p.nearest(test.path); line != test.line || near != test.near {
			t.Errorf("%s: line %d, nearest %d, want %d and %d", test.name, line, near, test.line, test.near)
		}
	}
}
