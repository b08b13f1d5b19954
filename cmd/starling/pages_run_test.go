package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/e2e/pages"
)

// pagesFiles is what pages take for granted: a tree, that of an addon-operator, objects.
const pagesFiles = "testdata/pages.txtar"

// The commands of a page that need no cluster do what they say, one after the other as a reader types them, in a
// folder with the examples and what the page takes for granted.
func TestCommandsOfPagesRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a process per command")
	}
	files, err := txtar.ParseFile(pagesFiles)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := pages.Commands("../..")
	if err != nil {
		t.Fatal(err)
	}
	linesOf := map[string][]string{}
	for _, c := range commands {
		if c.RunBy == pages.WithoutCluster {
			linesOf[c.Page] = append(linesOf[c.Page], c.Text)
		}
	}
	for page, lines := range linesOf {
		t.Run(strings.ReplaceAll(page, "/", "-"), func(t *testing.T) {
			t.Parallel()
			dir := pageFolder(t, files, strings.Join(lines, "\n"))
			for _, line := range lines {
				// One more order is enough to see that the line works.
				run := strings.NewReplacer("bin/starling", "starling", "-explore 100", "-explore 1").Replace(line)
				if out, err := runInFolder(t, dir, run); err != nil {
					t.Errorf("%s: %s: %v\n%s", page, line, err, out)
				}
			}
		})
	}
	if len(linesOf) < 8 {
		t.Errorf("only %d pages were found", len(linesOf))
	}
}

// pageFolder makes the folder of one page. A module that the page itself makes is not there before.
func pageFolder(t *testing.T, files *txtar.Archive, lines string) string {
	t.Helper()
	dir := t.TempDir()
	for _, example := range []string{"quickstart", "application"} {
		if err := os.CopyFS(filepath.Join(dir, "examples", example), os.DirFS(filepath.Join("../../examples", example))); err != nil {
			t.Fatal(err)
		}
	}
	made := strings.Contains(lines, "starling new module web ") || strings.Contains(lines, "--from-addon-operator")
	for _, f := range files.Files {
		if made && strings.HasPrefix(f.Name, "addons/") {
			continue
		}
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o755); err != nil { // hooks of others are executable
			t.Fatal(err)
		}
	}
	return dir
}

// runInFolder runs one line in sh.
func runInFolder(t *testing.T, dir, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + t.TempDir(), "KUBECONFIG=" + filepath.Join(dir, "none")}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 2 && strings.Contains(line, "starling plan ") { // a plan with changes
		err = nil
	}
	return string(out), err
}
