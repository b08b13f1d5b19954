package test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	shell "github.com/starling-operator/starling/e2e/pages"
)

// languages of code in pages, and the tests that read it. A page shows nothing that none of them sees.
var languages = map[string]string{
	"python":  "TestStarlarkInDocsLoads",
	"bash":    "TestPairsOfOthersRun", // the left of each pair
	"sh":      "TestEachCommandIsRun",
	"console": "TestSessions",
	"repl":    "TestSessionsInDocsAreTrue",
	"yaml":    "TestYAMLInDocsParses",
	"json":    "TestEachSnippetIsRead",
	"helm":    "TestSessions, which renders the chart that it is a file of",
	"toml":    "TestEachSnippetIsRead",
	"lua":     "TestLuaInDocsRuns (tools/clients)",
	"text":    "", // what a program has printed, or a picture
	"":        "",
}

// sessionsElsewhere are pages whose sessions need a cluster.
var sessionsElsewhere = []string{"docs/controllers.md"} // e2e: TestApplication

var (
	indentedCode  = regexp.MustCompile(`(?m)^[^\s|>*-].*\n\n {4,}\S`)
	indentedFence = regexp.MustCompile("(?m)^(?: +```| *~~~)")
)

// Code in pages stands in fences of a language that a test reads, and sessions where they are run: text with a prompt
// is a session, and code that is only indented would be seen by no test.
func TestEachSnippetIsRead(t *testing.T) {
	for _, b := range blocks(t) {
		if _, known := languages[b.language]; !known {
			t.Errorf("%s: no test reads the language %q of\n%s", b.file, b.language, b.text)
		}
		prompt := strings.HasPrefix(b.text, "$ ") || strings.Contains(b.text, "\n$ ")
		switch {
		case b.language == "console" && !slices.Contains(sessions, b.file) && !slices.Contains(sessionsElsewhere, b.file):
			t.Errorf("%s: nobody runs its sessions: add it to sessions", b.file)
		case (b.language == "text" || b.language == "") && prompt:
			t.Errorf("%s: a session that nobody runs; its language is console, or repl\n%s", b.file, b.text)
		case b.language == "helm" && !slices.Contains(sessions, b.file):
			t.Errorf("%s: nobody renders\n%s", b.file, b.text)
		case b.language == "json" && !json.Valid([]byte(b.text)):
			t.Errorf("%s: no JSON:\n%s", b.file, b.text)
		case b.language == "toml":
			var v map[string]any
			if err := toml.Unmarshal([]byte(b.text), &v); err != nil {
				t.Errorf("%s: no TOML: %v\n%s", b.file, err, b.text)
			}
		}
	}
	for _, page := range pages(t) {
		text := read(t, page)
		if at := indentedFence.FindString(text); at != "" {
			t.Errorf("%s: %q: a fence that tests do not see: begin it with ``` at the left", page, at)
		}
		if at := indentedCode.FindString(fence.ReplaceAllString(text, "")); at != "" {
			t.Errorf("%s: %q: code that tests do not see: put it between fences", page, at)
		}
	}
}

// Each command of a page is run as it stands there by a test that there is, or the reason why none does is known.
func TestEachCommandIsRun(t *testing.T) {
	commands, err := shell.Commands(".")
	if err != nil {
		t.Fatal(err)
	}
	tests, ran := namesOfTests(t), 0
	for _, c := range commands {
		if c.RunBy == "" {
			t.Errorf("%s: no test runs %q: add a row to the table of e2e/pages", c.Page, c.Text)
		}
		for _, name := range regexp.MustCompile(`\bTest\w+`).FindAllString(c.RunBy, -1) {
			if !tests[name] {
				t.Errorf("%s: %q is run by %s, which is no test", c.Page, c.Text, name)
			}
		}
		if strings.HasPrefix(c.RunBy, "Test") {
			ran++
		}
	}
	if ran < 200 {
		t.Errorf("only %d commands of %d are run", ran, len(commands))
	}
}
