package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// scratch is the base that is none.
const scratch = "scratch"

// zstandard is the smaller compression.
const zstandard = "zstd"

// buildOptions say what to build.
type buildOptions struct {
	Dir, Layout, Base, Version, Modules, Push string
	// Link are more flags of the linker, such as the commit that is built.
	Link string
	// Compression of layers is "gzip" or [zstandard].
	Compression string
	// Platforms are as "linux/amd64".
	Platforms []string
	// Time is that of all files.
	Time time.Time
	Out  io.Writer
}

// build compiles starling for each platform and writes one image of all to a layout.
func build(ctx context.Context, o buildOptions) error {
	work, err := os.MkdirTemp("", "starling-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, text := range o.Platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS != "linux" || platform.Architecture == "" {
			return fmt.Errorf("%q is no platform; give linux/amd64 or linux/arm64", text)
		}
		program := filepath.Join(work, platform.Architecture)
		if err := compile(ctx, o, platform.Architecture, program); err != nil {
			return err
		}
		base, err := baseImage(ctx, o, platform)
		if err != nil {
			return err
		}
		img, err := assemble(base, program, platform, o)
		if err == nil && o.Modules != "" {
			img, err = addModules(img, o)
		}
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
		if err := describe(o.Out, img); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(o.Layout); err != nil {
		return err
	}
	if _, err := layout.Write(o.Layout, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s: %s\n", o.Layout, digest)
	if o.Push == "" {
		return nil
	}
	return push(ctx, o, index)
}

// rarely are packages of generated code that no hot path calls: without inlining the image has 0.9 MiB less.
var rarely = []string{"-gcflags=k8s.io/api/...=-l", "-gcflags=github.com/google/gnostic-models/...=-l"}

// compile builds the program as `make build` does, but for rarely.
func compile(ctx context.Context, o buildOptions, arch, program string) error {
	flags := strings.TrimSpace("-s -w " + o.Link)
	if o.Version != "" {
		if strings.ContainsAny(o.Version, " '\"\\") {
			return fmt.Errorf("-version %q cannot be linked in: letters, digits, dots and dashes", o.Version)
		}
		flags += " -X main.version=" + o.Version
	}
	fmt.Fprintf(o.Out, "compiling for linux/%s (the first time some minutes)\n", arch)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", program}, rarely...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/starling")...)
	cmd.Dir = o.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build for linux/%s: %w", arch, err)
	}
	return nil
}

// baseImage is what comes below the program.
func baseImage(ctx context.Context, o buildOptions, platform *v1.Platform) (v1.Image, error) {
	if o.Base == scratch {
		layer, err := layerOf(baseFiles(), o)
		if err != nil {
			return nil, err
		}
		img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "starling: certificates, user", Created: v1.Time{Time: o.Time}}})
	}
	ref, err := name.ParseReference(o.Base)
	if err != nil {
		return nil, fmt.Errorf("-base: %w", err)
	}
	img, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(*platform), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return nil, fmt.Errorf("-base %s: %w", o.Base, err)
	}
	return img, nil
}

// programPath is where the program lies in the image.
const programPath = "/usr/local/bin/starling"

// user is who it runs as.
const user = "65532:65532"

// assemble puts the program on the base.
func assemble(base v1.Image, program string, platform *v1.Platform, o buildOptions) (v1.Image, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	layer, err := layerOf([]file{{path: "usr/", mode: 0o755}, {path: "usr/local/", mode: 0o755}, {path: "usr/local/bin/", mode: 0o755},
		{path: programPath[1:], mode: 0o755, data: data}}, o)
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "starling: the program", Created: v1.Time{Time: o.Time}}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: o.Time}
	config.Config.User, config.Config.WorkingDir = user, "/"
	config.Config.Entrypoint, config.Config.Cmd = []string{programPath}, nil
	if o.Base == scratch {
		config.Config.Env = []string{"PATH=/usr/local/bin"}
	}
	config.Config.ExposedPorts = map[string]struct{}{"9115/tcp": {}, "9443/tcp": {}}
	config.Config.Labels = map[string]string{"org.opencontainers.image.title": "starling", "org.opencontainers.image.licenses": "Apache-2.0"}
	if o.Version != "" {
		config.Config.Labels["org.opencontainers.image.version"] = o.Version
	}
	return mutate.ConfigFile(img, config)
}

// addModules puts a module tree on top.
func addModules(img v1.Image, o buildOptions) (v1.Image, error) {
	files, err := moduleFiles(os.DirFS(o.Modules))
	if err != nil {
		return nil, fmt.Errorf("-modules %s: %w", o.Modules, err)
	}
	layer, err := layerOf(files, o)
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "starling: modules", Created: v1.Time{Time: o.Time}}})
}

// push sends the image to a registry, as the user that Docker's
// configuration has logged in there.
func push(ctx context.Context, o buildOptions, index v1.ImageIndex) error {
	ref, err := name.ParseReference(o.Push)
	if err != nil {
		return fmt.Errorf("-push: %w", err)
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("-push %s: %w", o.Push, err)
	}
	fmt.Fprintln(o.Out, "pushed as", ref)
	return nil
}

// describe prints what an image holds, by layer.
func describe(w io.Writer, img v1.Image) error {
	config, err1 := img.ConfigFile()
	layers, err2 := img.Layers()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var total int64
	fmt.Fprintf(w, "linux/%s: user %s, entrypoint %s\n", config.Architecture, config.Config.User, strings.Join(config.Config.Entrypoint, " "))
	for i, l := range layers {
		size, err := l.Size()
		if err != nil {
			return err
		}
		total += size
		by := ""
		if len(config.History) == len(layers) {
			by = config.History[i].CreatedBy
		}
		fmt.Fprintf(w, "  layer %d  %8.2f MiB compressed  %s\n", i+1, mebibytes(size), by)
	}
	fmt.Fprintf(w, "  total    %8.2f MiB compressed\n", mebibytes(total))
	return nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }
