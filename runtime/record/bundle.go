package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxBundle bounds the files of one run, in bytes.
const maxBundle = 48 << 20

// Bundle returns the files of one run, as they are kept, by name: sealed. [Unpack] puts them into another folder.
// Errors are those of [Load] for which no key is needed.
func Bundle(dir, id string) (map[string][]byte, error) {
	p, err := find(dir, id)
	if err != nil {
		return nil, err
	}
	files, size := map[string][]byte{id + runSuffix: p.whole()}, p.size()
	for refs := p.refs; len(refs) > 0; refs = refs[1:] {
		name := refs[0].String() + partSuffix
		if files[name] != nil {
			continue
		}
		part, err := readFile(filepath.Join(dir, name), parsePart)
		if err != nil {
			return nil, fmt.Errorf("run %s: %s", id, goneMeanwhile)
		}
		if size += part.size(); size > maxBundle {
			return nil, fmt.Errorf("run %s: its record takes more than %d MiB", id, maxBundle>>20)
		}
		files[name] = part.whole()
		refs = append(refs, part.refs...)
	}
	return files, nil
}

// Unpack writes what [Bundle] has returned to a folder, which is there. Names that it does not return are refused.
func Unpack(dir string, files map[string][]byte) error {
	for name, data := range files {
		part, isPart := strings.CutSuffix(name, partSuffix)
		run, isRun := strings.CutSuffix(name, runSuffix)
		if _, ok := parseName(part); !(isPart && ok) && !(isRun && checkID(run)) {
			return errors.New("a record with a file that is none of a run")
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("cannot keep the record for a moment: %w", err)
		}
	}
	return nil
}
