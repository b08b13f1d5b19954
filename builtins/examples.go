package builtins

import (
	_ "embed" // of the examples
	"strings"
)

// examples has a part for each builtin: a line "## " and its name, and its code. Lines behind ">>> " are typed in a
// session, what it answers follows; other code is that of a file. Tests run all of them.
//
//go:embed examples.txt
var examples string

// Example returns code that shows how a builtin is called; "" for one that has none.
func Example(name string) string {
	_, text, found := strings.Cut("\n"+examples, "\n## "+name+"\n")
	if !found {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.TrimSpace(text) + "\n"
}
