package script

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// Sources returns the files at these paths, and all that they load, by path: those of
// the standard library begin with "@std//". Nothing is run; of those that were loaded, the files
// that they read while they were are there, too. A file that is not there is
// left out, and what a broken one loads is not known.
func (h *Host) Sources(paths ...string) (map[string][]byte, error) {
	out := map[string][]byte{}
	missing := map[string]bool{}
	for todo := slices.Clone(paths); len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		if out[path] != nil || missing[path] {
			continue
		}
		data, err := h.read(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing[path] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		out[path] = slices.Concat([]byte{}, data)
		read, err := h.filesOf(path)
		if err != nil {
			return nil, err
		}
		todo = append(append(todo, loadsOf(path, data)...), read...)
	}
	return out, nil
}

// loadsOf are the paths that a file names in its load statements, sorted.
func loadsOf(path string, data []byte) []string {
	if !strings.HasSuffix(path, ".star") {
		return nil
	}
	file, err := dialect().Parse(path, data, 0)
	if err != nil {
		return nil
	}
	paths := map[string]bool{}
	for _, stmt := range file.Stmts {
		load, ok := stmt.(*syntax.LoadStmt)
		if !ok {
			continue
		}
		label, ok := load.Module.Value.(string)
		if !ok {
			continue
		}
		if p, err := resolveLabel(label, path); err == nil {
			paths[p] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}
