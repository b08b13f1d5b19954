package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/troubleshooting.md has each state that modules, hooks and the user's config may be in, and no other, with
// something to do; and what it says of reasons is what the code says.
func TestTroubleshootingHasAllStates(t *testing.T) {
	page := read(t, "docs/troubleshooting.md")
	file, err := parser.ParseFile(token.NewFileSet(), "modules/status/status.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string][]string{} // by type
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		typ, is := spec.Type.(*ast.Ident)
		if lit, isText := spec.Values[0].(*ast.BasicLit); is && isText {
			text, _ := strconv.Unquote(lit.Value)
			states[typ.Name] = append(states[typ.Name], text)
		}
		return true
	})
	said := textsOfCode(t)
	for typ, heading := range map[string]string{"ModuleState": "States of a module", "HookState": "States of a hook", "ConfigState": "States of the user's config"} {
		_, section, _ := strings.Cut(page, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var shown []string
		for line := range strings.Lines(section) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| state ") {
				continue
			}
			if state := strings.Trim(strings.TrimSpace(cells[0]), "`"); state != "" {
				shown = append(shown, state)
			}
			if typ != "ModuleState" {
				continue
			}
			if len(cells) != 4 || strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
				t.Errorf("%q: want a state, its reason, what it means and what to do", line)
				continue
			}
			for _, message := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				if strings.HasSuffix(message[1], "()") {
					continue // a function
				}
				for _, piece := range strings.Split(message[1], "…") {
					if piece = strings.TrimSpace(piece); !saidByCode(said, piece) {
						t.Errorf("%q: nothing in the code says %q", message[1], piece)
					}
				}
			}
		}
		slices.Sort(shown)
		slices.Sort(states[typ])
		if len(shown) == 0 || !slices.Equal(shown, states[typ]) {
			t.Errorf("docs/troubleshooting.md, %s: it has %q, the code %q", heading, shown, states[typ])
		}
	}
}

// textsOfCode are the texts in the code of the engine and of modules.
func textsOfCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	eachGoFile(t, func(file string, _ *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || !strings.HasPrefix(file, "runtime/") && !strings.HasPrefix(file, "modules/") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					all.WriteString(text + "\n")
				}
			}
			return true
		})
	})
	return all.String()
}

// saidByCode says whether a piece of a message is in one text of the code, or in two that follow each other.
func saidByCode(said, piece string) bool {
	if strings.Contains(said, piece) {
		return true
	}
	words := strings.Fields(piece)
	for i := 1; i < len(words); i++ {
		if strings.Contains(said, strings.Join(words[:i], " ")) && strings.Contains(said, strings.Join(words[i:], " ")) {
			return true
		}
	}
	return false
}
