package script

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/message"
)

const (
	// patternPrefix begins the inputs of a load that are all files which match a pattern.
	patternPrefix = "files:"
	// maxMatches and maxMatched bound how many files a pattern may name, and their bytes.
	maxMatches = 1000
	maxMatched = 8 << 20
)

// moduleFiles are the files of the module that a file belongs to while it loads. Those that it reads
// are inputs of the load.
type moduleFiles struct {
	host *Host
	load *load
}

// Read implements [builtins.Files].
func (m moduleFiles) Read(name string) ([]byte, error) {
	p, err := m.path(name)
	if err != nil {
		return nil, err
	}
	if info, err := fs.Stat(m.host.files, p); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a folder", p)
	}
	data, err := m.host.read(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s%s", p, m.near(p))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %s", p, describe(err))
	}
	m.load.reads[p] = sha256.Sum256(data)
	return data, nil
}

// Match implements [builtins.Files].
func (m moduleFiles) Match(pattern string) (map[string][]byte, error) {
	p, err := m.path(pattern)
	if err != nil {
		return nil, err
	}
	found, err := matching(m.host.files, p)
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(found))
	dir, _, _ := strings.Cut(p, "/")
	for _, f := range found {
		out[strings.TrimPrefix(f.path, dir+"/")] = f.data
	}
	m.load.reads[patternPrefix+p] = sumOf(found)
	return out, nil
}

// path is where a path below the module's folder lies in the tree.
func (m moduleFiles) path(name string) (string, error) {
	dir, _, below := strings.Cut(m.load.path, "/")
	if !below || dir == "lib" || strings.HasPrefix(m.load.path, stdPrefix) {
		return "", fmt.Errorf("%s is of no module; read the file in one, and give its text to what this file exports", m.load.path)
	}
	if !fs.ValidPath(name) || name == "." {
		return "", fmt.Errorf("%q is no path below the folder of the module, such as \"templates/a.txt\"", name)
	}
	return dir + "/" + name, nil
}

// near suggests a file of the same folder.
func (m moduleFiles) near(p string) string {
	list, _ := fs.ReadDir(m.host.files, path.Dir(p))
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	if near := message.Nearest(path.Base(p), names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// match is a file that a pattern names.
type match struct {
	path string
	data []byte
}

// matching reads the files of a tree that a pattern names, sorted.
func matching(files fs.FS, pattern string) (found []match, err error) {
	paths, err := fs.Glob(files, pattern)
	if err != nil {
		return nil, fmt.Errorf("%q is no pattern: * stands for any characters but /, ? for one, [a-z] for one of these", pattern)
	}
	slices.Sort(paths)
	size := 0
	for _, p := range paths {
		info, err := fs.Stat(files, p)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %s", p, describe(err))
		}
		if info.IsDir() {
			continue
		}
		if size += int(min(info.Size(), maxMatched)); size > maxMatched || len(found) == maxMatches {
			return nil, fmt.Errorf("%q names more than %d files, or more than %d MiB", pattern, maxMatches, maxMatched>>20)
		}
		data, err := fs.ReadFile(files, p)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %s", p, describe(err))
		}
		found = append(found, match{p, data})
	}
	return found, nil
}

// sumOf is the digest of files with their paths.
func sumOf(found []match) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range found {
		fmt.Fprintf(h, "%d:%s%d:", len(f.path), f.path, len(f.data))
		h.Write(f.data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Sum is what [Host.Inputs] would say of an input, in another tree.
func Sum(files fs.FS, input string) ([sha256.Size]byte, error) {
	if pattern, is := strings.CutPrefix(input, patternPrefix); is {
		found, err := matching(files, pattern)
		return sumOf(found), err
	}
	data, err := fs.ReadFile(files, input)
	return sha256.Sum256(data), err
}

// filesOf are the paths of the files that a file has read while it was loaded, besides those that its
// load statements name.
func (h *Host) filesOf(path string) (paths []string, err error) {
	l := h.loaded(path)
	if l == nil {
		return nil, nil
	}
	for input := range l.reads {
		pattern, is := strings.CutPrefix(input, patternPrefix)
		if !is {
			paths = append(paths, input)
			continue
		}
		found, err := matching(h.files, pattern)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			paths = append(paths, f.path)
		}
	}
	return paths, nil
}
