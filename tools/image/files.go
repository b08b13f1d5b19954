package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// file is a file of a layer, or a folder, whose path ends in a slash.
type file struct {
	path string
	mode int64
	data []byte
}

// baseFiles are what a program needs besides itself: roots of trust for HTTPS, a name
// for its user, and a folder for temporary files. Time zones are in the program.
func baseFiles() []file {
	return []file{
		{path: "etc/", mode: 0o755},
		{path: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{path: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{path: "etc/ssl/", mode: 0o755},
		{path: "etc/ssl/certs/", mode: 0o755},
		{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates()},
		{path: "tmp/", mode: 0o1777},
	}
}

// certificates are Mozilla's roots, as the module golang.org/x/crypto/x509roots has them:
// a machine that builds this may have none. Those that are trusted under
// conditions only, which a file of certificates cannot say, are left out.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}

// modulesPath is where modules lie in an image that has some.
const modulesPath = "/modules"

// chartsDir are the folders of a module tree that hold archives of charts: those that
// starling.lock names.
var chartsDir = []string{".starling", ".starling/charts"}

// lockedArchive finds the digests of archives in starling.lock.
var lockedArchive = regexp.MustCompile(`(?m)^ +digest: sha256:([0-9a-f]{64})$`)

// moduleFiles reads a module tree: all but hidden files, other than archives of charts, and what
// is no file. An image without an archive that the lock names would need a registry at each start.
func moduleFiles(tree fs.FS) ([]file, error) {
	out := []file{{path: modulesPath[1:] + "/", mode: 0o755}}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case strings.HasPrefix(d.Name(), ".") && d.Name() != ".helmignore" && !slices.Contains(chartsDir, path),
			strings.HasPrefix(path, ".starling/") && !strings.HasPrefix(path+"/", ".starling/charts/"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			out = append(out, file{path: modulesPath[1:] + "/" + path + "/", mode: 0o755})
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a folder", path)
		}
		data, err := fs.ReadFile(tree, path)
		out = append(out, file{path: modulesPath[1:] + "/" + path, mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return nil, err
	}
	lock, err := fs.ReadFile(tree, "starling.lock")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, digest := range lockedArchive.FindAllSubmatch(lock, -1) {
		if _, err := fs.Stat(tree, ".starling/charts/"+string(digest[1])+".tgz"); err != nil {
			return nil, fmt.Errorf("starling.lock names an archive that is not in .starling/charts, sha256:%s: run starling fetch first", digest[1])
		}
	}
	return out, nil
}

// layerOf makes a layer of files: owned by root, all of the same time, as small as the
// compression makes it: "gzip", which all take, or "zstd", which takes a sixth less.
func layerOf(files []file, o buildOptions) (v1.Layer, error) {
	var data bytes.Buffer
	w := tar.NewWriter(&data)
	for _, f := range files {
		h := &tar.Header{Name: f.path, Mode: f.mode, Size: int64(len(f.data)), ModTime: o.Time, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.path, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	how := []tarball.LayerOption{tarball.WithCompressedCaching, tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithMediaType(types.OCILayer)}
	if o.Compression == zstandard {
		how = append(how, tarball.WithCompression(compression.ZStd), tarball.WithCompressionLevel(19), tarball.WithMediaType(types.OCILayerZStd))
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil }, how...)
}
