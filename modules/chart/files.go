package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/bounded"
)

const (
	// maxUnpacked is how much the packed subcharts of a chart may hold together.
	maxUnpacked = 32 << 20
	// maxPacked is how deep packed charts may lie in each other.
	maxPacked = 4
)

// parsed are the files of a chart that Helm reads as YAML while it loads it.
var parsed = []string{"Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock"}

// checkFiles refuses files that Helm must not be given to load, which it does without
// limits.
func checkFiles(files []File) error {
	c := &fileCheck{left: maxUnpacked}
	for _, f := range files {
		if err := c.file("", f.Path, f.Data, 0); err != nil {
			return err
		}
	}
	return nil
}

type fileCheck struct{ left int64 }

// file checks the file of this name in the packed chart in, whose name ends with "!", or in the chart itself.
func (c *fileCheck) file(in, name string, data []byte, depth int) error {
	if slices.Contains(parsed, path.Base(name)) {
		if err := bounded.CheckYAML(data); err != nil {
			return fmt.Errorf("%s%s %w", in, name, err)
		}
	}
	if path.Ext(name) == ".tgz" && path.Base(path.Dir(name)) == "charts" {
		return c.packed(in+name, data, depth+1)
	}
	return nil
}

func (c *fileCheck) packed(name string, data []byte, depth int) error {
	if depth > maxPacked {
		return fmt.Errorf("%s: packed charts lie more than %d deep", name, maxPacked)
	}
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil // Helm says so
	}
	limited := &io.LimitedReader{R: zip, N: c.left + 1}
	defer func() { c.left = limited.N - 1 }()
	tape := tar.NewReader(limited)
	for {
		h, err := tape.Next()
		if limited.N <= 0 {
			return fmt.Errorf("%s: packed charts hold more than %d MiB", name, maxUnpacked>>20)
		}
		if err != nil { // what is broken, Helm says
			return nil
		}
		_, inside, _ := strings.Cut(strings.ReplaceAll(h.Name, `\`, "/"), "/")
		inside = path.Clean(inside)
		if !slices.Contains(parsed, path.Base(inside)) && path.Ext(inside) != ".tgz" {
			continue
		}
		data, err := io.ReadAll(tape)
		if limited.N <= 0 {
			return fmt.Errorf("%s: packed charts hold more than %d MiB", name, maxUnpacked>>20)
		}
		if err != nil {
			return nil
		}
		// A packed chart in this one takes from what is left for it.
		c.left = limited.N - 1
		err = c.file(name+"!", inside, data, depth)
		limited.N = c.left + 1
		if err != nil {
			return err
		}
	}
}
