package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// checkOptions say what to look at.
type checkOptions struct {
	Layout, Extract string
	Platforms       []string
	// MaxBytes bounds the layers of one platform, compressed.
	MaxBytes int64
	Out      io.Writer
}

// shells are programs that have no place in the image; so has no other than starling.
var shells = []string{"sh", "bash", "ash", "dash", "zsh", "busybox", "toybox", "kubectl", "jq", "curl", "apk", "apt", "dpkg"}

// machines are ELF's names of architectures.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// check looks into a layout: that it holds an image for each platform which runs starling
// as a user without rights, has nothing else to run, and is small. It takes the program
// of the first one out.
func check(o checkOptions) error {
	index, err := layout.ImageIndexFromPath(o.Layout)
	if err != nil {
		return fmt.Errorf("%s is no OCI layout (%w); run: make image", o.Layout, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	var found []string
	images := map[string]v1.Image{}
	for _, d := range manifest.Manifests {
		if d.Platform == nil {
			return fmt.Errorf("%s: an image says no platform", o.Layout)
		}
		img, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		found, images[d.Platform.String()] = append(found, d.Platform.String()), img
	}
	if !slices.Equal(found, o.Platforms) {
		return fmt.Errorf("%s is for %s, not for %s", o.Layout, strings.Join(found, ", "), strings.Join(o.Platforms, ", "))
	}
	for i, platform := range o.Platforms {
		program, size, err := inspect(images[platform])
		if err == nil && size > o.MaxBytes {
			err = fmt.Errorf("it has %.2f MiB compressed, more than %.2f", mebibytes(size), mebibytes(o.MaxBytes))
		}
		if err != nil {
			return fmt.Errorf("%s, %s: %w", o.Layout, platform, err)
		}
		fmt.Fprintf(o.Out, "%s: user %s, nothing to run but %s, %.2f MiB compressed\n", platform, user, programPath, mebibytes(size))
		if i > 0 || o.Extract == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(o.Extract), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(o.Extract, program, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// inspect returns the program and the size of the layers.
func inspect(img v1.Image) (program []byte, size int64, err error) {
	config, err1 := img.ConfigFile()
	layers, err2 := img.Layers()
	if err := errors.Join(err1, err2); err != nil {
		return nil, 0, err
	}
	c := config.Config
	switch {
	case c.User != user:
		return nil, 0, fmt.Errorf("it runs as user %q, not %s", c.User, user)
	case !slices.Equal(c.Entrypoint, []string{programPath}) || len(c.Cmd) > 0:
		return nil, 0, fmt.Errorf("it runs %q %q, not %s", c.Entrypoint, c.Cmd, programPath)
	case len(layers) < 2:
		return nil, 0, fmt.Errorf("it has %d layers; the program needs a separate layer", len(layers))
	}
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return nil, 0, err
		}
		size += n
		if program, err = look(l, program); err != nil {
			return nil, 0, err
		}
	}
	if program == nil {
		return nil, 0, fmt.Errorf("it has no %s", programPath)
	}
	return program, size, static(program, config.Architecture)
}

// look goes through a layer; it returns the program if it is in there, else what was
// found before.
func look(l v1.Layer, program []byte) ([]byte, error) {
	r, err := l.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return program, nil
		}
		if err != nil {
			return nil, err
		}
		name := "/" + strings.TrimPrefix(path.Clean(h.Name), "/")
		switch {
		case h.Typeflag == tar.TypeDir:
			continue
		case slices.Contains(shells, path.Base(name)):
			return nil, fmt.Errorf("it has a %s", name)
		case h.Mode&0o6000 != 0:
			return nil, fmt.Errorf("%s gives its owner's rights to who runs it", name)
		case h.Typeflag == tar.TypeReg && h.Mode&0o111 != 0 && name != programPath:
			return nil, fmt.Errorf("%s can be run; nothing but %s may be", name, programPath)
		case name != programPath:
			continue
		case h.Uid != 0 || h.Mode&0o22 != 0:
			return nil, fmt.Errorf("%s can be written by who runs it", name)
		}
		var data bytes.Buffer
		if _, err := io.Copy(&data, t); err != nil {
			return nil, err
		}
		program = data.Bytes()
	}
}

// static makes sure that a program is for an architecture and needs no libraries.
func static(program []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s is no program for Linux: %w", programPath, err)
	}
	if f.Machine != machines[arch] {
		return fmt.Errorf("%s is for %s, not for %s", programPath, f.Machine, arch)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static", programPath)
		}
	}
	return nil
}
