package docs

import (
	"strings"
	"testing"

	"github.com/starling-operator/starling/builtins"
)

// Every builtin is in the stub file of its namespace, with all its parameters.
func TestStubsHaveAllBuiltins(t *testing.T) {
	stubs := Stubs()
	for _, s := range builtins.Table() {
		file, name := "__init__.py", s.Name
		if i := strings.LastIndexByte(s.Name, '.'); i >= 0 {
			file, name = strings.ReplaceAll(s.Name[:i], ".", "/")+".py", s.Name[i+1:]
		}
		_, text, found := strings.Cut(stubs[file], "\ndef "+name+"(")
		if s.Constant() {
			found = strings.Contains(stubs[file], "\n"+name+": ")
		}
		if !found {
			t.Errorf("%s is not in %s", s.Name, file)
			continue
		}
		text, _, _ = strings.Cut(text, "\ndef ")
		for _, p := range s.Params {
			if !strings.Contains(text, p.Name+": ") || !strings.Contains(text, "\n        "+strings.TrimLeft(p.Name, "*")+": ") {
				t.Errorf("%s: parameter %s is missing", s.Name, p.Name)
			}
		}
	}
}

// Words of Python cannot be names in a stub.
func TestStubsAreReadable(t *testing.T) {
	for file, text := range Stubs() {
		if strings.Count(text, `"""`)%2 != 0 {
			t.Errorf("%s: a doc string does not end", file)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "def ") && !strings.HasSuffix(strings.TrimSuffix(line, "\n"), ":") {
				t.Errorf("%s: %s", file, line)
			}
		}
	}
}
