package generation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
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

// loadLabel finds the labels of load statements without parsing: what loads may be what ends
// the process.
var loadLabel = regexp.MustCompile(`\bload\s*\(\s*r?["']+([^"'\n]+\.star)["']`)

// codeDigest is that of all that a load evaluates: the module's own code and schemas, the
// code that the tree's modules share, and what these name in load statements, wherever it
// lies; and where any of it reads files of the module, all of these.
func codeDigest(files fs.FS, dir string) string {
	code := map[string][]byte{}
	var todo []string
	add := func(root string, wanted func(p string) bool) {
		// A file that cannot be read is an error of its module already.
		_ = fs.WalkDir(files, root, func(p string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && wanted(p) {
				todo = append(todo, p)
			}
			return nil
		})
	}
	evaluated := func(p string) bool {
		return strings.HasPrefix(p, dir+"/openapi/") || strings.HasSuffix(p, ".star")
	}
	add(dir, evaluated)
	add("lib", evaluated)
	whole := false
	for ; len(todo) > 0; todo = todo[1:] {
		file := todo[0]
		if code[file] != nil {
			continue
		}
		data, err := fs.ReadFile(files, file)
		if err != nil {
			continue
		}
		code[file] = append([]byte{}, data...)
		if !whole && strings.HasSuffix(file, ".star") && bytes.Contains(data, []byte("module.file")) {
			whole = true
			add(dir, func(string) bool { return true })
		}
		if !strings.HasSuffix(file, ".star") {
			continue
		}
		for _, label := range loadLabel.FindAllSubmatch(data, -1) {
			if at, ok := strings.CutPrefix(string(label[1]), "//"); ok {
				todo = append(todo, path.Clean(at))
			} else if !strings.HasPrefix(at, "@") {
				todo = append(todo, path.Join(path.Dir(file), at))
			}
		}
	}
	sum := sha256.New()
	for _, file := range slices.Sorted(maps.Keys(code)) {
		fmt.Fprintf(sum, "%d:%s%d:", len(file), file, len(code[file]))
		sum.Write(code[file])
	}
	return hex.EncodeToString(sum.Sum(nil))
}
