package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/runtime/testrunner"
)

// testPrinter prints what tests came to, as go test does.
type testPrinter struct {
	out           io.Writer
	verbose, json bool
	root          string
	files, failed int
	tests         int // that have run
	junit         junitReport
	errs          io.Writer // takes why nobody knows the tests of a file
	unlisted      int       // files whose tests nobody knows
}

// broken shows the modules that do not load, once.
func (p *testPrinter) broken(root testRoot, gen *generation.Generation) {
	for _, name := range gen.Names {
		if err := gen.Modules[name].Err; err != nil {
			p.failed++
			path := filepath.ToSlash(filepath.Join(root.dir, name))
			p.junit.broken(path, err)
			p.event("start", path, "", 0, "")
			p.say(path, "", fmt.Sprintf("FAIL\t%s\n%s", path, indent(render(err))))
			p.event("fail", path, "", 0, "")
		}
	}
}

// list names the tests of a file.
func (p *testPrinter) list(f testrunner.File) {
	p.files++
	p.tests += len(f.Tests)
	path := filepath.ToSlash(filepath.Join(p.root, f.Path))
	if f.Err != nil {
		p.unlisted++
		fmt.Fprintln(p.errs, message.Clean(path+": "+f.Err.Error()))
	}
	for _, t := range f.Tests {
		fmt.Fprintf(p.out, "%s\t%s\n", message.Clean(path), t.Name)
	}
}

func (p *testPrinter) file(f testrunner.File) {
	p.files++
	path := filepath.ToSlash(filepath.Join(p.root, f.Path))
	p.junit.add(path, f)
	passed := 0
	p.event("start", path, "", 0, "")
	p.tests += len(f.Tests)
	for _, r := range f.Tests {
		word, action := "PASS", "pass"
		if r.Err != nil {
			word, action = "FAIL", "fail"
		} else {
			passed++
		}
		text := ""
		if r.Err != nil || p.verbose {
			text = p.logOf(r.Log)
		}
		if r.Err != nil {
			text += render(r.Err)
		}
		var explored *testrunner.ExploreError
		if p.verbose && errors.As(r.Err, &explored) {
			text += fmt.Sprintf("the log %s\n%s", strings.TrimSpace(explored.With()), indent(strings.Join(explored.Log, "\n")))
		}
		p.event("run", path, r.Name, 0, "")
		if r.Err != nil || p.verbose {
			p.say(path, r.Name, fmt.Sprintf("--- %s: %s (%.2fs)\n%s", word, r.Name, r.Took.Seconds(), indent(text)))
		}
		p.event(action, path, r.Name, r.Took, "")
	}
	word, action := "ok  ", "pass"
	if f.Failed() {
		p.failed++
		word, action = "FAIL", "fail"
	}
	text := ""
	if f.Err != nil {
		text = render(f.Err)
	}
	if len(f.Tests) == 0 && f.Err == nil {
		p.say(path, "", fmt.Sprintf("%s\t%s\t[no tests to run]\n", word, path))
	} else {
		p.say(path, "", fmt.Sprintf("%s\t%s\t%d of %d tests\t%.2fs\n%s", word, path, passed, len(f.Tests), f.Took.Seconds(), indent(text)))
	}
	p.event(action, path, "", f.Took, "")
}

// covered tells what has run of the files of a tree.
func (p *testPrinter) covered(files []script.Covered) {
	for _, f := range files {
		p.output(f.Path, testrunner.CoverageOf(f))
	}
}

// output is a line about a file.
func (p *testPrinter) output(path, text string) {
	if p.json {
		p.say(path, "", text+"\n")
		return
	}
	p.say(path, "", "\t"+path+"\t"+text+"\n")
}

// say prints text: with --json an event for each line, as go test has it.
func (p *testPrinter) say(path, test, text string) {
	if !p.json {
		fmt.Fprint(p.out, message.Lines(text)) // a tree may steer the terminal
		return
	}
	for line := range strings.Lines(text) {
		p.event("output", path, test, 0, line)
	}
}

// event prints one object in the form of `go test -json`: start, run, output, pass and
// fail. Package is the file.
func (p *testPrinter) event(action, file, test string, took time.Duration, output string) {
	if !p.json {
		return
	}
	data, err := json.Marshal(struct {
		Time            time.Time
		Action, Package string
		Test            string  `json:",omitempty"`
		Elapsed         float64 `json:",omitempty"`
		Output          string  `json:",omitempty"`
	}{time.Now(), action, file, test, took.Seconds(), output})
	if err == nil {
		fmt.Fprintf(p.out, "%s\n", data)
	}
}

// render is an error in its long form, with source lines and differences.
func render(err error) (text string) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range many.Unwrap() {
			text += render(err)
		}
		return text
	}
	text = err.Error() + "\n"
	if at, ok := errors.AsType[*script.Error](err); ok {
		text = at.Render()
	}
	if explored, ok := errors.AsType[*testrunner.ExploreError](err); ok && explored.Err != nil { // Render does not know of it
		text = explored.With() + text
	}
	return text + testrunner.Differences(err)
}

func indent(text string) string {
	if text == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}

var nextTry = regexp.MustCompile(` \(next try in [^)]*\)$`)

// logOf is what hooks have logged: unless all is asked for, without debug lines, and of one that tries again and again
// the first line alone, with how often it came.
func (p *testPrinter) logOf(log []string) (text string) {
	last, again := "", 0
	more := func() {
		if again > 0 {
			text += fmt.Sprintf("    (and %d times more)\n", again)
		}
		again = 0
	}
	for _, line := range log {
		short := nextTry.ReplaceAllString(line, "")
		switch {
		case p.verbose:
		case strings.HasPrefix(line, "debug: "):
			continue
		case short == last:
			again++
			continue
		}
		more()
		text, last = text+line+"\n", short
	}
	more()
	return text
}
