package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/starling-operator/starling/modules/chart"
	"github.com/starling-operator/starling/modules/helm"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
)

// resolve chooses a version for each dependency: the newest of its range.
func (f *fetcher) resolve(ctx context.Context, c *target) ([]*helm.Dependency, error) {
	var locked []*helm.Dependency
	for _, d := range c.chart.Metadata.Dependencies {
		version, err := f.version(ctx, c, d)
		if err != nil {
			return nil, fmt.Errorf("dependency %s: %w", d.Name, err)
		}
		locked = append(locked, &helm.Dependency{Name: d.Name, Repository: d.Repository, Version: version})
	}
	return locked, nil
}

func (f *fetcher) version(ctx context.Context, c *target, d *helm.Dependency) (string, error) {
	if _, err := semver.NewConstraint(d.Version); err != nil {
		return "", fmt.Errorf("version %q is no range of versions, such as 1.2.3 or ~1.2", d.Version)
	}
	var versions []string // the newest first
	switch scheme, _, _ := strings.Cut(d.Repository, "://"); scheme {
	case "":
		return d.Version, nil
	case "file":
		ch, err := f.local(c, d)
		if err != nil {
			return "", err
		}
		versions = []string{ch.Metadata.Version}
	case "oci":
		if _, err := semver.NewVersion(d.Version); err == nil {
			return d.Version, nil
		}
		var err error
		if versions, err = helm.Tags(f.registry(ctx), strings.TrimPrefix(ociRef(d), "oci://")); err != nil {
			return "", fmt.Errorf("cannot list its versions in %s: %w", place(d.Repository), scrub(err))
		}
	default:
		index, err := f.index(ctx, d.Repository)
		if err != nil {
			return "", err
		}
		for _, v := range index.Entries[d.Name] {
			if len(v.URLs) > 0 {
				versions = append(versions, v.Version)
			}
		}
	}
	for _, v := range versions {
		if tree.InRange(d.Version, v) {
			return v, nil
		}
	}
	if len(versions) == 0 {
		return "", fmt.Errorf("%s has no chart of this name", place(d.Repository))
	}
	return "", fmt.Errorf("%s has no version that fits %s; the newest is %s", place(d.Repository), d.Version, versions[0])
}

// get returns the archive of a chart in the version that is locked.
func (f *fetcher) get(ctx context.Context, c *target, d *helm.Dependency) ([]byte, error) {
	if strings.HasPrefix(d.Repository, "file://") {
		ch, err := f.local(c, d)
		if err != nil {
			return nil, err
		}
		return helm.Pack(ch)
	}
	from, sum, err := f.find(ctx, d, "")
	if err != nil {
		return nil, err
	}
	return f.archive(ctx, from, sum)
}

// find returns the URL of a chart in a version, and the SHA-256 of its archive where an index says it. Known is the
// digest that is known already, or "".
func (f *fetcher) find(ctx context.Context, d *helm.Dependency, known string) (from, sum string, err error) {
	if isOCI(d.Repository) {
		return ociRef(d) + ":" + d.Version, "", nil
	}
	index, err := f.index(ctx, d.Repository)
	if err != nil {
		return "", "", err
	}
	for _, v := range index.Entries[d.Name] {
		if !tree.InRange(d.Version, v.Version) || len(v.URLs) == 0 {
			continue
		}
		if from, err = helm.ResolveURL(d.Repository, v.URLs[0]); err != nil {
			return "", "", fmt.Errorf("the index of %s has a wrong URL for it", place(d.Repository))
		}
		if v.Digest == "" && known == "" && strings.HasPrefix(d.Repository, "https://") && !strings.HasPrefix(from, "https://") {
			return "", "", fmt.Errorf("the index of %s has it at %s, without TLS and without a digest: anybody on the way could send another one; give the module digest=", place(d.Repository), place(from))
		}
		return from, strings.TrimPrefix(v.Digest, "sha256:"), nil
	}
	return "", "", fmt.Errorf("%s has no version %s of it", place(d.Repository), d.Version)
}

// archive gets what is at a URL that find has returned.
func (f *fetcher) archive(ctx context.Context, from, sum string) ([]byte, error) {
	if isOCI(from) {
		data, err := helm.Pull(f.registry(ctx), from)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", from, scrub(err))
		}
		return data, nil
	}
	data, err := f.download(ctx, from, tree.MaxFileBytes, true)
	if err != nil {
		return nil, err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(data)); sum != "" && sum != got {
		return nil, fmt.Errorf("%s has sent other bytes than the index says: sha256 %s instead of %s; nothing was written", place(from), got, sum)
	}
	return data, nil
}

// local loads the chart of a folder in the tree, without what its .helmignore names. Links out of
// the tree are errors: their files would go into images and repositories.
func (f *fetcher) local(c *target, d *helm.Dependency) (*helm.Chart, error) {
	from := strings.TrimPrefix(d.Repository, "file://")
	dir := path.Join(c.dir, from)
	if path.IsAbs(from) || !fs.ValidPath(dir) {
		return nil, fmt.Errorf("%s is not in the module tree: name a path from this chart to a folder of the tree, such as file://../lib/common", d.Repository)
	}
	root, err := os.OpenRoot(f.o.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := chartFiles(root.FS(), dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Repository, err)
	}
	return chart.Load(&chart.Chart{Name: d.Name, Files: files})
}

// chartFiles reads the files of a chart in the folder dir.
func chartFiles(fsys fs.FS, dir string) ([]chart.File, error) {
	text, err := fs.ReadFile(fsys, path.Join(dir, helm.IgnoreFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ignored, err := helm.Ignored(text)
	if err != nil {
		return nil, err
	}
	var files []chart.File
	err = fs.WalkDir(fsys, dir, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		name := strings.TrimPrefix(p, dir+"/")
		info, err := fs.Stat(fsys, p)
		switch {
		case err != nil:
			return err
		case ignored(name, info.IsDir()) && entry.IsDir():
			return fs.SkipDir
		case ignored(name, info.IsDir()) || entry.IsDir():
			return nil
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is no file", name)
		case info.Size() > tree.MaxFileBytes:
			return fmt.Errorf("%s: %w", name, tooLarge(tree.MaxFileBytes))
		}
		data, err := fs.ReadFile(fsys, p)
		data, _ = bounded.Text(data)
		files = append(files, chart.File{Path: name, Data: data})
		return err
	})
	return files, err
}

// index returns the index of a chart repository, read once.
func (f *fetcher) index(ctx context.Context, repository string) (*helm.Index, error) {
	if index := f.indexes[repository]; index != nil {
		return index, nil
	}
	if u, err := url.Parse(repository); err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("repository %s is none of https://, http://, oci:// and file://; in the place of an alias of `helm repo add` write the URL", place(repository))
	}
	from, err := helm.ResolveURL(repository, "index.yaml")
	if err != nil {
		return nil, err
	}
	data, err := f.download(ctx, from, f.maxIndex, false)
	if err != nil {
		return nil, err
	}
	if f.maxIndex <= bounded.MaxYAML { // beside other work its size in memory counts
		if err := bounded.CheckYAML(data); err != nil {
			return nil, fmt.Errorf("%s %w", place(from), err)
		}
	} else if bounded.YAMLValues(data) > maxIndexValues {
		return nil, fmt.Errorf("%s is too large: it may hold more than %d values", place(from), maxIndexValues)
	}
	index, err := helm.ReadIndex(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no index of a chart repository: %w", place(from), err)
	}
	f.indexes[repository] = index
	return index, nil
}
