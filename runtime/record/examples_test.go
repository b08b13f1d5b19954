package record_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/record"
	"github.com/starling-operator/starling/runtime/testrunner"
	"github.com/starling-operator/starling/stdlib"
)

type noLog struct{}

func (noLog) Log(builtins.Level, string, []builtins.Field) {}

func load(t *testing.T, folder string) *generation.Generation {
	t.Helper()
	read, err := tree.ReadDir(folder, tree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return generation.Load(t.Context(), generation.Options{Tree: read, Std: stdlib.FS, Number: 1,
		Log: func(string) builtins.Logger { return noLog{} }})
}

// Every run of every test of every example is recorded, and played again from what is
// on disk alone: it comes to the same, byte for byte.
func TestEveryRunOfTheExamplesReplays(t *testing.T) {
	folders, err := filepath.Glob("../../examples/*")
	folders = append(folders, "../testrunner/testdata/controllers")
	if err != nil || len(folders) == 0 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			g := load(t, folder)
			var mu sync.Mutex
			var traces []*record.Trace
			err := testrunner.Run(t.Context(), testrunner.Options{Tree: g.Tree, Generation: g, Std: stdlib.FS, Record: func(tr *record.Trace) {
				mu.Lock()
				defer mu.Unlock()
				tr.Run = uint64(len(traces) + 1) // tests have an engine each, which all count from 1
				traces = append(traces, tr)
			}}, func(f testrunner.File) {
				if f.Failed() {
					t.Errorf("%s failed", f.Path)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(traces) == 0 && slices.ContainsFunc(g.All(), func(m *generation.Module) bool { return len(m.Hooks) > 0 }) {
				t.Fatal("nothing ran")
			}
			replayAll(t, keep(t, record.StoreOptions{}, traces...))
		})
	}
}

// kept is a folder with records.
type kept struct {
	dir string
	key *record.Key
}

// keep writes traces into a new folder.
func keep(t *testing.T, o record.StoreOptions, traces ...*record.Trace) kept {
	t.Helper()
	k := kept{dir: t.TempDir()}
	var err error
	if k.key, err = record.NewKey(); err != nil {
		t.Fatal(err)
	}
	o.Dir, o.Key, o.Process, o.Version = k.dir, k.key, "test", "v1"
	store, err := record.OpenStore(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range traces {
		if err := store.Put(tr); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func replayAll(t *testing.T, k kept) {
	t.Helper()
	headers, _, err := record.List(k.dir, k.key)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, h := range headers {
		r, err := record.Load(k.dir, h.ID, k.key)
		if err != nil {
			t.Errorf("%s of %s: %v", h.ID, h.Hook, err)
			continue
		}
		if h.Failed() {
			failed++
		}
		again, err := record.Replay(context.Background(), r, record.ReplayOptions{})
		if err != nil {
			t.Errorf("%s of %s: %v", h.ID, h.Hook, err)
			continue
		}
		if !again.Same || again.Steps != h.Steps {
			t.Errorf("%s of %s: came to\n%+v\nand %d steps, was\n%+v\nand %d steps", h.ID, h.Hook, again.Outcome, again.Steps, r.Outcome, h.Steps)
		}
	}
	t.Logf("%d runs, %d of them failed, %d bytes", len(headers), failed, size(t, k.dir))
}

// size is what a folder takes.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}
