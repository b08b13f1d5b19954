package builtins

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"go.starlark.net/starlark"
)

// Files of the module, read while it is loaded: they are as much a part of the tree as its code.

func fileSpecs() []Spec {
	return []Spec{
		{Name: "module.file", Phases: PhaseLoad, call: callFile, Returns: "the text",
			Doc:    "Reads a file of the module that the loading file belongs to, of at most 1 MiB of text. A change of it is one of the hooks of the file that reads it. There are no files of other modules, nor outside of the tree.",
			Params: []Param{{Name: "path", Type: TypeString, Doc: "Path below the folder of the module: \"templates/a.txt\"."}}},
		{Name: "module.files", Phases: PhaseLoad, call: callFiles, Returns: "a dict of the texts by their paths, in their order; empty when there is no such file",
			Doc:    "Reads the files of the module that a pattern names, as module.file does: at most 1,000, and 8 MiB.",
			Params: []Param{{Name: "pattern", Type: TypeString, Doc: "Pattern of paths below the folder of the module, \"crds/*.yaml\": * stands for any characters but /, ? for one, [a-z] for one of these."}}},
	}
}

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
	return c.fileText(path, data)
}

func callFiles(c *call) (starlark.Value, error) {
	if c.ctx.Files == nil {
		return nil, errNoFiles
	}
	found, err := c.ctx.Files.Match(c.str("pattern"))
	if err != nil {
		return nil, err
	}
	texts := starlark.NewDict(len(found))
	for _, path := range sortedKeys(found) {
		text, err := c.fileText(path, found[path])
		if err != nil {
			return nil, err
		}
		if err := texts.SetKey(starlark.String(path), text); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (c *call) fileText(path string, data []byte) (starlark.Value, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s is no text in UTF-8", path)
	}
	if err := c.room(len(data)); err != nil {
		return nil, err
	}
	return starlark.String(data), nil
}
