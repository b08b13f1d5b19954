package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The rules of CONTRIBUTING.md that a machine can check: where lines of pages end, how
// sentences begin, and which words and names are not used any more.

// bannedWords are for docs, comments and messages: a pattern, and the plain words for it.
var bannedWords = []struct{ banned, plain string }{
	{`likewise`, "the same, said again"},
	{`(is|are) to be`, "must be, will be, or the verb alone"},
	{`of (its|their|his|her|our|your|my) own`, "its own, or a separate"},
	{`whence|hence|thereof|whither`, "from there, so"},
	{`bidden`, "the before_delete hooks have succeeded"},
	{`nudge\w*`, "retry soon"},
	{`moot`, "out of date"},
	{`clothes?|clothed`, "give the schema"},
	{`acquit\w*`, "keep"},
	{`farewells?`, "removal"},
	{`vaults?`, "Secret"},
	{`shelf|shelves`, "stored part"},
}

// bannedNames are identifiers that were renamed, and their names today. One with a dot
// is a method or a field of that type; the others are words of any identifier.
var bannedNames = []struct{ banned, plain string }{
	{"bidden", "preDeleteDone"},
	{"parted", "postDeleteDone"},
	{"pass.calm", "clearError"},
	{"WriteRelease", "WriteRemoveFinalizer"},
	{"WriteHold", "WriteAddFinalizer"},
	{"nudge", "retrySoon"},
	{"parked", "awaitsChange"},
	{"module.told", "standings"},
	{"module.shown", "Standings.Show"},
	{"ofNobody", "readKey"},
	{"Engine.meet", "syncObjects"},
	{"Engine.seen", "observeObject"},
	{"Engine.lost", "deleteObject"},
	{"Engine.forget", "dropObject"},
	{"Engine.wipe", "clearSubject"},
	{"parting", "decideRemoved"},
	{"leaver", "module.removed"},
	{"leavers", "removed"},
	{"goners", "removed"},
	{"purge", "uninstall"},
	{"withdraw", "a module that comes back waits alone"},
	{"farewell", "removal"},
	{"moot", "stale"},
	{"births", "created"},
	{"restless", "endless"},
	{"spoken", "actionName"},
	{"unspoken", "withoutMessages"},
	{"vault", "certStore"},
	{"shelf", "storedPart"},
	{"kind.bare", "schemaPending"},
	{"clothe", "loadSchema"},
	{"acquit", "keepServed"},
	{"suite", "testrunner"},
	{"outbound", "httpclient"},
	{"inbound", "httplimit"},
	{"oneLine", "message.Line"},
	{"inOneLine", "message.List"},
	{"press", "handleKey"},
	{"identityOf", "effect.RefOf"},
	{"World.calm", "settleFailures"},
	{"Manager.stands", "isApplied"},
	{"hookMetrics.meets", "collision"},
	{"Session.told", "reported"},
	{"subscription.shown", "reported"},
	{"seen.told", "maskOutputs"},
}

// firstWords must not begin a sentence: they put the object before the subject.
var firstWords = regexp.MustCompile(`(?:^|[.!?:]\s|\n\n|\n *- |\| |\n#+ |\n#+ \d+\. |^#+ )\(?[*_]*(What|Whoever|Who)\b[^.\n]*`)

// maxColumn is where a line of a page ends at the latest, so that two stand side by side.
const maxColumn = 119

// prose is text that people read: where it begins, and what it is.
type prose struct {
	file string
	line int
	text string
}

// pages are what people read outside of the code.
func pages(t *testing.T) []string {
	t.Helper()
	return glob(t, "*.md", "docs/*.md", "docs/*/*.md", "examples/*/README.md", "e2e/*/README.md", "editors/*/README.md")
}

// texts are the docs that the reference is made of, and the tables of better words.
func texts(t *testing.T) []string { return glob(t, "builtins/docs/*.md", "*/*/wording/*.txt") }

func glob(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Prose of a page ends early enough; tables and code cannot be wrapped.
func TestHouseRulesOfColumns(t *testing.T) {
	for _, file := range append(pages(t), texts(t)...) {
		code := false
		for i, line := range strings.Split(read(t, file), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code || strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "## `") {
				continue
			}
			if n := utf8.RuneCountInString(line); n > maxColumn {
				t.Errorf("%s:%d: the line has %d columns; wrap it before column %d", file, i+1, n, maxColumn+1)
			}
		}
	}
}

func TestHouseRulesOfWords(t *testing.T) {
	var words []string
	for _, w := range bannedWords {
		words = append(words, w.banned)
	}
	any := regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`)
	for _, p := range append(proseOfPages(t), proseOfCode(t)...) {
		text := withoutCode(p.text)
		for _, at := range firstWords.FindAllStringSubmatchIndex(text, -1) {
			t.Errorf("%s:%d: %q begins a sentence; begin with its subject", p.file, lineOf(p, text, at[2]), text[at[2]:at[1]])
		}
		for _, at := range any.FindAllStringIndex(joined(text), -1) {
			word := joined(text)[at[0]:at[1]]
			for _, w := range bannedWords {
				if regexp.MustCompile(`(?i)^(?:` + w.banned + `)$`).MatchString(word) {
					t.Errorf("%s:%d: %q; write: %s", p.file, lineOf(p, text, at[0]), word, w.plain)
				}
			}
		}
	}
}

func TestHouseRulesOfNames(t *testing.T) {
	plain := map[string]string{}
	for _, n := range bannedNames {
		plain[n.banned] = n.plain
	}
	eachGoFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		found := func(pos token.Pos, name, plain string) {
			t.Errorf("%s:%d: the name %s is %s today", file, fset.Position(pos).Line, name, plain)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				for _, word := range append(camelWords(n.Name), n.Name) {
					if p := plain[word]; p != "" {
						found(n.Pos(), n.Name, p)
						break
					}
				}
			case *ast.FuncDecl:
				if n.Recv != nil {
					if p := plain[typeName(n.Recv.List[0].Type)+"."+n.Name.Name]; p != "" {
						found(n.Pos(), n.Name.Name, p)
					}
				}
			case *ast.TypeSpec:
				s, ok := n.Type.(*ast.StructType)
				for i := 0; ok && i < len(s.Fields.List); i++ {
					for _, name := range s.Fields.List[i].Names {
						if p := plain[n.Name.Name+"."+name.Name]; p != "" {
							found(name.Pos(), name.Name, p)
						}
					}
				}
			}
			return true
		})
	})
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// camelWords returns the words of an identifier in lower case.
func camelWords(name string) []string {
	var words []string
	from := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			words = append(words, strings.ToLower(name[from:i]))
			from = i
		}
	}
	return append(words, strings.ToLower(name[from:]))
}

// proseOfPages are the pages without their code; each line counts, so that lines of
// findings are those of the file.
func proseOfPages(t *testing.T) []prose {
	t.Helper()
	var out []prose
	for _, file := range append(pages(t), texts(t)...) {
		out = append(out, prose{file, 1, fenced.ReplaceAllStringFunc(read(t, file), blank)})
	}
	return out
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code     = regexp.MustCompile("(?s)`[^`]*`|\"[^\"\n]*\"|'[^' \n]+'")
	comment  = regexp.MustCompile(`(?m)^(.*?)# ?(.*)$`)
	docTexts = regexp.MustCompile(`(?s)"""(.*?)"""`)
)

// blank keeps the lines of a text, and nothing on them.
func blank(text string) string { return strings.Repeat("\n", strings.Count(text, "\n")) }

// withoutCode has each quoted name or text replaced by as many signs.
func withoutCode(text string) string {
	return code.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return '_'
		}, s)
	})
}

// joined has each line continue the one before, at the same offsets.
func joined(text string) string { return strings.ReplaceAll(text, "\n", " ") }

func lineOf(p prose, text string, offset int) int {
	return p.line + strings.Count(text[:offset], "\n")
}

// proseOfCode are comments and messages of Go, comments and doc strings of Starlark,
// and comments of YAML.
func proseOfCode(t *testing.T) []prose {
	t.Helper()
	var out []prose
	eachGoFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		for _, group := range f.Comments {
			var lines []string
			for _, c := range group.List {
				lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " "))
			}
			out = append(out, prose{file, fset.Position(group.Pos()).Line, strings.Join(lines, "\n")})
		}
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
					out = append(out, prose{file, fset.Position(lit.Pos()).Line, text})
				}
			}
			return true
		})
	})
	for _, file := range files(t, ".star", ".yaml") {
		text := read(t, file)
		for i, line := range strings.Split(text, "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				out = append(out, prose{file, i + 1, m[2]})
			}
		}
		if strings.HasSuffix(file, ".star") {
			for _, at := range docTexts.FindAllStringSubmatchIndex(text, -1) {
				out = append(out, prose{file, 1 + strings.Count(text[:at[2]], "\n"), text[at[2]:at[3]]})
			}
		}
	}
	return out
}

func eachGoFile(t *testing.T, do func(file string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	for _, file := range files(t, ".go") {
		if file == "test/house_test.go" { // it names what it looks for
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		do(file, fset, f)
	}
}

// files returns all files of the project with these endings.
func files(t *testing.T, endings ...string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.IsDir() && slices.Contains(endings, filepath.Ext(path)):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A step of a way is the function of that name in that file.
func TestWaysAreTheCode(t *testing.T) {
	steps := regexp.MustCompile("(?m)^\\| *\\d* *\\| `([a-z/]+\\.go)` \\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(read(t, "docs/ways.md"), -1)
	if len(steps) < 30 {
		t.Errorf("%d steps were found", len(steps))
	}
	for _, step := range steps {
		file, err := parser.ParseFile(token.NewFileSet(), step[1], nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}
		if !slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, is := d.(*ast.FuncDecl)
			return is && f.Name.Name == step[2]
		}) {
			t.Errorf("docs/ways.md names %s in %s, which has no such function", step[2], step[1])
		}
	}
}

// A file holds one thing: the tests of it aside, that takes fewer than 400 lines.
func TestHouseRulesOfFiles(t *testing.T) {
	for _, file := range files(t, ".go") {
		if lines := strings.Count(read(t, file), "\n"); lines >= 400 && !strings.HasSuffix(file, "_test.go") {
			t.Errorf("%s has %d lines; move something of it into a file of its own", file, lines)
		}
	}
}
