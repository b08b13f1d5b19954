package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// folders are several folders as one: a module is in one of them. Libraries, global hooks, archives of charts
// and the locks that name these may be in several; all else that is in two is an error where it is.
type folders struct {
	names []string // as the user wrote them
	roots []fs.FS
}

// shared says that a folder at the root may be in several.
func shared(p string) bool {
	top, _, _ := strings.Cut(p, "/")
	return slices.Contains([]string{".", "lib", "global", path.Dir(ChartsDir)}, top)
}

// of are the folders that have a path, more than one for a folder that may be in several; none is
// fs.ErrNotExist, and one that must not be in two says so.
func (f folders) of(op, p string) (in []fs.FS, err error) {
	var names []string
	dirs := true
	for i, root := range f.roots {
		info, err := fs.Lstat(root, p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		in, names = append(in, root), append(names, f.names[i])
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = fs.Stat(root, p)
		}
		dirs = dirs && err == nil && info.IsDir()
	}
	switch {
	case len(in) == 0:
		return nil, &fs.PathError{Op: op, Path: p, Err: fs.ErrNotExist}
	case len(in) > 1 && p == "values.yaml":
		return nil, &fs.PathError{Op: op, Path: p, Err: fmt.Errorf("it is in %s: keep one; what differs in one cluster is set in its ConfigMap", strings.Join(names, " and in "))}
	case len(in) > 1 && !(dirs && shared(p)):
		return nil, &fs.PathError{Op: op, Path: p, Err: fmt.Errorf("it is in %s: rename or remove all but one", strings.Join(names, " and in "))}
	}
	return in, nil
}

// Open is fs.FS's.
func (f folders) Open(p string) (fs.File, error) {
	if p == LockFile {
		return f.lock()
	}
	in, err := f.of("open", p)
	if err != nil {
		return nil, err
	}
	return in[0].Open(p)
}

// ReadDir is fs.ReadDirFS's.
func (f folders) ReadDir(p string) (out []fs.DirEntry, err error) {
	in, err := f.of("readdir", p)
	if err != nil {
		return nil, err
	}
	for _, root := range in {
		list, err := fs.ReadDir(root, p)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(out, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() }), nil
}

// ReadLink and Lstat are those of fs.ReadLinkFS.
func (f folders) ReadLink(p string) (string, error) {
	in, err := f.of("readlink", p)
	if err != nil {
		return "", err
	}
	return fs.ReadLink(in[0], p)
}

// Lstat is fs.ReadLinkFS's.
func (f folders) Lstat(p string) (fs.FileInfo, error) {
	in, err := f.of("lstat", p)
	if err != nil {
		return nil, err
	}
	return fs.Lstat(in[0], p)
}

// lock is what all locks say.
func (f folders) lock() (fs.File, error) {
	all, found, where := map[string]Locked{}, 0, map[string]string{}
	var data []byte
	for i, root := range f.roots {
		one, err := fs.ReadFile(root, LockFile)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		}
		found++
		data = one
		charts, err := ParseLock(one)
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: LockFile, Err: fmt.Errorf("of %s: %w", f.names[i], err)}
		}
		for module, l := range charts {
			if before, twice := where[module]; twice {
				return nil, &fs.PathError{Op: "open", Path: LockFile, Err: fmt.Errorf("those of %s and of %s both name a chart of module %s", before, f.names[i], module)}
			}
			all[module], where[module] = l, f.names[i]
		}
	}
	switch found {
	case 0:
		return nil, &fs.PathError{Op: "open", Path: LockFile, Err: fs.ErrNotExist}
	case 1: // with its comments
	default:
		var err error
		if data, err = FormatLock(all); err != nil {
			return nil, err
		}
	}
	return InMemory(LockFile, data), nil
}
