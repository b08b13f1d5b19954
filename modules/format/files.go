package format

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/script"
)

// Find returns the .star files that paths name: files as they are given, folders with
// all below them, hidden folders and links aside.
func Find(paths []string) ([]string, error) {
	var files []string
	seen := map[string]bool{}
	add := func(path string) {
		if !seen[path] {
			seen[path] = true
			files = append(files, path)
		}
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", path, reason(err))
		}
		if !info.IsDir() {
			switch real, err := filepath.EvalSymlinks(path); {
			case !strings.HasSuffix(path, ".star"):
				return nil, fmt.Errorf("%s is no .star file, nothing else is formatted", path)
			case !info.Mode().IsRegular():
				return nil, fmt.Errorf("%s is no file with text, but a device or a pipe", path)
			case err != nil:
				return nil, fmt.Errorf("cannot read %s: %w", path, reason(err))
			case !strings.HasSuffix(real, ".star"):
				return nil, fmt.Errorf("%s is a link to a file that is no .star file, nothing else is formatted", path)
			}
			add(filepath.Clean(path))
			continue
		}
		// With a / at its end the folder may be a link.
		err = filepath.WalkDir(strings.TrimRight(path, "/")+"/", func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return fmt.Errorf("cannot read %s: %w", p, reason(err))
			case d.IsDir() && filepath.Clean(p) != filepath.Clean(path) && strings.HasPrefix(d.Name(), "."):
				return fs.SkipDir
			case d.Type().IsRegular() && strings.HasSuffix(p, ".star"):
				add(p)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Read reads at most what a .star file may hold and formats it. path is for messages.
func Read(path string, r io.Reader) (src, formatted []byte, err error) {
	src, err = io.ReadAll(io.LimitReader(r, script.MaxFileSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", path, reason(err))
	}
	text, err := bounded.Text(src)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %w", path, err)
	}
	formatted, err = Source(path, text)
	return src, formatted, err
}

// File formats one file. It writes it when write is true and it changes; a file is
// replaced as a whole, never half written. A file that does not parse is not touched.
func File(path string, write bool) (src, formatted []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", path, reason(err))
	}
	src, formatted, err = Read(path, f)
	f.Close()
	if err != nil || !write || bytes.Equal(src, formatted) {
		return src, formatted, err
	}
	return src, formatted, replace(path, formatted)
}

// replace puts a new file in the place of the one at path, or of what a link there
// leads to, with its rights.
func replace(path string, data []byte) error {
	fail := func(err error) error { return fmt.Errorf("cannot write %s: %w", path, reason(err)) }
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fail(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return fail(err)
	}
	temp, err := os.CreateTemp(filepath.Dir(real), ".starling-fmt-*")
	if err != nil {
		return fail(err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Chmod(temp.Name(), info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(temp.Name(), real)
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// Diff returns the lines that formatting changes, in the form of `diff -u`; "" when
// there are none.
func Diff(path string, src, formatted []byte) (string, error) {
	if bytes.Equal(src, formatted) {
		return "", nil
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(src), B: lines(formatted),
		FromFile: path, ToFile: path + " (formatted)", Context: 3,
	})
}

func lines(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(line, "\n") {
			line += "\n\\ No newline at end of file\n"
		}
		out = append(out, line)
	}
	return out
}

// reason leaves out what an error of the file system says besides why.
func reason(err error) error {
	if pathErr, ok := err.(*fs.PathError); ok {
		return pathErr.Err
	}
	return err
}
