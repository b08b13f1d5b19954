// Package fetch gets charts for a module tree, within limits: those that module(chart=) names, and
// those that Chart.yaml names as dependencies, as `helm dependency build` does.
package fetch

import (
	"cmp"
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

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
)

// Options configures [Tree].
type Options struct {
	// Dir is the folder of the module tree.
	Dir string
	// Modules are the names of those whose charts are wanted; none: all.
	Modules []string
	// Update takes the newest versions that module() and Chart.yaml allow, in the place of those that
	// the locks name.
	Update bool
	// FollowLinks is that of [tree.Options].
	FollowLinks bool
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
	// Err is why the module's charts are as they were; for people.
	Err error
}

// Tree gets the charts of all modules, one after the other. An error of one module is in its result;
// Tree itself fails when the tree cannot be read or its lock cannot be written, or ctx ends.
func Tree(ctx context.Context, o Options) ([]Result, error) {
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	// Without its lock: that may not fit, and is what is made here.
	t, err := tree.ReadDir(o.Dir, tree.Options{Unlocked: true, FollowLinks: o.FollowLinks})
	if err != nil {
		return nil, err
	}
	f := &fetcher{o: o, files: t.Files, modules: declared(ctx, t), indexes: map[string]*helm.Index{}, maxIndex: maxIndex}
	if f.lock, err = readLock(t.Files); err != nil {
		return nil, err
	}
	for _, name := range o.Modules {
		if f.modules[name] == nil {
			return nil, fmt.Errorf("modules folder %s has no module %s", o.Dir, name)
		}
	}
	var results []Result
	for _, m := range t.Modules {
		if len(o.Modules) > 0 && !slices.Contains(o.Modules, m.Name) {
			continue
		}
		r, err := f.bounded(ctx, m)
		if ctx.Err() != nil {
			_, err := f.lock.write(o.Dir, t)
			return results, errors.Join(fmt.Errorf("stopped while charts of %s were fetched", m.Dir), err)
		}
		switch {
		case err != nil:
			results = append(results, Result{Module: m.Name, Err: err})
		case len(r.Fetched)+len(r.Removed) > 0 || r.Lock != "":
			results = append(results, r)
		}
	}
	gone, err := f.lock.write(o.Dir, t)
	return append(results, gone...), err
}

type fetcher struct {
	o     Options
	files fs.FS
	// modules as module() declares them, by name.
	modules map[string]*generation.Module
	// lock of the tree.
	lock *treeLock
	// indexes of chart repositories, by URL; maxIndex bounds each of them, in bytes.
	indexes  map[string]*helm.Index
	maxIndex int64
}

// bounded is module within the time that one module has.
func (f *fetcher) bounded(ctx context.Context, m *tree.Module) (Result, error) {
	within, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	r, err := f.module(within, m)
	if err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: not done within %s; --timeout allows more", err, f.o.Timeout)
	}
	return r, err
}

// module gets the charts of one module, and returns what it has changed.
func (f *fetcher) module(ctx context.Context, m *tree.Module) (Result, error) {
	if m.Err != nil {
		return Result{}, m.Err
	}
	declared := f.modules[m.Name]
	_, known := f.lock.before[m.Name]
	switch {
	case declared.Decl.Chart.URL != "":
		return f.remote(ctx, declared)
	case declared.Err != nil && (known || m.Chart == nil && m.ModuleFile != "" && declared.Decl.Pos == ""): // nobody knows which chart it names
		return Result{}, declared.Err
	}
	var r Result
	if known {
		r = f.lock.drop(m.Name)
	}
	if m.Chart == nil {
		return r, nil
	}
	filled, err := f.dependencies(ctx, m)
	filled.Module, filled.Lock = m.Name, cmp.Or(filled.Lock, r.Lock)
	return filled, err
}

// dependencies fills charts/ of a module.
func (f *fetcher) dependencies(ctx context.Context, m *tree.Module) (Result, error) {
	c := &target{dir: m.Dir}
	if _, err := fs.Stat(f.files, m.Dir+"/chart/Chart.yaml"); err == nil {
		c.dir = m.Dir + "/chart"
	}
	for _, file := range m.Chart.Files {
		c.files = append(c.files, chart.File(file))
	}
	var err error
	if c.chart, err = chart.Load(&chart.Chart{Name: m.Chart.Name, Files: c.files}); err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.dir, err)
	}
	if len(c.chart.Metadata.Dependencies) == 0 {
		return Result{}, nil
	}
	p, err := f.plan(ctx, c)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.dir, err)
	}
	if err := write(filepath.Join(f.o.Dir, filepath.FromSlash(c.dir)), p); err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.dir, err)
	}
	r := Result{Module: m.Name, Fetched: p.names, Removed: p.remove}
	if p.lockData != nil {
		r.Lock = p.lock
	}
	return r, nil
}

// target is the chart of a module, as it is on the disk.
type target struct {
	// dir is its path in the tree.
	dir   string
	files []chart.File
	chart *helm.Chart
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
	if err != nil && !f.o.Update {
		return nil, err
	}
	if locked == nil && !f.o.Update && c.complete() {
		return p, nil
	}
	if locked == nil || f.o.Update {
		newest, err := f.resolve(ctx, c)
		if err != nil {
			return nil, err
		}
		if !slices.EqualFunc(locked, newest, sameVersion) {
			if p.lockData, err = newLock(c.chart, newest); err != nil {
				return nil, err
			}
		}
		locked = newest
	}
	for _, d := range locked {
		if err := f.dependency(ctx, c, d, packed, p); err != nil {
			return nil, fmt.Errorf("dependency %s: %w", d.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(packed)) {
		same := func(d *helm.Dependency) bool { return d.Name == packed[name].Name() }
		wanted := func(d *helm.Dependency) bool {
			return same(d) && tree.InRange(d.Version, packed[name].Metadata.Version)
		}
		if _, again := p.add[name]; !again && slices.ContainsFunc(locked, same) && !slices.ContainsFunc(locked, wanted) {
			p.remove = append(p.remove, name)
		}
	}
	return p, nil
}

func sameVersion(a, b *helm.Dependency) bool {
	return a.Name == b.Name && a.Version == b.Version && a.Repository == b.Repository
}

// dependency gets one chart that is locked, when charts/ lacks it.
func (f *fetcher) dependency(ctx context.Context, c *target, d *helm.Dependency, packed map[string]*helm.Chart, p *plan) error {
	var there, other *helm.Chart
	for _, sub := range c.chart.Dependencies() {
		switch {
		case sub.Name() != d.Name:
		case tree.InRange(d.Version, sub.Metadata.Version):
			there = sub
		default:
			other = sub
		}
	}
	isPacked := func(ch *helm.Chart) bool {
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
	case got.Name() == d.Name && tree.InRange(d.Version, got.Metadata.Version):
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
		if strings.HasPrefix(d.Repository, "file://") || !slices.ContainsFunc(c.chart.Dependencies(), func(sub *helm.Chart) bool {
			return sub.Name() == d.Name && tree.InRange(d.Version, sub.Metadata.Version)
		}) {
			return false
		}
	}
	return true
}

// packed returns the charts of the archives in charts/, by name of the file.
func (c *target) packed() (map[string]*helm.Chart, error) {
	found := map[string]*helm.Chart{}
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
func loadPacked(file string, data []byte) (*helm.Chart, error) {
	if len(data) > tree.MaxFileBytes {
		return nil, tooLarge(tree.MaxFileBytes)
	}
	parent, err := chart.Load(&chart.Chart{Name: file, Files: []chart.File{
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

// sameChart compares the files of two charts.
func sameChart(a, b *helm.Chart) bool {
	same := func(x, y *helm.ChartFile) bool { return x.Name == y.Name && string(x.Data) == string(y.Data) }
	return slices.EqualFunc(a.Raw, b.Raw, same)
}
