// Package fetch fills the charts/ folders of a module tree with the charts that Chart.yaml names as
// dependencies, as `helm dependency build` does, within limits.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/starling-operator/starling/modules/release"
	"github.com/starling-operator/starling/modules/tree"
)

// Options configures [Tree].
type Options struct {
	// Dir is the folder of the module tree.
	Dir string
	// Timeout bounds the work on one module; default one minute.
	Timeout time.Duration
	// Transport carries the requests; nil means [http.DefaultTransport].
	Transport http.RoundTripper
}

// Result is what was done for one module; modules that stay as they are have none.
type Result struct {
	// Module is its name.
	Module string
	// Fetched are the charts that were written, as "name version", in the order of Chart.yaml.
	Fetched []string
	// Removed are archives of other versions, by name of the file.
	Removed []string
	// Lock is the name of a lock file that was written; empty where it stays.
	Lock string
	// Err is why the module's charts/ is as it was; for people.
	Err error
}

// Tree fills charts/ of all modules, one after the other. An error of one module is in its result;
// Tree itself fails when the tree cannot be read, or ctx ends.
func Tree(ctx context.Context, o Options) ([]Result, error) {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	t, err := tree.ReadDir(o.Dir, tree.Options{})
	if err != nil {
		return nil, err
	}
	f := &fetcher{o: o, files: t.Files, indexes: map[string]*repo.IndexFile{}}
	var results []Result
	for _, m := range t.Modules {
		p, err := f.bounded(ctx, m)
		if ctx.Err() != nil {
			return results, fmt.Errorf("stopped while charts of %s were fetched", m.Dir)
		}
		switch {
		case err != nil:
			results = append(results, Result{Module: m.Name, Err: err})
		case p.changes():
			r := Result{Module: m.Name, Fetched: p.names, Removed: p.remove}
			if p.lockData != nil {
				r.Lock = p.lock
			}
			results = append(results, r)
		}
	}
	return results, nil
}

type fetcher struct {
	o     Options
	files fs.FS
	// indexes of chart repositories, by URL.
	indexes map[string]*repo.IndexFile
}

// bounded is module within the time that one module has.
func (f *fetcher) bounded(ctx context.Context, m *tree.Module) (*plan, error) {
	within, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	p, err := f.module(within, m)
	if err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: not done within %s; --timeout allows more", err, f.o.Timeout)
	}
	return p, err
}

// module fills charts/ of one module, and returns what it has changed.
func (f *fetcher) module(ctx context.Context, m *tree.Module) (*plan, error) {
	if m.Err != nil {
		return nil, m.Err
	}
	if m.Chart == nil {
		return &plan{}, nil
	}
	c := &target{dir: m.Dir}
	if _, err := fs.Stat(f.files, m.Dir+"/chart/Chart.yaml"); err == nil {
		c.dir = m.Dir + "/chart"
	}
	for _, file := range m.Chart.Files {
		c.files = append(c.files, release.File(file))
	}
	var err error
	if c.chart, err = release.Load(&release.Chart{Name: m.Chart.Name, Files: c.files}); err != nil {
		return nil, fmt.Errorf("%s: %w", c.dir, err)
	}
	if len(c.chart.Metadata.Dependencies) == 0 {
		return &plan{}, nil
	}
	p, err := f.plan(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.dir, err)
	}
	if err := write(filepath.Join(f.o.Dir, filepath.FromSlash(c.dir)), p); err != nil {
		return nil, fmt.Errorf("%s: %w", c.dir, err)
	}
	return p, nil
}

// target is the chart of a module, as it is on the disk.
type target struct {
	// dir is its path in the tree.
	dir   string
	files []release.File
	chart *chart.Chart
}

// plan is what must change on the disk.
type plan struct {
	// lock is the name of the lock file, lockData its text; nil when it stays.
	lock     string
	lockData []byte
	// add are archives for charts/, by name of the file; remove are names of files there.
	add    map[string][]byte
	remove []string
	// names of the charts in add, with their versions.
	names []string
}

func (p *plan) changes() bool { return p.lockData != nil || len(p.add) > 0 || len(p.remove) > 0 }

// plan gets all that charts/ lacks.
func (f *fetcher) plan(ctx context.Context, c *target) (*plan, error) {
	p := &plan{lock: lockName(c.chart), add: map[string][]byte{}}
	packed, err := c.packed()
	if err != nil {
		return nil, err
	}
	locked, err := lockedBy(c.chart)
	if err != nil {
		return nil, err
	}
	if locked == nil {
		if c.complete() {
			return p, nil
		}
		if locked, err = f.resolve(ctx, c); err != nil {
			return nil, err
		}
		if p.lockData, err = newLock(c.chart, locked); err != nil {
			return nil, err
		}
	}
	for _, d := range locked {
		if err := f.dependency(ctx, c, d, packed, p); err != nil {
			return nil, fmt.Errorf("dependency %s: %w", d.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		same := func(d *chart.Dependency) bool { return d.Name == packed[name].Name() }
		wanted := func(d *chart.Dependency) bool { return same(d) && fits(d.Version, packed[name].Metadata.Version) }
		if _, again := p.add[name]; !again && slices.ContainsFunc(locked, same) && !slices.ContainsFunc(locked, wanted) {
			p.remove = append(p.remove, name)
		}
	}
	return p, nil
}

// dependency gets one chart that is locked, when charts/ lacks it.
func (f *fetcher) dependency(ctx context.Context, c *target, d *chart.Dependency, packed map[string]*chart.Chart, p *plan) error {
	var there, other *chart.Chart
	for _, sub := range c.chart.Dependencies() {
		switch {
		case sub.Name() != d.Name:
		case fits(d.Version, sub.Metadata.Version):
			there = sub
		default:
			other = sub
		}
	}
	isPacked := func(ch *chart.Chart) bool {
		for _, archive := range packed {
			if archive.Name() == ch.Name() && archive.Metadata.Version == ch.Metadata.Version {
				return true
			}
		}
		return false
	}
	local := strings.HasPrefix(d.Repository, "file://")
	switch {
	case there != nil && (!local || !isPacked(there)):
		return nil
	case there == nil && d.Repository == "":
		return fmt.Errorf("it has no repository and is not in charts/ in version %s: put it there, or name its repository", d.Version)
	case there == nil && other != nil && !isPacked(other):
		return fmt.Errorf("charts/ holds a folder with version %s, wanted is %s: remove the folder, or change the version", other.Metadata.Version, d.Version)
	}
	data, err := f.get(ctx, c, d)
	if err != nil {
		return err
	}
	file := d.Name + "-" + d.Version + ".tgz"
	if path.Base(file) != file || strings.Contains(file, `\`) {
		return fmt.Errorf("%q is no name of a file in charts/", file)
	}
	got, err := loadPacked(file, data)
	if err != nil {
		return err
	}
	switch {
	case got.Name() == d.Name && fits(d.Version, got.Metadata.Version):
	case local && got.Name() == d.Name:
		return fmt.Errorf("%s is version %s by now, %s says %s: delete %s and run starling fetch again", d.Repository, got.Metadata.Version, p.lock, d.Version, p.lock)
	default:
		return fmt.Errorf("%s has sent chart %s %s, wanted is version %s", place(d.Repository), got.Name(), got.Metadata.Version, d.Version)
	}
	if local && there != nil && sameChart(got, there) {
		return nil
	}
	if p.add[file] == nil { // two dependencies with aliases may be one chart
		p.names = append(p.names, d.Name+" "+d.Version)
	}
	p.add[file] = data
	return nil
}

// complete reports whether charts/ holds all dependencies, as a chart has them whose author has
// put them there; those that are packed of a folder must be made again to know that.
func (c *target) complete() bool {
	for _, d := range c.chart.Metadata.Dependencies {
		if strings.HasPrefix(d.Repository, "file://") || !slices.ContainsFunc(c.chart.Dependencies(), func(sub *chart.Chart) bool {
			return sub.Name() == d.Name && fits(d.Version, sub.Metadata.Version)
		}) {
			return false
		}
	}
	return true
}

// packed returns the charts of the archives in charts/, by name of the file.
func (c *target) packed() (map[string]*chart.Chart, error) {
	found := map[string]*chart.Chart{}
	for _, file := range c.files {
		if path.Dir(file.Path) != "charts" || path.Ext(file.Path) != ".tgz" {
			continue
		}
		ch, err := loadPacked(path.Base(file.Path), file.Data)
		if err != nil {
			return nil, err
		}
		found[path.Base(file.Path)] = ch
	}
	return found, nil
}

// loadPacked loads an archive as a release does that has it in charts/.
func loadPacked(file string, data []byte) (*chart.Chart, error) {
	if len(data) > tree.MaxFileBytes {
		return nil, tooLarge(tree.MaxFileBytes)
	}
	parent, err := release.Load(&release.Chart{Name: file, Files: []release.File{
		{Path: "Chart.yaml", Data: []byte("apiVersion: v2\nname: any\nversion: 0.1.0\n")},
		{Path: "charts/" + file, Data: data},
	}})
	if err != nil {
		return nil, err
	}
	if len(parent.Dependencies()) != 1 {
		return nil, fmt.Errorf("%s is no archive of a chart", file)
	}
	return parent.Dependencies()[0], nil
}

// fits reports whether the version of a chart is one of the range, as Helm sees it.
func fits(versions, version string) bool {
	if versions == version {
		return true
	}
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(version)
	return err == nil && constraint.Check(v)
}

// sameChart compares the files of two charts.
func sameChart(a, b *chart.Chart) bool {
	same := func(x, y *chart.File) bool { return x.Name == y.Name && string(x.Data) == string(y.Data) }
	return slices.EqualFunc(a.Raw, b.Raw, same)
}
