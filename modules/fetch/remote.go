package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/generation"
	"github.com/starling-operator/starling/runtime/script"
	"github.com/starling-operator/starling/stdlib"
)

// declared are the modules of a tree with what module() says of each, by name.
func declared(ctx context.Context, t *tree.Tree) map[string]*generation.Module {
	return generation.Load(ctx, generation.Options{
		Tree: t, Std: stdlib.FS, Number: 1, Governor: script.NewGovernor(script.GovernorOptions{}),
	}).Modules
}

// remote gets the chart that module(chart=) names: the archive that the lock names where that is
// one the module asks for, else the newest.
func (f *fetcher) remote(ctx context.Context, m *generation.Module) (Result, error) {
	want := m.Decl.Chart
	fail := func(err error) (Result, error) { return Result{}, fmt.Errorf("%s: %w", m.Decl.Pos, err) }
	if m.Tree.Chart != nil {
		return fail(errors.New("two charts, one that module(chart=) names and one in the folder: keep one"))
	}
	locked, fits := f.lock.before[m.Name]
	fits = fits && locked.Fits(want.URL, want.Version, want.Digest) == nil
	d := dependencyOf(want.URL, want.Version)
	if !fits || f.o.Update && want.Digest == "" { // which names one archive
		version, err := f.version(ctx, nil, d)
		if err != nil {
			return fail(fmt.Errorf("chart %s: %w", d.Name, err))
		}
		if fits = fits && version == locked.Version; !fits {
			locked = tree.Locked{URL: want.URL, Version: version, Digest: want.Digest}
		}
	}
	if fits && f.stored(locked) {
		return Result{}, nil
	}
	d.Version = locked.Version
	data := f.again(ctx, d, locked)
	if data == nil {
		from, sum, err := f.find(ctx, d, locked.Digest)
		if err == nil {
			data, err = f.chart(ctx, d, locked, from, sum)
		}
		if err != nil {
			return fail(fmt.Errorf("chart %s: %w", d.Name, err))
		}
		locked.Digest, locked.ArchiveURL = digest(data), lockable(d, from)
	}
	if err := f.store(locked, data); err != nil {
		return Result{}, err
	}
	r := Result{Module: m.Name, Fetched: []string{d.Name + " " + d.Version}}
	if locked != f.lock.before[m.Name] {
		f.lock.now[m.Name], r.Lock = locked, tree.LockFile
	}
	return r, nil
}

// again gets the archive from where it was when the lock was written; nil: it is not there any more,
// and the repository may say where it is now.
func (f *fetcher) again(ctx context.Context, d *helm.Dependency, locked tree.Locked) []byte {
	if locked.ArchiveURL == "" {
		return nil
	}
	data, err := f.chart(ctx, d, locked, locked.ArchiveURL, "")
	if err != nil {
		return nil
	}
	return data
}

// lockable is the URL of an archive as the lock has it: none of a registry, and none that may hold a
// login.
func lockable(d *helm.Dependency, from string) string {
	if isOCI(d.Repository) || (tree.Locked{URL: from}).CheckURLs() != nil {
		return ""
	}
	return from
}

// dependencyOf is the chart that a URL of module(chart=) names.
func dependencyOf(url, version string) *helm.Dependency {
	at := strings.LastIndex(url, "/")
	return &helm.Dependency{Name: url[at+1:], Repository: url[:max(at, 0)], Version: version}
}

// chart gets the archive of a chart from where find has found it, and looks at it. One of another
// digest than locked has is an error; an empty digest is any.
func (f *fetcher) chart(ctx context.Context, d *helm.Dependency, locked tree.Locked, from, sum string) ([]byte, error) {
	if file := locked.File(); path.Base(file) != file || strings.Contains(file, `\`) {
		return nil, fmt.Errorf("%q is no name of an archive", file)
	}
	data, err := f.archive(ctx, from, sum)
	if err != nil {
		return nil, err
	}
	if got := digest(data); locked.Digest != "" && got != locked.Digest {
		return nil, fmt.Errorf("%s has sent other bytes for version %s than are asked for: %s instead of %s; nothing was written. "+
			"If its author has published the version again and you trust that, remove the entry in %s, or change digest=, and run starling fetch",
			place(from), d.Version, got, locked.Digest, tree.LockFile)
	}
	got, err := loadPacked(locked.File(), data)
	if err != nil {
		return nil, err
	}
	if got.Name() != d.Name || !tree.InRange(d.Version, got.Metadata.Version) {
		return nil, fmt.Errorf("%s has sent chart %s %s, wanted is version %s", place(from), got.Name(), got.Metadata.Version, d.Version)
	}
	if err := helm.Missing(got); err != nil {
		return nil, fmt.Errorf("the archive lacks what the chart depends on (%w): its author packs it with helm package --dependency-update", err)
	}
	return data, nil
}

// digest of an archive, as locks have it.
func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// stored reports whether the tree holds this archive, and no other bytes in its place.
func (f *fetcher) stored(l tree.Locked) bool {
	root, err := os.OpenRoot(f.o.Dir)
	if err != nil {
		return false
	}
	defer root.Close()
	data, err := root.ReadFile(l.Archive())
	return err == nil && digest(data) == l.Digest
}

// store puts an archive into the tree: beside its place, then renamed.
func (f *fetcher) store(l tree.Locked, data []byte) error {
	root, err := os.OpenRoot(f.o.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(tree.ChartsDir, 0o755); err != nil {
		return fmt.Errorf("cannot make %s: %w", tree.ChartsDir, err)
	}
	return replace(root, l.Archive(), data)
}

// replace writes a file beside its place, and renames it.
func replace(root *os.Root, name string, data []byte) error {
	temp := path.Join(path.Dir(name), "."+path.Base(name)+".new") // no tree has it
	err := root.WriteFile(temp, data, 0o644)
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write %s: %w", name, err), ignoreMissing(root.Remove(temp)))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// treeLock is the lock of the tree: as it is on the disk, and as it will be.
type treeLock struct{ before, now map[string]tree.Locked }

func readLock(files fs.FS) (*treeLock, error) {
	l := &treeLock{now: map[string]tree.Locked{}}
	data, err := fs.ReadFile(files, tree.LockFile)
	if err != nil {
		return l, ignoreMissing(err)
	}
	if l.before, err = tree.ParseLock(data); err != nil {
		return nil, fmt.Errorf("%w; remove it, and run starling fetch again, which then writes a new one", err)
	}
	maps.Copy(l.now, l.before)
	return l, nil
}

// drop takes out a module that names no chart any more.
func (l *treeLock) drop(module string) Result {
	delete(l.now, module)
	return Result{Module: module, Lock: tree.LockFile}
}

// write takes out modules that are not in the tree, and makes the lock on the disk what it must
// be. Then it removes the archives that the lock does not name, those of a fetch that was killed among
// them. It returns what it has done for modules that are gone.
func (l *treeLock) write(dir string, t *tree.Tree) ([]Result, error) {
	var gone []Result
	for _, name := range slices.Sorted(maps.Keys(l.before)) {
		if !slices.ContainsFunc(t.Modules, func(m *tree.Module) bool { return m.Name == name }) {
			gone = append(gone, l.drop(name))
		}
	}
	if maps.Equal(l.before, l.now) {
		return gone, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return gone, err
	}
	defer root.Close()
	data, err := tree.FormatLock(l.now)
	if err == nil {
		err = replace(root, tree.LockFile, data)
	}
	if err != nil {
		return gone, err
	}
	named := map[string]bool{}
	for _, one := range l.now {
		named[one.Archive()] = true
	}
	files, err := fs.ReadDir(root.FS(), tree.ChartsDir)
	if err != nil {
		return gone, ignoreMissing(err)
	}
	for _, f := range files {
		name := tree.ChartsDir + "/" + f.Name()
		if named[name] || f.IsDir() {
			continue
		}
		if err := ignoreMissing(root.Remove(name)); err != nil {
			return gone, fmt.Errorf("cannot remove %s, which %s does not name: %w", name, tree.LockFile, err)
		}
	}
	return gone, nil
}
