package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// Files of the module, read while it is loaded: they are as much a part of the tree as its code.

func fileSpecs() []Spec {
	return []Spec{
		{Name: "module.file", Phases: PhaseLoad, call: callFile, Returns: "the text, or its bytes",
			Doc:    "Reads a file of the module that the loading file belongs to, of at most 1 MiB. When it changes, the file that reads it is loaded anew, with its hooks. Files of other modules, and those outside of the tree, cannot be read.",
			Params: []Param{{Name: "path", Type: TypeString, Doc: "Path below the folder of the module: \"templates/a.txt\"."}, asBytes}},
		{Name: "module.files", Phases: PhaseLoad, call: callFiles, Returns: "a dict of the texts, or bytes, by their paths, in their order; empty when there is no such file",
			Doc:    "Reads the files of the module that a pattern names, as module.file does: at most 1,000, and 8 MiB.",
			Params: []Param{{Name: "pattern", Type: TypeString, Doc: "Pattern of paths below the folder of the module, \"crds/*.yaml\": * stands for any characters but /, ? for one, [a-z] for one of these."}, asBytes}},
	}
}

// asBytes has a file read that need not be text.
var asBytes = Param{Name: "bytes", Type: TypeBool, Default: "False", Keyword: true, Doc: "Returns bytes in the place of text, which must be UTF-8: base64.encode takes them."}

var errNoFiles = errors.New("there are no files here")

func callFile(c *call) (starlark.Value, error) {
	if c.ctx.Files == nil {
		return nil, errNoFiles
	}
	path := c.str("path")
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
	found, err := c.ctx.Files.Match(c.str("pattern"))
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
	raw := c.boolOr("bytes", false)
	if !raw && !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is no text in UTF-8; read it with bytes = True", path)
	}
	if err := c.room(len(data)); err != nil {
		return nil, err
	}
	if raw {
		return starlark.Bytes(data), nil
	}
	return starlark.String(data), nil
}
