package files

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/scaffold"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

// recorded are runs of the tests of a tree, the first one of each hook and of each sort of events.
func recorded(t *testing.T, dir string) (runs []*record.Record) {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
	key, err := record.ParseKey(make([]byte, record.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	store, err := record.OpenStore(record.StoreOptions{Dir: folder, Key: key, Process: "demo", Version: "v0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	n := uint64(0)
	err = testrunner.Run(t.Context(), testrunner.Options{Tree: read, Generation: g, Std: stdlib.FS, Record: func(trace *record.Trace) {
		mu.Lock()
		defer mu.Unlock()
		n++
		trace.Run = n
		if err := store.Put(trace); err != nil {
			t.Error(err)
		}
	}}, func(testrunner.File) {})
	if err != nil {
		t.Fatal(err)
	}
	headers, _, err := record.List(folder, key)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(headers)
	seen := map[string]bool{}
	for _, h := range headers {
		if kind := h.Hook + " " + h.Cause; !seen[kind] {
			seen[kind] = true
			r, err := record.Load(folder, h.ID, key)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

var function = regexp.MustCompile(`(?m)^def \w+\([^)]*\):$`)

// breakHooks has all functions of the hooks of a tree fail.
func breakHooks(t *testing.T, dir string, runs []*record.Record) {
	t.Helper()
	for _, r := range runs {
		for path := range r.Sources {
			if strings.HasPrefix(path, "@std//") || strings.HasSuffix(path, "/module.star") || !strings.HasSuffix(path, ".star") {
				continue
			}
			file := filepath.Join(dir, path)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "fail(\"broken\")") {
				continue
			}
			if err := os.WriteFile(file, function.ReplaceAll(text, []byte("$0\n    fail(\"broken\")")), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// results runs some files of tests, and returns the errors of their tests, nil for those that pass.
func results(t *testing.T, dir string, files []string) map[string]error {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1, Log: func(string) builtins.Logger { return noLog{} }})
	out := map[string]error{}
	err = testrunner.Run(t.Context(), testrunner.Options{Tree: read, Generation: g, Std: stdlib.FS, Only: func(p string) bool { return slices.Contains(files, p) }}, func(f testrunner.File) {
		out[f.Path] = f.Err
		for _, one := range f.Tests {
			out[f.Path] = one.Err
		}
		if f.Err == nil && len(f.Tests) != 1 {
			out[f.Path] = fmt.Errorf("%d tests", len(f.Tests))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Runs of each example, recorded in simulation, become tests that pass, and that fail once the hooks are broken.
func TestRunsOfTheExamplesBecomeTests(t *testing.T) {
	if raced {
		t.Skip("it computes for minutes then, and has no goroutines but those of the tests of the test runner")
	}
	folders, err := filepath.Glob("../../../examples/*")
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "tree")
			if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			runs := recorded(t, dir)
			read, err := tree.ReadDir(dir, tree.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			hooks, held, of := map[string]bool{}, map[string]bool{}, map[string]*record.Record{}
			for _, r := range runs {
				hooks[r.Hook] = true
				text, err := testOf(t.Context(), r)
				if err != nil {
					t.Logf("%s of %s (%s): %v", r.ID, r.Hook, r.Cause, err)
					continue
				}
				held[r.Hook] = true
				file, err := testFileOf(read, r)
				if err != nil {
					t.Fatal(err)
				}
				if err := scaffold.WriteNew(filepath.Join(dir, file), text); err != nil {
					t.Fatal(err)
				}
				files, of[file] = append(files, file), r
			}
			for file, err := range results(t, dir, files) {
				if err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			breakHooks(t, dir, runs)
			noticed := map[string]bool{}
			for file, err := range results(t, dir, files) {
				r := of[file]
				noticed[r.Hook] = noticed[r.Hook] || err != nil
				// Of a parent that goes, or is gone, a controller asks nobody.
				if err == nil && r.Key == "" {
					t.Errorf("%s passes though its hook is broken", file)
				}
			}
			for hook := range held {
				if !noticed[hook] {
					t.Errorf("%s may break, and no test of its runs fails", hook)
				}
			}
			t.Logf("%d of %d runs, %d of %d hooks", len(files), len(runs), len(held), len(hooks))
			if len(held) < len(hooks) && !slices.Contains(secretive, filepath.Base(folder)) {
				t.Errorf("of %d hooks only %d have a test", len(hooks), len(held))
			}
		})
	}
}

// secretive are examples with hooks none of whose runs can do without its secrets.
var secretive = []string{"from-go"} // a request of a hook has a token in its body, of which a record has a digest

// The page shows the test that a script has starling write.
func TestThePageOnReplaysShowsAWrittenTest(t *testing.T) {
	script, err := txtar.ParseFile("../testdata/script/new_test.txtar")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range script.Files {
		if file.Name == "want.star" && strings.Contains(string(page), "```python\n"+string(file.Data)+"```") {
			return
		}
	}
	t.Error("docs/replay.md does not show the file want.star of testdata/script/new_test.txtar")
}
