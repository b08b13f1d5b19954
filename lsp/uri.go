package lsp

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/sourcegraph/jsonrpc2"
)

// errNoFile says of a URI that it names no file, such as that of a buffer without a name.
var errNoFile = &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: "the URI names no file by its full path: file:///…"}

// pathOf returns the path of a file that a URI names.
func pathOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" || u.Host != "" && u.Host != "localhost" {
		return "", errNoFile
	}
	path := u.Path
	if runtime.GOOS == "windows" { // /c:/a
		path = strings.TrimPrefix(path, "/")
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", errNoFile
	}
	return filepath.Clean(path), nil
}

// uriOf is the opposite of [pathOf].
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
