package fetch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// unfinished is the folder in charts/ with files that are being written; no reader of charts looks
// into it.
const unfinished = ".fetch"

// write makes the plan true in the folder of a chart, and touches nothing outside of it, wherever
// links in it lead. The lock comes first: a fetch that was stopped goes on by it.
func write(dir string, p *plan) (err error) {
	if !p.changes() {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll("charts/"+unfinished, 0o755); err != nil {
		return fmt.Errorf("cannot write into charts/: %w", err)
	}
	defer func() { err = errors.Join(err, root.RemoveAll("charts/"+unfinished)) }()
	put := func(to, name string, data []byte) error {
		temp := "charts/" + unfinished + "/" + name
		if err := root.WriteFile(temp, data, 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", to, err)
		}
		return root.Rename(temp, to)
	}
	if p.lockData != nil {
		if err := put(p.lock, p.lock, p.lockData); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.add)) {
		if err := put("charts/"+name, name, p.add[name]); err != nil {
			return err
		}
	}
	for _, name := range p.remove {
		if err := root.Remove("charts/" + name); err != nil {
			return fmt.Errorf("cannot remove charts/%s: %w", name, err)
		}
	}
	return nil
}
