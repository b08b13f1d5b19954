package reload

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/starling-operator/starling/modules/tree"
)

// places are the folders whose changes matter, with the names in them that do; nil: all
// names.
type places map[string]map[string]bool

// maxPlaces bounds how many folders are watched.
const maxPlaces = 10_000

// maxLinks bounds how many links a path may go through.
const maxLinks = 40

// dataLink is the link of a mounted ConfigMap, Secret or projected volume that is
// replaced with each update. The files beside it lead through it.
const dataLink = "..data"

// placesOf finds the places to watch for a tree. A file that is not there has no places, but
// the folder that it would be in does.
func placesOf(dir string) places {
	p := places{}
	for _, one := range tree.Folders(dir) {
		p.add(one)
	}
	return p
}

// add adds those of one folder.
func (p places) add(dir string) {
	root, ok := p.follow(dir)
	if !ok {
		return
	}
	if _, err := os.Lstat(filepath.Join(root, dataLink)); err == nil {
		p.name(root, dataLink)
		return
	}
	// A file that cannot be read is found when the tree is read.
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil
		case path != root && hidden(d.Name(), filepath.Dir(path) == root), len(p) >= maxPlaces:
			return fs.SkipDir
		}
		p[path] = nil
		return nil
	})
	if charts := filepath.Join(root, filepath.FromSlash(tree.ChartsDir)); isDir(charts) {
		p[charts] = nil
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// hidden says that no tree has a folder of this name.
func hidden(name string, top bool) bool {
	return strings.HasPrefix(name, ".") || top && strings.HasPrefix(name, "_")
}

// follow resolves the links in a path, and notes where each of them is: with one
// of them replaced, the tree is another one. The folder itself may be replaced, too.
func (p places) follow(dir string) (root string, ok bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	resolved, rest := string(filepath.Separator), strings.Split(dir, string(filepath.Separator))
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			resolved = filepath.Dir(resolved)
			continue
		}
		at := filepath.Join(resolved, part)
		info, err := os.Lstat(at)
		switch {
		case err != nil: // it may come
			p.name(resolved, part)
			return "", false
		case info.Mode()&fs.ModeSymlink == 0:
			if len(rest) == 0 {
				p.name(resolved, part)
			}
			resolved = at
			continue
		}
		p.name(resolved, part)
		target, err := os.Readlink(at)
		if links++; err != nil || links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			resolved = string(filepath.Separator)
		}
		rest = append(strings.Split(target, string(filepath.Separator)), rest...)
	}
	return resolved, true
}

// name adds a name in a folder.
func (p places) name(dir, name string) {
	names, known := p[dir]
	if !known {
		names = map[string]bool{}
		p[dir] = names
	}
	if names != nil {
		names[name] = true
	}
}

// wants says whether a change of this file may be one of the tree.
func (p places) wants(path string) bool {
	if path == "" {
		return true // nobody knows which
	}
	names, known := p[filepath.Dir(path)]
	if !known {
		_, known = p[path] // a folder itself
		return known
	}
	name := filepath.Base(path)
	// A volume may be mounted in the folder of a module.
	return names == nil && (!hidden(name, false) || name == dataLink) || names[name]
}
