// Package format writes .star files in the one form that all of them have:
// buildifier's.
package format

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/bazelbuild/buildtools/build"

	"github.com/starling-operator/starling/runtime/script"
)

// rewrites are what is done besides spaces and lines: loads come first, sorted and one
// per file; doc strings are indented like the function that they stand in. The rules of
// buildifier for Bazel's own functions are left out, and so are those that sort.
var rewrites = [...]string{
	"loadTop", "sameOriginLoad", "sortLoadStatements", "loadsort", "formatdocstrings", "reorderarguments", "editoctal", "editfloat", "collapseEmpty",
}

// Source returns src formatted. path is for errors; a file that does not parse is
// one, a *[script.Error] with its place, and nothing is returned. Formatted text
// stays as it is.
func Source(path string, src []byte) ([]byte, error) {
	out := bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	file, err := script.Parse(path, out)
	if err != nil {
		return nil, err
	}
	out = bracketed(file, out)
	// Comments that move can need a second pass.
	for range 4 {
		next, err := pass(path, out)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(next, out) {
			break
		}
		out = next
	}
	if _, err := script.Parse(path, out); err != nil {
		return nil, fmt.Errorf("%s: cannot be formatted: it would not parse any more: %w", path, err)
	}
	return out, nil
}

func pass(path string, src []byte) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &script.Error{File: path, Msg: fmt.Sprintf("cannot be formatted: the formatter broke: %v", p)}
		}
	}()
	file, err := build.ParseDefault(path, src)
	if err != nil {
		var at build.ParseError
		if !errors.As(err, &at) {
			return nil, &script.Error{File: path, Msg: "cannot be formatted: " + err.Error()}
		}
		return nil, &script.Error{ // valid Starlark all the same: b"bytes", which buildifier does not know
			File: path, Line: at.Pos.Line, Col: at.Pos.LineRune, Msg: "cannot be formatted: " + at.Message,
			Source: script.SourceLine(src, at.Pos.Line),
		}
	}
	return build.FormatWithRewriter(&build.Rewriter{RewriteSet: rewrites[:]}, file), nil
}
