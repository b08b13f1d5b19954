package wording

import (
	"fmt"
	"testing"
)

const text = `# Seen with example.org/dependency v1.2.3

^got import ~ \bimport (json|yaml)\b => there is no import ($1 is there already)
^got import => there is no
    import
: unknown (\w+)$ => ($1 is none)

## ^got (?:x|y) ~ \b(?:…)\b => there is no … (leave it out)
enum|(?P<at>abc) => $1

## Others.
^must be (\w+)$ => write $1 (a hint)
`

func TestFind(t *testing.T) {
	table := Read(text, nil)
	for _, tc := range []struct {
		m                  Mistake
		row, message, hint string
		col                int
	}{
		{Mistake{"got import, want x", "  import json", 9}, "^got import ~ \\bimport (json|yaml)\\b => there is no import ($1 is there already)", "there is no import", "json is there already", 3},
		{Mistake{"got import, want x", "a = 1; import yaml", 7}, "^got import => there is no import", "there is no import", "", 7},
		{Mistake{"f: unknown word", "", 5}, `: unknown (\w+)$ => ($1 is none)`, "", "word is none", 5},
		{Mistake{"got x, want z", "é = abc", 9}, "enum|(?P<at>abc) => $1", "there is no abc", "leave it out", 5},
		{Mistake{"must be int", "", 1}, `^must be (\w+)$ => write $1 (a hint)`, "write int", "a hint", 1},
	} {
		got, ok := table.Find(tc.m)
		if !ok || got.Text != tc.row || got.Message != tc.message || got.Hint != tc.hint || got.Col != tc.col {
			t.Errorf("%v: got %v %q %q %d", tc.m, got.Row, got.Message, got.Hint, got.Col)
		}
	}
	for _, said := range []string{"", "got y", "nothing is known of this"} {
		if got, ok := table.Find(Mistake{Said: said}); ok || table.Hint(said) != "" {
			t.Errorf("%q: got %s", said, fmt.Sprint(got))
		}
	}
}

// The text that is looked for before a pattern is one that all of its matches hold.
func TestPartsOfPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		`^got load, want `:                    "got load, want ",
		`cannot .* frozen (hash table|list)$`: " frozen ",
		`^can't assign to \.(\w+) field$`:     "can't assign to .",
		`a one|a two`:                         "a ",
		`one|two`:                             "",
		`(?i)some text`:                       "",
		`(a text)?`:                           "",
	} {
		if got := partOf(pattern); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
