// Package helm is all that Starling uses of Helm's libraries, and the only package that imports them: charts and what
// they render to, the form of revisions and where they are kept, repositories and registries. The life of a release is
// in modules/release. Another Helm is a change of this package alone.
package helm

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/ignore"
)

type (
	// Chart is a chart that is loaded, with its subcharts. Helm changes it while it works on it.
	Chart = chart.Chart
	// Dependency is what a chart says of one of its subcharts.
	Dependency = chart.Dependency
	// Lock is the lock file of a chart.
	Lock = chart.Lock
	// ChartFile is a file of a loaded chart.
	ChartFile = chart.File
)

// File is one file. Path is its path in the tree of modules, or, in a chart, in the chart.
type File struct {
	Path string
	Data []byte
}

// IgnoreFile is the name of the file that says which files of its folder are no part of the chart.
const IgnoreFile = ignore.HelmIgnore

// Load builds a chart of its files, which are within limits.
func Load(files []File) (ch *Chart, err error) {
	list := make([]*loader.BufferedFile, 0, len(files))
	for _, f := range files {
		list = append(list, &loader.BufferedFile{Name: f.Path, Data: f.Data})
	}
	err = Guard(func() (err error) { ch, err = loader.LoadFiles(list); return err })
	return ch, err
}

// Guard turns a panic of Helm's, which broken charts can bring about, into an error.
func Guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("helm gave up: %v", r)
		}
	}()
	return fn()
}

// Unpack gives the files of a packed chart, which is within limits.
func Unpack(archive []byte) (files []File, err error) {
	list, err := loader.LoadArchiveFiles(bytes.NewReader(archive))
	for _, f := range list {
		files = append(files, File{f.Name, f.Data})
	}
	return files, err
}

// Pack makes the archive of a chart.
func Pack(ch *Chart) ([]byte, error) {
	dir, err := os.MkdirTemp("", "starling-chart-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, err := chartutil.Save(ch, dir)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// Missing is an error where a chart depends on charts that it does not hold.
func Missing(ch *Chart) error {
	held := map[string]bool{}
	for _, sub := range ch.Dependencies() {
		held[sub.Name()] = true
	}
	var missing []string
	for _, d := range ch.Metadata.Dependencies {
		if !held[d.Name] {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("found in Chart.yaml, but missing in charts/ directory: %s", strings.Join(missing, ", "))
	}
	return nil
}

// All are a chart and the charts below it, on or off; files of each lie below its ChartFullPath.
func All(ch *Chart) []*Chart {
	all := []*Chart{ch}
	for _, sub := range ch.Dependencies() {
		all = append(all, All(sub)...)
	}
	return all
}

// HasV1 says that a chart is of the first form: it names its dependencies in requirements.yaml.
func HasV1(ch *Chart) bool { return ch.Metadata.APIVersion == chart.APIVersionV1 }

// CRDs are the files under crds/ of a chart and of its subcharts; after [Enable], of the enabled ones.
func CRDs(ch *Chart) (files []File) {
	for _, crd := range ch.CRDObjects() {
		files = append(files, File{crd.Filename, crd.File.Data})
	}
	return files
}

// Ignored reads the text of an [IgnoreFile], which may be empty: it says which paths are no part of the chart.
func Ignored(text []byte) (func(p string, dir bool) bool, error) {
	rules, err := ignore.Parse(bytes.NewReader(text))
	if err != nil {
		rules = ignore.Empty()
	}
	rules.AddDefaults()
	return func(p string, dir bool) bool { return rules.Ignore(p, info{dir: dir}) }, err
}

// info is all that rules ask of a file.
type info struct {
	fs.FileInfo
	dir bool
}

// IsDir implements [fs.FileInfo].
func (i info) IsDir() bool { return i.dir }
