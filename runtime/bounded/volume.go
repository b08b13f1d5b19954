package bounded

import (
	"errors"
	"fmt"
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
		data, err := readFile(filepath.Join(now, name), limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		files[name] = data
	}
	return files, nil
}

func readFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return nil, errors.New("it is not there")
	case err != nil:
		return nil, errors.New("it cannot be read")
	case info.Size() > limit:
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	return data, nil
}
