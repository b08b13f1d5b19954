package script

import (
	"bytes"
	"errors"
	"fmt"

	"go.starlark.net/syntax"

	"github.com/starling-operator/starling/runtime/message"
)

// Parse returns the syntax tree of a file, for those that read it and run nothing:
// formatters, checks. path is for positions. Errors are *Error, with the source line.
func Parse(path string, src []byte) (*syntax.File, error) {
	if len(src) > MaxFileSize {
		return nil, &Error{File: path, Msg: fmt.Sprintf("the file is larger than %d KiB", MaxFileSize>>10)}
	}
	file, err := parse(path, src)
	if err == nil {
		return file, nil
	}
	var at syntax.Error
	if !errors.As(err, &at) {
		return nil, &Error{File: path, Msg: message.Cut(message.Line(err.Error()), maxMessage), cause: err}
	}
	source := func(_ string, line int) string { return SourceLine(src, line) }
	return nil, new(Host).at(source, at.Pos, at.Msg)
}

func parse(path string, src []byte) (file *syntax.File, err error) {
	defer recoverInto(&err)
	if i := bytes.IndexByte(src, 0); i >= 0 {
		// The parser takes it for the end of the file, and files that a machine which crashed has left are full of them.
		line, col := bytes.Count(src[:i], []byte("\n")), i-bytes.LastIndexByte(src[:i], '\n')
		return nil, syntax.Error{Pos: syntax.MakePosition(&path, int32(line+1), int32(col)), Msg: "a byte here is 0: the file is damaged, write it again"}
	}
	if file, err = dialect().Parse(path, src, 0); err != nil {
		return nil, err
	}
	if err := nodesFit(file); err != nil {
		return nil, err
	}
	return file, nil
}

// SourceLine returns a line of a file, counted from 1, without its end; "" when there
// is no such line.
func SourceLine(src []byte, line int) string {
	for l := range bytes.Lines(src) {
		if line--; line == 0 {
			return string(bytes.TrimRight(l, "\r\n"))
		}
	}
	return ""
}
