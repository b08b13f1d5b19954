package test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// starlingBinary is the folder of the command, which is built once for all tests.
var starlingBinary = sync.OnceValues(func() (string, error) {
	build := exec.Command("go", "build", "-trimpath", "-o", binaries, "-ldflags=-s -w", "./cmd/starling")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make builds it: it need not be compiled twice
	build.Stderr = os.Stderr
	return binaries, build.Run()
})

// binaries is a folder that goes when all tests have ended.
var binaries string

// TestMain runs all tests at the top of the project: what they read is named as it stands there.
func TestMain(m *testing.M) {
	err := os.Chdir("..")
	if err != nil {
		panic(err)
	}
	if binaries, err = os.MkdirTemp("", "starling-docs"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(binaries)
	os.Exit(code)
}

// pages with sessions, each run from its top in a folder with the examples alone.
var sessions = []string{"docs/first-hour.md", "docs/explain.md"}

var (
	// A block between fences: a file, named in the line above, or a session.
	sessionBlock = regexp.MustCompile("(?ms)^(?:`([^`\n]+)`:\n\n)?```([a-z]+)\n(.*?)^```")
	// It differs from one run to the next.
	duration = regexp.MustCompile(`\b\d+(\.\d+)?(µs|ms|s)\b`)
)

// The sessions in pages are what the commands print: -update writes them anew. A block
// "console" holds commands after "$ " and what they print; other blocks below a line
// with a file's name are written to that file first. The commands run in bash, in a
// folder of the page's own.
func TestSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	bin, err := starlingBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range sessions {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			dir, home := t.TempDir(), t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("examples")); err != nil {
				t.Fatal(err)
			}
			got := sessionBlock.ReplaceAllStringFunc(string(text), func(block string) string {
				m := sessionBlock.FindStringSubmatch(block)
				file, language, body := m[1], m[2], m[3]
				switch {
				case language == "console":
					return "```console\n" + session(t, bin, home, dir, body) + "```"
				case file != "":
					path := filepath.Join(dir, filepath.FromSlash(file))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				return block
			})
			if *update {
				if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(text) {
				a, b := filepath.Join(dir, "page"), filepath.Join(dir, "now")
				_ = os.WriteFile(a, text, 0o644)
				_ = os.WriteFile(b, []byte(got), 0o644)
				diff, _ := exec.Command("diff", "-u", a, b).CombinedOutput()
				t.Errorf("%s does not show what the commands print; run: go test ./test -run Sessions -update\n%s", page, diff)
			}
		})
	}
}

// session runs the commands of a block, and returns it with what they print. The text in
// the lines after a command up to the next one is what it has printed before; a command
// goes on in the next line after a backslash, or up to the end of a here-document.
func session(t *testing.T, bin, home, dir, body string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.SplitAfter(body, "\n")
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "$ ") {
			continue
		}
		command := strings.TrimPrefix(lines[i], "$ ")
		if _, end, ok := strings.Cut(strings.TrimSpace(command), "<<"); ok {
			end, _, _ = strings.Cut(strings.Trim(end, "' "), "'")
			for i++; i < len(lines); i++ {
				command += lines[i]
				if strings.TrimSpace(lines[i]) == end {
					break
				}
			}
		}
		for strings.HasSuffix(command, "\\\n") && i+1 < len(lines) {
			i++
			command += lines[i]
		}
		out.WriteString("$ " + command)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", command)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "NO_COLOR=1", "TERM=dumb"}
		printed, err := cmd.CombinedOutput()
		if ctx.Err() != nil {
			t.Errorf("%s does not end: %v", command, err)
		}
		cancel()
		printed = bytes.ReplaceAll(printed, []byte(dir+"/"), nil)
		if len(printed) > 0 && !bytes.HasSuffix(printed, []byte("\n")) {
			printed = append(printed, '\n')
		}
		out.Write(duration.ReplaceAll(printed, []byte("0.01s")))
	}
	return out.String()
}
