package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// migration is what has become of one old tree.
type migration struct {
	modules, hooks, bindings int
	left                     int // hooks that have no new file, or one without bindings
	besides                  int // other parts that need work by hand, besides bodies
	errors                   string
}

func (m migration) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s |", name, m.modules, m.hooks, m.bindings, m.left, m.besides, cmp.Or(m.errors, "none"))
}

var (
	bindingsNote = regexp.MustCompile(`(?m): (\d+) bindings?$`)
	checked      = regexp.MustCompile(`(\d+) errors?, \d+ warnings?`)
)

// migrated brings a tree over, checks the result and runs its tests, as people do.
func migrated(t *testing.T, old string) (m migration) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "new")
	args := []string{"new", "--modules", out}
	several, _ := filepath.Glob(filepath.Join(old, "module_dir*")) // as MODULES_DIR names them
	switch {
	case len(several) > 0:
		args = append(args, "--follow-links", "--from-addon-operator", strings.Join(several, ":"))
	case isFolder(old, "modules") || isFolder(old, "global-hooks"):
		args = append(args, "--from-addon-operator", filepath.Join(old, "modules"))
		if isFolder(old, "global-hooks") {
			args = append(args, "--global-hooks", filepath.Join(old, "global-hooks"))
		}
	case isFolder(old, "hooks"):
		args = append(args, "--from-shell-operator", filepath.Join(old, "hooks"), "--name", "tried")
	default:
		args = append(args, "--from-addon-operator", old)
	}
	if text, err := exec.CommandContext(t.Context(), "starling", args...).CombinedOutput(); err != nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		m.errors = "new: " + lines[len(lines)-1]
		return m
	}
	report, err := os.ReadFile(filepath.Join(out, "MIGRATION.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range bindingsNote.FindAllStringSubmatch(string(report), -1) {
		n, _ := strconv.Atoi(found[1])
		m.bindings += n
	}
	by, _, _ := strings.Cut(string(report), "\n## Brought over")
	for line := range strings.Lines(by) {
		switch {
		case !strings.HasPrefix(line, "- ") || strings.Contains(line, "see TODO in the new file") && !strings.Contains(line, "a library"):
		case strings.Contains(line, "write hook(…) by hand") || strings.Contains(line, "its config is computed") || strings.Contains(line, "decided as it runs") || strings.Contains(line, "a library, registers"):
			m.left++
		default:
			m.besides++
		}
	}
	err = filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case base == "module.star" && filepath.Base(filepath.Dir(path)) != "global":
			m.modules++
		case strings.HasSuffix(base, ".star") && !strings.HasSuffix(base, "_test.star") && strings.Contains(path, "/hooks/"):
			m.hooks++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), "starling", "check", out).CombinedOutput(); err != nil {
		m.errors = "check: " + checked.FindString(string(text))
	}
	if text, err := exec.CommandContext(t.Context(), "starling", "test", out+"/...").CombinedOutput(); err != nil && !strings.Contains(string(text), "there are no *_test.star files") {
		m.errors = strings.TrimPrefix(m.errors+"; test: fails", "; ")
	}
	return m
}

func isFolder(path ...string) bool {
	info, err := os.Stat(filepath.Join(path...))
	return err == nil && info.IsDir()
}

// Trees of others are brought over, checked and tested. STARLING_OLD_TREES is a folder with one of them in each of
// its folders; the test prints the row of docs/migrate.md for each. Without it a small one is tried.
func TestMigrations(t *testing.T) {
	trees := os.Getenv("STARLING_OLD_TREES")
	if trees == "" {
		small := filepath.Join(t.TempDir(), "small")
		for name, text := range map[string]string{
			"modules/web/hooks/a.sh":  "#!/bin/sh\ncat <<'END'\nconfigVersion: v1\nonStartup: 1\nkubernetes: [{name: pods, kind: Pod}]\nEND\n",
			"modules/web/hooks/b.sh":  "#!/bin/sh\necho \"configVersion: $VERSION\"\n",
			"modules/web/hooks/c.go":  "package hooks\n\nvar _ = other.RegisterHook()\n",
			"modules/web/module.yaml": "weight: 1\n",
		} {
			file := filepath.Join(small, name)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := migrated(t, small).row("small"), "| small | 1 | 2 | 2 | 2 | 1 | none |"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		return
	}
	all, err := os.ReadDir(trees)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("| tree | modules | hooks | bindings | hooks to begin with | other parts | errors |\n|---|---|---|---|---|---|---|")
	sum := migration{}
	for _, d := range all {
		if !d.IsDir() {
			continue
		}
		m := migrated(t, filepath.Join(trees, d.Name()))
		sum.modules, sum.hooks, sum.bindings = sum.modules+m.modules, sum.hooks+m.hooks, sum.bindings+m.bindings
		sum.left, sum.besides = sum.left+m.left, sum.besides+m.besides
		fmt.Println(m.row(d.Name()))
	}
	fmt.Println(sum.row("all"))
}
