package test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/builtins/docs"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

var update = flag.Bool("update", false, "write the pages that are made from the code")

// docs/reference.md is made from the declaration table, docs/std.md from the doc
// strings of the library, docs/recipes.md from examples/recipes, the end of docs/ctx.md from the table of ctx.
func TestReferenceIsUpToDate(t *testing.T) {
	for page, write := range map[string]func(io.Writer) error{
		"docs/reference.md": docs.WriteReference,
		"docs/std.md":       stdlib.WriteReference,
		"docs/recipes.md":   writeRecipes,
		"docs/ctx.md":       writeCtx,
	} {
		var want bytes.Buffer
		if head, _, made := strings.Cut(read(t, page), madeBelow); made {
			want.WriteString(head + madeBelow)
		}
		if err := write(&want); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(page, want.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(page)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s is not what the code says (%v); run: go test ./test -run Reference -update", page, err)
		}
	}
}

// madeBelow stands in a page that is written by hand down to here.
const madeBelow = "<!-- All below is made from the code by: go test ./test -run Reference -update -->\n"

type block struct{ file, language, text string }

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```")

// blocks returns the code of all pages that people read.
func blocks(t *testing.T) []block {
	t.Helper()
	var out []block
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
			out = append(out, block{file, m[1], m[2]})
		}
	}
	return out
}

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// A page shows no hook that does not load.
func TestStarlarkInDocsLoads(t *testing.T) {
	n := 0
	for _, b := range blocks(t) {
		if b.language != "python" && b.language != "starlark" {
			continue
		}
		if b.file == "docs/recipes.md" {
			continue // made from modules, which load and have tests
		}
		n++
		path := "docs/hooks/page.star"
		files := fstest.MapFS{"docs/module.star": {Data: []byte(`module(grants = [grant("v1", "Secret", verbs = ["list", "watch"], namespaces = ["*"]),
			grant("*", "*", verbs = ["mutate", "finalize"]), grant("apiextensions.k8s.io/v1", "CustomResourceDefinition", verbs = ["convert"])])`)}}
		switch {
		case strings.Contains(b.text, "module("):
			path = "docs/module.star"
		case strings.Contains(b.text, "before_all("):
			path = "global/hooks/page.star"
		}
		isTest := strings.Contains(b.text, "def test_")
		files[path] = &fstest.MapFile{Data: []byte(b.text)}
		read, err := tree.Read(files, tree.Options{Empty: isTest})
		if err != nil {
			t.Fatal(err)
		}
		if isTest {
			read = read.Alone(path)
		}
		g := generation.Load(context.Background(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
			Log: func(string) builtins.Logger { return noLog{} }})
		// Charts of registries are not fetched here.
		if err := g.All()[0].Err; err != nil && !strings.Contains(err.Error(), tree.LockFile+" names no chart") {
			t.Errorf("%s: %v\n%s", b.file, err, b.text)
		}
	}
	if n == 0 {
		t.Error("no Starlark was found")
	}
}

func TestYAMLInDocsParses(t *testing.T) {
	for _, b := range blocks(t) {
		if b.language != "yaml" {
			continue
		}
		for _, document := range strings.Split(b.text, "\n---\n") {
			var v any
			if err := yaml.UnmarshalStrict([]byte(document), &v); err != nil {
				t.Errorf("%s: %v\n%s", b.file, err, document)
			}
		}
	}
}

// Commands in pages name targets, packages, folders and flags that there are.
func TestCommandsInDocsExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := starlingBinary()
	if err != nil {
		t.Fatal(err)
	}
	help, program := map[string]string{}, filepath.Join(bin, "starling")
	for _, b := range blocks(t) {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(line, " #")
			words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "$ "))
			if len(words) == 0 {
				continue
			}
			fail := func(what string) { t.Errorf("%s: %q: there is no %s", b.file, strings.TrimSpace(line), what) }
			for i, word := range words {
				if word == "--modules" && i+1 < len(words) && strings.HasPrefix(words[i+1], "examples/") {
					if _, err := os.Stat(words[i+1]); err != nil {
						fail("folder " + words[i+1])
					}
				}
			}
			switch name := words[0]; {
			case name == "make":
				for _, target := range words[1:] {
					target, _, set := strings.Cut(target, "=")
					if set { // a variable
						if !strings.Contains(string(makefile), "$("+target+")") {
							fail("variable " + target)
						}
						continue
					}
					if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
						fail("target " + target)
					}
				}
			case name == "go" && len(words) > 2:
				for _, word := range words[2:] {
					if folder := strings.TrimSuffix(word, "/..."); strings.HasPrefix(word, "./") {
						if _, err := os.Stat(folder); err != nil {
							fail("package " + word)
						}
					}
				}
			case strings.HasSuffix(name, "starling") && len(words) > 1:
				checkFlags(t, program, help, words[1:], fail)
			}
		}
	}
}

// checkFlags looks the flags of a starling command up in its help.
func checkFlags(t *testing.T, program string, help map[string]string, words []string, fail func(string)) {
	t.Helper()
	command := words[0]
	if slices.Contains([]string{"get", "explain", "describe", "new"}, command) && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		command += " " + words[1]
	}
	if help[command] == "" {
		out, err := exec.Command(program, append(strings.Fields(command), "--help")...).CombinedOutput()
		if err != nil {
			fail("command " + command)
			return
		}
		help[command] = string(out)
	}
	for _, word := range words {
		flag, _, _ := strings.Cut(word, "=")
		if strings.HasPrefix(flag, "-") && !strings.Contains(help[command], flag) {
			fail("flag " + flag)
		}
	}
}

// Each test that a page names as proof is there.
func TestProofsInDocsExist(t *testing.T) {
	tests := namesOfTests(t)
	for _, page := range glob(t, "docs/*.md", "docs/decisions/*.md") {
		for _, m := range nameOfTest.FindAllStringSubmatch(read(t, page), -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", page, m[1])
			}
			if script := scriptOf(m[1] + m[2]); script != "" && !exists(script) {
				t.Errorf("%s names %s%s, and there is no %s", page, m[1], m[2], script)
			}
		}
	}
}

// Each feature of other projects has our way and its tests, or says what is not yet there, or why it will not be.
func TestEachRowOfFromPagesHasAProofOrAReason(t *testing.T) {
	reason := regexp.MustCompile("^not yet(:? .+)?$|^not, because .+")
	for page, want := range map[string]struct{ rows, notYet int }{ // at least, at most
		"docs/hooks.md":               {40, 0},
		"docs/from-addon-operator.md": {210, 0}, "docs/from-metacontroller.md": {40, 5}, "docs/from-kro.md": {40, 6}, "docs/from-flux.md": {50, 7},
	} {
		promises := proofs(t)[page]
		rows, notYet, head := 0, 0, []string(nil)
		for line := range strings.Lines(read(t, page)) {
			cells := cellsOf(line)
			switch {
			case strings.HasPrefix(line, "|---"):
				continue
			case len(cells) == 0:
				head = nil
				continue
			case head == nil:
				head = cells
				continue
			}
			rows++
			why := strings.Join(cells[2:], " ")
			proven := promises[cells[0]] != ""
			if len(cells) != len(head) || cells[0] == "" || !proven && !reason.MatchString(why) {
				t.Errorf("%s: %q: want a feature, our way, and its tests in docs/proofs.md, or \"not yet\" or \"not, because …\" in a third column", page, line)
			} else if proven && cells[1] == "" {
				t.Errorf("%s: %q: tests, and no word on our way", page, line)
			} else if strings.HasPrefix(why, "not yet") {
				notYet++
			}
		}
		if rows < want.rows || notYet > want.notYet {
			t.Errorf("%s: there are %d rows, and %d say \"not yet\"; want at least %d, and at most %d", page, rows, notYet, want.rows, want.notYet)
		}
	}
}

// Each feature that a user of shell-operator or addon-operator may miss has its row in one of the two pages, with
// tests or a reason: the first cell is what test/testdata/features.txt says, or no other one holds these words.
func TestEachFeatureHasARow(t *testing.T) {
	answered := map[string]bool{} // by first cell
	for _, page := range []string{"docs/hooks.md", "docs/from-addon-operator.md"} {
		promises := proofs(t)[page]
		for line := range strings.Lines(read(t, page)) {
			if cells := cellsOf(line); len(cells) > 1 {
				answered[cells[0]] = promises[cells[0]] != "" || len(cells) == 3 && strings.HasPrefix(cells[2], "not, because ")
			}
		}
	}
	features := 0
	for line := range strings.Lines(read(t, "test/testdata/features.txt")) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		features++
		cells := strings.Split(line, "\t")
		if len(cells) != 3 || cells[2] == "" {
			t.Errorf("test/testdata/features.txt: %q: want a part, a feature and words of its row, with tabs between them", line)
			continue
		}
		words := strings.ReplaceAll(cells[2], "/", "|")
		var rows []string
		for first := range answered {
			if strings.Contains(first, cells[2]) || strings.Contains(first, words) {
				rows = append(rows, first)
			}
		}
		if _, is := answered[cells[2]]; is {
			rows = []string{cells[2]}
		}
		if len(rows) != 1 {
			t.Errorf("%s %s: the feature of one row of docs/hooks.md and docs/from-addon-operator.md has to hold %q, of these do: %q", cells[0], cells[1], cells[2], rows)
		} else if !answered[rows[0]] {
			t.Errorf("%s %s: the row %q has neither tests nor a reason", cells[0], cells[1], rows[0])
		}
	}
	if features < 454 {
		t.Errorf("there are %d features", features)
	}
}

// Each complaint about other frameworks names where it was made, how it is here, and has tests.
func TestEachComplaintHasAProof(t *testing.T) {
	promises := proofs(t)["docs/controllers.md"]
	_, section, _ := strings.Cut(read(t, "docs/controllers.md"), "\n## Complaints about other frameworks\n")
	section, _, _ = strings.Cut(section, "\n## ")
	issue, rows := regexp.MustCompile(`#\d+`), map[string]int{}
	for line := range strings.Lines(section) {
		cells := cellsOf(line)
		if len(cells) == 0 || cells[0] == "framework" {
			continue
		}
		if len(cells) != 3 || !issue.MatchString(cells[1]) || cells[2] == "" || promises[cells[1]] == "" {
			t.Errorf("%q: want a framework, a complaint with its issues, how it is here, and tests in docs/proofs.md", line)
		}
		rows[cells[0]]++
	}
	for framework, want := range map[string]int{"metacontroller": 4, "kro": 3, "kopf": 1, "Kyverno generate": 2, "operator-sdk": 1} {
		if rows[framework] < want {
			t.Errorf("%s has %d rows, want %d", framework, rows[framework], want)
		}
	}
}

// Each decision has its own number, which its file and its title tell. One that is under way elsewhere has one, too.
func TestDecisionsHaveNumbers(t *testing.T) {
	files, err := filepath.Glob("docs/decisions/0*.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		number, _, _ := strings.Cut(filepath.Base(file), "-")
		title := "# " + strings.TrimLeft(number, "0") + ". "
		if len(number) != 4 || numbers[number] || !strings.HasPrefix(string(text), title) {
			t.Errorf("%s has no number of its own, or its title does not begin with %q", file, title)
		}
		numbers[number] = true
	}
}
