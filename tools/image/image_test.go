package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

var platform = &v1.Platform{OS: "linux", Architecture: "arm64"}

// program is a file that looks like a static program and does nothing.
func program() []byte {
	var out bytes.Buffer
	_ = binary.Write(&out, binary.LittleEndian, elf.Header64{ // a buffer takes all
		Ident:   [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_AARCH64),
		Version: uint32(elf.EV_CURRENT),
		Ehsize:  64,
	})
	return out.Bytes()
}

func programFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "starling")
	if err := os.WriteFile(file, program(), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func image(t *testing.T) v1.Image { return imageOf(t, "gzip") }

func imageOf(t *testing.T, compression string) v1.Image {
	t.Helper()
	o := buildOptions{Base: scratch, Version: "v1.2.3", Compression: compression, Time: time.Unix(0, 0).UTC()}
	base, err := baseImage(t.Context(), o, platform)
	if err != nil {
		t.Fatal(err)
	}
	img, err := assemble(base, programFile(t), platform, o)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func write(t *testing.T, img v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	if _, err := layout.Write(dir, index); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checked(t *testing.T, img v1.Image) error {
	t.Helper()
	return check(checkOptions{Layout: write(t, img), Platforms: []string{platform.String()}, MaxBytes: 1 << 40, Out: io.Discard})
}

func TestImageIsSound(t *testing.T) {
	dir := write(t, image(t))
	out := filepath.Join(t.TempDir(), "a", "starling")
	var said bytes.Buffer
	if err := check(checkOptions{Layout: dir, Extract: out, Platforms: []string{platform.String()}, MaxBytes: 1 << 40, Out: &said}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "user 65532:65532") {
		t.Errorf("said %q", said.String())
	}
	if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, program()) {
		t.Errorf("the program that was taken out is another one: %v", err)
	}
}

// Equal sources make equal images.
func TestImageIsReproducible(t *testing.T) {
	a, err1 := image(t).Digest()
	b, err2 := image(t).Digest()
	if err1 != nil || err2 != nil || a != b {
		t.Errorf("%s and %s, %v, %v", a, b, err1, err2)
	}
	if certs := string(certificates()); strings.Count(certs, "BEGIN CERTIFICATE") < 50 {
		t.Errorf("%d bytes of certificates", len(certs))
	}
}

func TestCompressions(t *testing.T) {
	for compression, want := range map[string]types.MediaType{"gzip": types.OCILayer, "zstd": types.OCILayerZStd} {
		img := imageOf(t, compression)
		layers, err := img.Layers()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			if got, err := l.MediaType(); err != nil || got != want {
				t.Errorf("%s: a layer is %s, %v", compression, got, err)
			}
		}
		if err := checked(t, img); err != nil {
			t.Errorf("%s: %v", compression, err)
		}
	}
}

func TestWhatCheckRefuses(t *testing.T) {
	with := func(files ...file) v1.Image {
		layer, err := layerOf(files, buildOptions{Time: time.Unix(0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		img, err := mutate.AppendLayers(image(t), layer)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}
	config := func(change func(*v1.Config)) v1.Image {
		img := image(t)
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c = c.DeepCopy()
		change(&c.Config)
		if img, err = mutate.ConfigFile(img, c); err != nil {
			t.Fatal(err)
		}
		return img
	}
	for name, c := range map[string]struct {
		img  v1.Image
		want string
	}{
		"shell":      {with(file{path: "bin/sh", mode: 0o755}), "it has a /bin/sh"},
		"link":       {with(file{path: "bin/busybox", mode: 0o644}), "it has a /bin/busybox"},
		"program":    {with(file{path: "opt/x", mode: 0o755}), "/opt/x can be run; nothing but /usr/local/bin/starling may be"},
		"setuid":     {with(file{path: "opt/x", mode: 0o4644}), "/opt/x gives its owner's rights to who runs it"},
		"no program": {with(file{path: programPath[1:], mode: 0o755, data: []byte("#!/bin/sh\n")}), "/usr/local/bin/starling is no program for Linux"},
		"writable":   {with(file{path: programPath[1:], mode: 0o777}), "/usr/local/bin/starling can be written by who runs it"},
		"root":       {config(func(c *v1.Config) { c.User = "" }), `it runs as user "", not 65532:65532`},
		"entrypoint": {config(func(c *v1.Config) { c.Cmd = []string{"sh"} }), `it runs ["/usr/local/bin/starling"] ["sh"]`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checked(t, c.img); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	img := write(t, image(t))
	for want, o := range map[string]checkOptions{
		"is for linux/arm64, not for linux/s390x": {Layout: img, Platforms: []string{"linux/s390x"}},
		"MiB compressed, more than 0.00":          {Layout: img, Platforms: []string{platform.String()}, MaxBytes: 1},
		"is no OCI layout":                        {Layout: t.TempDir(), Platforms: []string{platform.String()}},
	} {
		o.Out = io.Discard
		if err := check(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// From a base of a registry, and to one.
func TestBaseAndPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	layer, err := layerOf([]file{{path: "etc/", mode: 0o755}, {path: "etc/os-release", mode: 0o644, data: []byte("x")}}, buildOptions{Time: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	base, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(host + "/base:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, base); err != nil {
		t.Fatal(err)
	}

	o := buildOptions{Base: ref.String(), Push: host + "/starling:v1", Time: time.Unix(0, 0).UTC(), Out: io.Discard}
	from, err := baseImage(t.Context(), o, platform)
	if err != nil {
		t.Fatal(err)
	}
	img, err := assemble(from, programFile(t), platform, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := checked(t, img); err != nil {
		t.Error(err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	if err := push(t.Context(), o, index); err != nil {
		t.Fatal(err)
	}
	to, err := name.ParseReference(o.Push)
	if err != nil {
		t.Fatal(err)
	}
	there, err := remote.Index(to)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := index.Digest()
	got, err2 := there.Digest()
	if err1 != nil || err2 != nil || got != want {
		t.Errorf("pushed %s, want %s: %v, %v", got, want, err1, err2)
	}

	o.Base, o.Push = host+"/none:v1", "NO"
	if _, err := baseImage(t.Context(), o, platform); err == nil || !strings.Contains(err.Error(), "-base "+host+"/none:v1: ") {
		t.Errorf("got %v", err)
	}
	if err := push(t.Context(), o, index); err == nil || !strings.HasPrefix(err.Error(), "-push: ") {
		t.Errorf("got %v", err)
	}
}

func TestModules(t *testing.T) {
	files, err := moduleFiles(fstest.MapFS{"web/module.star": {Data: []byte("module()")}, ".git/x": {}, "web/.helmignore": {}, "web/.x": {},
		"starling.lock": {}, ".starling/charts/0a.tgz": {}, ".starling/charts/.0b.tgz.new": {}, ".starling/x/y": {}, "web/.starling/charts/c.tgz": {}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, f.path)
	}
	if want := "modules/ modules/.starling/ modules/.starling/charts/ modules/.starling/charts/0a.tgz modules/starling.lock modules/web/ modules/web/.helmignore modules/web/module.star"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	locked := fstest.MapFS{"starling.lock": {Data: []byte("charts:\n  web:\n    chart: oci://example.com/web\n    digest: sha256:" + strings.Repeat("0", 64) + "\n    version: 1.0.0\n")}}
	if _, err := moduleFiles(locked); err == nil || !strings.Contains(err.Error(), "run starling fetch first") {
		t.Errorf("without an archive of the lock got %v", err)
	}
	locked[".starling/charts/"+strings.Repeat("0", 64)+".tgz"] = &fstest.MapFile{}
	if _, err := moduleFiles(locked); err != nil {
		t.Error(err)
	}
	if _, err := addModules(image(t), buildOptions{Modules: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"push"}, {"build"}, {"build", "-out", "x", "-compression", "xz"}, {"build", "-out", "x", "-platforms", "windows/amd64", "-dir", t.TempDir()}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
	for _, bad := range []string{"x", "-1"} {
		if _, err := sourceDate(bad); err == nil {
			t.Errorf("SOURCE_DATE_EPOCH=%s is taken", bad)
		}
	}
}
