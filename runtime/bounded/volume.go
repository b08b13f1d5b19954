package bounded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// MaxPEM bounds a file of certificates or keys, in bytes.
const MaxPEM = 1 << 20

// Volume reads files of a folder that may be a volume of a Secret, each of at most so many bytes.
// Such a volume is changed by pointing ..data to another folder: all files are read from one such
// folder, so that they belong together. An error names the file as people know it.
func Volume(dir string, limit int64, names ...string) (map[string][]byte, error) {
	now := dir
	if real, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		now = real
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := File(filepath.Join(now, name), limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		files[name] = data
	}
	return files, nil
}

// File reads a regular file of at most so many bytes: to open a pipe may take for ever. An error does not name the file.
func File(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return nil, errors.New("it is not there")
	}
	var data []byte
	if err == nil && info.Mode().IsRegular() {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			defer f.Close()
			data, err = io.ReadAll(io.LimitReader(f, limit+1))
		}
	}
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, nil
}
