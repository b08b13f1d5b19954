package generation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
)

// marked loads a module while Options.Loading knows of it.
func (l *loader) marked(ctx context.Context, o Options, t *tree.Module) *Module {
	global := t == o.Tree.Global
	if o.Loading == nil {
		return l.module(ctx, t, global)
	}
	loaded, err := o.Loading(t.Name, codeDigest(o.Tree.Files, t.Dir))
	if err != nil {
		return &Module{
			Name: t.Name, Key: t.Key, Global: global, Tree: t, Err: errors.Join(t.Err, fmt.Errorf("%s: %w", t.Dir, err)),
			Decl: builtins.ModuleDecl{Timeout: defaultTimeout, Release: t.Name, Weight: t.Weight},
		}
	}
	m := l.module(ctx, t, global)
	loaded(m.Err == nil)
	return m
}

// codeDigest is that of all code that a module may load: its own, and what the tree's
// modules share.
func codeDigest(files fs.FS, dir string) string {
	sum := sha256.New()
	for _, root := range []string{dir, "lib"} {
		// What cannot be read is an error of its module already.
		_ = fs.WalkDir(files, root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".star") {
				return nil
			}
			data, err := fs.ReadFile(files, path)
			if err == nil {
				fmt.Fprintf(sum, "%d:%s%d:", len(path), path, len(data))
				sum.Write(data)
			}
			return nil
		})
	}
	return hex.EncodeToString(sum.Sum(nil))
}
