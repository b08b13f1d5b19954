package inputs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing/fstest"

	modules "github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/stdlib"
)

// tree is what a generation is compiled of.
type tree struct {
	Number int    `cbor:"number"`
	Digest string `cbor:"digest"`
	// Selector is the text of --modules-selector, "" without it.
	Selector string `cbor:"selector,omitempty"`
	Files    []file `cbor:"files"`
	// Modules say what became of each, to be compared with what becomes of it again.
	Modules []string `cbor:"modules"`
}

// file is a file, or a folder: then its path ends with a slash.
type file struct {
	Path string            `cbor:"path"`
	Sum  [sha256.Size]byte `cbor:"sum"`
	// Data is there unless a file before it has the same, in this tree or in the one before.
	Data []byte `cbor:"data,omitempty"`
}

// treeOf writes down the files of a generation, and returns what is known of the next one: what
// known holds was there in the tree before.
func treeOf(g, before *generation.Generation, known map[[sha256.Size]byte]bool) (t *tree, all map[[sha256.Size]byte]bool, err error) {
	t = &tree{Number: g.Number, Digest: g.Tree.Digest, Modules: became(g, before)}
	if g.Tree.Selector != nil {
		t.Selector = g.Tree.Selector.String()
	}
	all = map[[sha256.Size]byte]bool{}
	err = fs.WalkDir(g.Tree.Files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		if d.IsDir() {
			t.Files = append(t.Files, file{Path: path + "/"})
			return nil
		}
		data, err := fs.ReadFile(g.Tree.Files, path)
		if err != nil {
			return err
		}
		one := file{Path: path, Sum: sha256.Sum256(data)}
		if !known[one.Sum] && !all[one.Sum] {
			one.Data = data
		}
		all[one.Sum] = true
		t.Files = append(t.Files, one)
		return nil
	})
	return t, all, err
}

// became says of each module whether it was taken over from the generation before, and why it
// is broken.
func became(g, before *generation.Generation) (out []string) {
	taken := map[*generation.Module]bool{}
	if before != nil {
		for _, m := range before.All() {
			taken[m] = true
		}
	}
	for _, m := range g.All() {
		state := "is compiled"
		switch {
		case taken[m]:
			state = "is that of before"
		case m.Err != nil:
			state = m.Err.Error()
		}
		out = append(out, m.Name+": "+state)
	}
	return out
}

// compile makes the generation of a tree again.
func (t *tree) compile(ctx context.Context, before *generation.Generation, known map[[sha256.Size]byte][]byte) (*generation.Generation, error) {
	files := fstest.MapFS{}
	for _, f := range t.Files {
		if name, folder := strings.CutSuffix(f.Path, "/"); folder {
			files[name] = &fstest.MapFile{Mode: fs.ModeDir}
			continue
		}
		if f.Data != nil && sha256.Sum256(f.Data) == f.Sum {
			known[f.Sum] = f.Data
		}
		data, there := known[f.Sum]
		if !there && f.Sum != sha256.Sum256(nil) {
			return nil, errBroken
		}
		files[f.Path] = &fstest.MapFile{Data: data}
	}
	selector, err := modules.ParseSelector(t.Selector)
	if err != nil {
		return nil, err
	}
	read, err := modules.Read(files, modules.Options{Name: "of the file", Selector: selector})
	if err != nil {
		return nil, err
	}
	if read.Digest != t.Digest {
		return nil, fmt.Errorf("generation %d of the module tree cannot be made again: some of its files could not be read then", t.Number)
	}
	g := generation.Load(ctx, generation.Options{
		Tree: read, Std: stdlib.FS, Number: t.Number, Previous: before,
	})
	if now := became(g, before); !slices.Equal(now, t.Modules) {
		return nil, fmt.Errorf("generation %d of the module tree compiles to something else: %s", t.Number, different(t.Modules, now))
	}
	return g, nil
}

// different names the first line in which two lists differ.
func different(then, now []string) string {
	for i := range max(len(then), len(now)) {
		a, b := "nothing", "nothing"
		if i < len(then) {
			a = then[i]
		}
		if i < len(now) {
			b = now[i]
		}
		if a != b {
			return fmt.Sprintf("then %s; now %s", a, b)
		}
	}
	return ""
}
