package stdlib

import (
	"fmt"
	"strings"
)

// Stubs returns what editors read to complete and explain the library: stub files in
// the syntax of Python, by their path: "k8s.py" for @std//k8s.star.
func Stubs() (map[string]string, error) {
	files, err := documented()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n\n# Made by starling docs --stubs; do not edit it.\n", docString(f.doc, ""))
		for _, fn := range f.functions {
			fmt.Fprintf(&b, "\ndef %s:\n    %s\n    ...\n", fn.signature, docString(fn.doc, "    "))
		}
		out[strings.TrimSuffix(f.name, ".star")+".py"] = b.String()
	}
	return out, nil
}

// docString is text as a doc string whose further lines are indented.
func docString(text, indent string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `\"\"\"`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" {
			lines[i] = indent + line
		}
	}
	return `"""` + strings.Join(lines, "\n") + "\n" + indent + `"""`
}
