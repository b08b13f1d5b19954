package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/starling-operator/starling/cmd/starling/command"
	"github.com/starling-operator/starling/cmd/starling/simulation"
)

var (
	fencedInPages = regexp.MustCompile("(?ms)^ *```([^\n]*)\n(.*?)^ *```")
	inlineInPages = regexp.MustCompile("`([^`]+)`")
)

// Each starling command of each page, in a fence or within a sentence, has subcommands and flags that there are, and
// as many names as it takes: behind a pipe, xargs or kubectl exec, too.
func TestCommandsOfPages(t *testing.T) {
	n := 0
	for page, text := range pagesOfTheRepository(t) {
		check := func(line string, whole bool) {
			for _, words := range starlingCommands(line) {
				n++
				if err := understood(words, whole); err != nil {
					t.Errorf("%s: starling %s: %v", page, strings.Join(words, " "), err)
				}
			}
		}
		for _, m := range fencedInPages.FindAllStringSubmatch(text, -1) {
			body := strings.ReplaceAll(m[2], "\\\n", " ")
			for line := range strings.Lines(body) {
				typed, isTyped := strings.CutPrefix(line, "$ ")
				if isTyped || m[1] == "sh" {
					check(typed, true)
				}
			}
		}
		for _, m := range inlineInPages.FindAllStringSubmatch(fencedInPages.ReplaceAllString(text, ""), -1) {
			if line := strings.Join(strings.Fields(m[1]), " "); strings.Contains(line, "starling ") {
				check(line, false)
			}
		}
	}
	if n < 200 {
		t.Errorf("only %d commands were found", n)
	}
}

// docs/monitoring.md names each command that asks the pods of a cluster, and README each list of get.
func TestPagesNameTheCommands(t *testing.T) {
	pages := pagesOfTheRepository(t)
	_, outside, _ := strings.Cut(pages["docs/monitoring.md"], "\n### From outside\n")
	outside, _, _ = strings.Cut(outside, "\n```")
	var lists []string
	command.Each(newRootCommand(), func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		if cmd.Hidden || len(path) == 0 {
			return
		}
		if path[0] == "get" && len(path) > 1 {
			lists = append(lists, path[1])
		}
		if cmd.Flags().Lookup("pod") != nil && !strings.Contains(outside, "`"+path[0]+"`") && !strings.Contains(outside, "`"+strings.Join(path, " ")+"`") {
			t.Errorf("docs/monitoring.md, From outside, does not name %s", cmd.CommandPath())
		}
	})
	named := regexp.MustCompile("`get ([a-z|]+)`").FindStringSubmatch(pages["README.md"])
	if named == nil {
		t.Fatal("README.md names no lists of get")
	}
	said := strings.Split(named[1], "|")
	slices.Sort(said)
	slices.Sort(lists)
	if !slices.Equal(said, lists) {
		t.Errorf("README.md says that get has %v, and it has %v", said, lists)
	}
}

// Commands that a page must not show are seen.
func TestCommandsOfPagesAreSeen(t *testing.T) {
	for _, line := range []string{
		"starling get fooos", "starling get modules --nosuch", "kubectl starling get fooos", "starling explain values",
		"kubectl exec deploy/starling -- starling nosuch --state-dir /state", "starling new recipe", "A=b starling nosuch",
		"starling get modules -o name | xargs -n 1 starling nosuch", "echo 1 && bin/starling plan --offlin",
		"starling check --strict=maybe", `starling run "two words"  three # starling get modules`,
	} {
		commands := starlingCommands(line)
		if len(commands) == 0 {
			t.Errorf("%s: no command was found", line)
		} else if !slices.ContainsFunc(commands, func(words []string) bool { return understood(words, true) != nil }) {
			t.Errorf("%s: nothing is wrong", line)
		}
	}
	for _, line := range []string{"kubectl -n starling-system scale deployment starling --replicas=0", "# starling nosuch", "echo 'starling nosuch'"} {
		if commands := starlingCommands(line); len(commands) > 0 {
			t.Errorf("%s: %q", line, commands)
		}
	}
}

// pagesOfTheRepository are all pages that people read, by their path.
func pagesOfTheRepository(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, "../../")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// understood says what starling would not take of the words after its name; of a part of a command that stands within
// a sentence the names may be missing.
func understood(words []string, whole bool) error {
	root := newRootCommand()
	cmd, rest, err := root.Find(simulation.LikeGo(words))
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		if !whole && strings.HasPrefix(err.Error(), "flag needs an argument") {
			return nil
		}
		return err
	}
	named := cmd.Flags().Args()
	if help, _ := cmd.Flags().GetBool("help"); help || len(named) == 0 && !whole {
		return nil
	}
	// A group takes module/web, as -o name prints it, and the name of a builtin.
	if cmd.HasSubCommands() && len(named) > 0 && !strings.ContainsAny(named[0], "/.") {
		return command.UnknownCommand(cmd, named[0])
	}
	return cmd.ValidateArgs(named)
}

// starlingCommands are the words after the name of each starling command in a line of shell.
func starlingCommands(line string) (out [][]string) {
	for _, words := range simpleCommands(line) {
		for len(words) > 0 && assigns.MatchString(words[0]) {
			words = words[1:]
		}
		for i, word := range words {
			first := i == 0 || words[i-1] == "--" || words[0] == "xargs" || words[0] == "exec" || i == 1 && words[0] == "kubectl"
			if first && (word == "starling" || word == "bin/starling") {
				out = append(out, words[i+1:])
				break
			}
		}
	}
	return out
}

var assigns = regexp.MustCompile(`^[A-Za-z_]+=`)

// simpleCommands splits a line of shell at |, ; and &, into words without their quotes. Comments and files that
// are written or read are left out, and so are [parts that may be missing] and …, as people write them.
func simpleCommands(line string) (out [][]string) {
	var words []string
	var word strings.Builder
	inWord, toFile, quote := false, false, rune(0)
	endWord := func() {
		text := word.String()
		if inWord && !toFile && text != "…" && (text == "" || text[0] != '[') {
			words = append(words, text)
		}
		if inWord {
			toFile = false
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			out = append(out, words)
		}
		words = nil
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == '#' && !inWord:
			endCommand()
			return out
		case r == '>' || r == '<':
			endWord()
			toFile = true
		case strings.ContainsRune("|;&\n", r):
			endCommand()
		case r == ' ' || r == '\t':
			endWord()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	endCommand()
	return out
}
