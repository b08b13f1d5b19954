package check

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/starling-operator/starling/modules/tree"
)

// A check with the cache of those before tells the same as one without, whatever has changed in between.
func TestCacheChangesNoFinding(t *testing.T) {
	trees := map[string]fstest.MapFS{}
	for _, name := range []string{"broken", "calls", "examples"} {
		archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		trees[name] = fstest.MapFS{}
		for _, f := range archive.Files {
			trees[name][f.Name] = &fstest.MapFile{Data: f.Data}
		}
	}
	for _, name := range []string{"webhooks", "dependencies"} {
		trees[name] = folder(t, "../../examples/"+name)
	}
	for name, files := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cacheFollows(t, files, rand.New(rand.NewPCG(1, uint64(len(files)))))
		})
	}
}

func cacheFollows(t *testing.T, files fstest.MapFS, random *rand.Rand) {
	now, cache := maps.Clone(files), NewCache()
	paths := slices.Sorted(maps.Keys(files))
	checks := 0
	for step := range 15 {
		read, err := tree.Read(now, tree.Options{})
		if err == nil {
			checks++
			want, got := rendering(run(t, Options{Tree: read})), rendering(run(t, Options{Tree: read, Cache: cache}))
			if got != want {
				t.Fatalf("step %d: with a cache:\n%s\nwithout:\n%s", step, got, want)
			}
		}
		path := paths[random.IntN(len(paths))]
		switch random.IntN(4) {
		case 0:
			now[path] = files[path] // as it was
		case 1:
			delete(now, path)
		default:
			if f := now[path]; f != nil {
				now[path] = &fstest.MapFile{Data: withoutALine(f.Data, random)}
			} else {
				now[path] = files[path]
			}
		}
	}
	if checks < 8 {
		t.Errorf("only %d of 15 trees could be read", checks)
	}
}

// All that a file says before it is loaded is among what the check of its tree says.
func TestFileTellsWhatRunTells(t *testing.T) {
	read := read(t, "testdata/broken.txtar")
	all := run(t, Options{Tree: read}).Findings
	told := 0
	err := fs.WalkDir(read.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".star") {
			return err
		}
		src, err := fs.ReadFile(read.Files, p)
		if err != nil {
			return err
		}
		_, found := File(p, src)
		for _, f := range found {
			told++
			same := func(g Finding) bool { return g.Render(nil) == f.Render(nil) }
			if !slices.ContainsFunc(all, same) && !strings.HasSuffix(p, "_test.star") {
				t.Errorf("the check of the tree does not tell: %s", f.Render(nil))
			}
		}
		return nil
	})
	if err != nil || told == 0 {
		t.Error(told, err)
	}
}

func withoutALine(data []byte, random *rand.Rand) []byte {
	lines := slices.Collect(bytes.Lines(data))
	if len(lines) == 0 {
		return []byte("x = 1\n")
	}
	at := random.IntN(len(lines))
	return bytes.Join(slices.Delete(lines, at, at+1), nil)
}

func rendering(r Result) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s %s", f.Check, f.Module, f.Render(nil))
	}
	fmt.Fprintln(&b, r.Modules, r.Hooks, r.Installs, r.Lookups)
	return b.String()
}

func folder(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		files[filepath.ToSlash(rel)] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
