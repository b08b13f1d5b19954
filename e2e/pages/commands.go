// Package pages finds the commands of the pages of the repository, and says which test runs each of them.
package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Command is one command of a fence "sh". A command that goes on over several lines is one.
type Command struct {
	// Page is the path of its page in the repository.
	Page string
	// Text is as it stands there, with its comment.
	Text string
	// RunBy is the name of the test that runs it, or the reason why none does. Empty: nobody has thought of it.
	RunBy string
}

var shellFence = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")

// Commands are all commands of the pages below a folder, page by page, in the order in which a reader comes to them.
func Commands(root string) (out []Command, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "bin" || d.Name() == "node_modules" || d.Name() == "testdata" || d.Name()[0] == '.'):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		page, err := filepath.Rel(root, path)
		for _, fence := range shellFence.FindAllStringSubmatch(string(text), -1) {
			for _, command := range split(fence[1]) {
				out = append(out, Command{Page: page, Text: command, RunBy: runBy(page, command)})
			}
		}
		return err
	})
	return out, err
}

// split takes the commands of a fence apart: a line whose end is escaped or quoted goes on.
func split(fence string) (out []string) {
	var command string
	for line := range strings.Lines(fence) {
		line = strings.TrimSpace(line)
		if command == "" && strings.HasPrefix(line, "#") {
			continue
		}
		command += line
		if rest, goesOn := strings.CutSuffix(command, `\`); goesOn {
			command = rest
			continue
		}
		if quoted(command) {
			command += "\n"
			continue
		}
		if command != "" {
			out = append(out, command)
		}
		command = ""
	}
	if command != "" { // it does not end, so no test will run it
		out = append(out, command)
	}
	return out
}

// quoted says whether a command ends within quotes. A comment has none.
func quoted(command string) bool {
	quote, before := rune(0), ' '
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == '#' && before == ' ':
			return false
		}
		before = r
	}
	return quote != 0
}
