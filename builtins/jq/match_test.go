package jq

import (
	"context"
	"strings"
	"testing"

	"go.starlark.net/starlark"
)

// Looking for all places of an expression in a large text took minutes, within one step: it is refused at once.
func TestJQDoesNotMatchInLargeTexts(t *testing.T) {
	large := starlark.String(strings.Repeat("a ", 735<<9))
	for _, program := range []string{`gsub("\\s+"; " ")`, `[scan("a")]`, `[match("a"; "g")]`, `[splits(" ")]`, `split(" "; "g")`, `sub("a"; "b"; "g")`, `[capture("(?<x>a)"; "g")]`} {
		code, err := compile(program)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(context.Background(), func(int) error { return nil }, code, large, 1); err == nil || !strings.Contains(err.Error(), "larger than 32 KiB") {
			t.Errorf("%s: %v", program, err)
		}
		if _, err := run(context.Background(), func(int) error { return nil }, code, large[:1000], 1); err != nil {
			t.Errorf("%s of a small text: %v", program, err)
		}
	}
	for _, program := range []string{`split(" ") | length`, `test("b")`} {
		code, err := compile(program)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(context.Background(), func(int) error { return nil }, code, large, 1); err != nil {
			t.Errorf("%s: %v", program, err)
		}
	}
}
