// Command fuzz runs the fuzz targets of a Go module, one after the other, and ends at
// the first that finds something.
//
//	fuzz -dir . -time 30s [-only FuzzYAML,FuzzFilter]
//
// go test -fuzz now and then fails at its end with "context deadline exceeded" and
// nothing else, when a worker answers too late: such a run has found nothing, and is
// done once more; a machine where this goes on is slow, and nothing is wrong. A run that found something has written the input to testdata/fuzz,
// or says in which seed it failed, and is never repeated.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tries is how often a run that ends for no reason of ours is done.
const tries = 3

func main() {
	dir := flag.String("dir", ".", "`folder` of the Go module")
	each := flag.Duration("time", 30*time.Second, "how long each target runs")
	only := flag.String("only", "", "`names` of targets, with commas between, or the beginning of names; empty: all")
	flag.Parse()
	if err := run(*dir, *each, *only); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(dir string, each time.Duration, only string) error {
	all, err := targets(dir)
	if err != nil {
		return err
	}
	if only != "" {
		if all, err = pick(all, strings.Split(only, ",")); err != nil {
			return err
		}
	}
	for _, t := range all {
		fmt.Printf("--- %s %s\n", t.dir, t.name)
		if err := t.fuzz(dir, each); err != nil {
			return fmt.Errorf("%s in %s: %w", t.name, t.dir, err)
		}
	}
	return nil
}

// target is one function FuzzX of a package.
type target struct{ dir, name string }

var declared = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// targets finds all targets below dir.
func targets(dir string) ([]target, error) {
	var out []target
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(dir, filepath.Dir(path))
		for _, found := range declared.FindAllSubmatch(text, -1) {
			out = append(out, target{"./" + filepath.ToSlash(pkg), string(found[1])})
		}
		return err
	})
	slices.SortFunc(out, func(a, b target) int { return strings.Compare(a.dir+a.name, b.dir+b.name) })
	return out, err
}

// pick returns the targets whose names begin with one of these, each of which must
// name one.
func pick(all []target, names []string) ([]target, error) {
	var out []target
	for _, name := range names {
		before := len(out)
		for _, t := range all {
			if strings.HasPrefix(t.name, name) && !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("there is no target %s", name)
		}
	}
	return out, nil
}

func (t target) fuzz(dir string, each time.Duration) error {
	for n := 1; ; n++ {
		var out bytes.Buffer
		cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "-fuzzminimizetime", "1s", t.dir)
		cmd.Dir = dir
		cmd.Stdout = io.MultiWriter(os.Stdout, &out)
		cmd.Stderr = cmd.Stdout
		err := cmd.Run()
		if err == nil || !late(out.String()) {
			return err
		}
		if n == tries {
			fmt.Printf("--- %s ended late %d times, and found nothing\n", t.name, n)
			return nil
		}
		fmt.Printf("--- %s ended late and found nothing: once more\n", t.name)
	}
}

var failures = regexp.MustCompile(`(?m)^\s+(\S.*)$`)

// late says that a run has failed with nothing but the deadline: below its FAIL line,
// where a finding is told, there is only that one line.
func late(out string) bool {
	_, after, failed := strings.Cut(out, "--- FAIL: ")
	if !failed || strings.Contains(out, "Failing input written to") || strings.Contains(out, "panic:") {
		return false
	}
	_, after, _ = strings.Cut(after, "\n")
	told := failures.FindAllStringSubmatch(after, -1)
	return len(told) == 1 && strings.TrimSpace(told[0][1]) == "context deadline exceeded"
}
