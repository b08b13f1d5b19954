package script

import (
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Resolve parses a file and ties its names to what they stand for, as a host does with a file that it loads before
// anything of it runs. The tree is nil when the file does not parse. Errors are *Error, and tell the same as loading.
func (h *Host) Resolve(path string, src []byte) (*syntax.File, error) {
	file, err := Parse(path, src)
	if err != nil {
		return nil, err
	}
	if err := resolveNames(file, h.predeclared.Has); err != nil {
		source := func(_ string, line int) string { return SourceLine(src, line) }
		return file, h.diagnoseIn(source, err, nil, Frame{File: path})
	}
	return file, nil
}

func resolveNames(file *syntax.File, predeclared func(string) bool) (err error) {
	defer recoverInto(&err)
	return resolve.File(file, predeclared, starlark.Universe.Has)
}
