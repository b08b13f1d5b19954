package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
)

// Files of the module, read while it is loaded: they are as much a part of the tree as its code.

func fileSpecs() []spec.Spec {
	return []spec.Spec{
		declare("module.file", spec.InLoad, spec.NoEffect, callFile, spec.Required("path", spec.String), asBytes),
		declare("module.files", spec.InLoad, spec.NoEffect, callFiles, spec.Required("pattern", spec.String), asBytes),
	}
}

// asBytes has a file read that need not be text.
var asBytes = spec.Keyword("bytes", spec.Bool, "False")

var errNoFiles = errors.New("there are no files here")

func callFile(c *call) (starlark.Value, error) {
	if c.ctx.Files == nil {
		return nil, errNoFiles
	}
	path := c.Str("path")
	data, err := c.ctx.Files.Read(path)
	if err != nil {
		return nil, err
	}
	return c.content(path, data)
}

func callFiles(c *call) (starlark.Value, error) {
	if c.ctx.Files == nil {
		return nil, errNoFiles
	}
	found, err := c.ctx.Files.Match(c.Str("pattern"))
	if err != nil {
		return nil, err
	}
	out := starlark.NewDict(len(found))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		content, err := c.content(path, found[path])
		if err != nil {
			return nil, err
		}
		if err := out.SetKey(starlark.String(path), content); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *call) content(path string, data []byte) (starlark.Value, error) {
	raw := c.BoolOr("bytes", false)
	if !raw && !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is no text in UTF-8; read it with bytes = True", path)
	}
	if err := c.Room(len(data)); err != nil {
		return nil, err
	}
	if raw {
		return starlark.Bytes(data), nil
	}
	return starlark.String(data), nil
}
