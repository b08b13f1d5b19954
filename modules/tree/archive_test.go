package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// packed is the archive of a chart "redis" with these files, each "path: content", and its digest.
func packed(t *testing.T, list ...string) (data []byte, digest string) {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tape := tar.NewWriter(zip)
	for _, f := range list {
		name, text, _ := strings.Cut(f, ": ")
		if err := tape.WriteHeader(&tar.Header{Name: "redis/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tape.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), fmt.Sprintf("sha256:%x", sha256.Sum256(b.Bytes()))
}

const redisChart = "Chart.yaml: apiVersion: v2\nname: redis\nversion: 1.3.0\n"

// lockedTree is a tree whose lock names this archive for the module web.
func lockedTree(t *testing.T, archive []byte, digest string) fstest.MapFS {
	t.Helper()
	lock, err := FormatLock(map[string]Locked{"web": {URL: "https://charts.example.com/redis", Version: "1.3.0", Digest: digest}})
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		"web/module.star":   {Data: []byte("module()\n")},
		"web/values.yaml":   {Data: []byte("replicas: 2\n")},
		"web/crds/own.yaml": {Data: []byte("own")},
		"other/module.star": {Data: []byte("module()\n")},
		LockFile:            {Data: lock},
		ChartsDir + "/" + strings.TrimPrefix(digest, "sha256:") + ".tgz": {Data: archive},
	}
}

func TestLockedChart(t *testing.T) {
	archive, digest := packed(t, redisChart, "values.yaml: {replicas: 1, image: redis}", "templates/b.yaml: b", "templates/a.yaml: a",
		"crds/c.yaml: c", "crds/README.md: x", "charts/sub/Chart.yaml: x", "charts/sub/crds/d.yaml: d", "lib/x.star: x", ".helmignore: templates/")
	files := lockedTree(t, archive, digest)
	tr, err := Read(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := tr.Modules[1]
	if m.Name != "web" || m.Err != nil || m.Chart == nil {
		t.Fatalf("%s: %v, chart %v", m.Name, m.Err, m.Chart)
	}
	var got []string
	for _, f := range m.Chart.Files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{".helmignore", "Chart.yaml", "charts/sub/Chart.yaml", "charts/sub/crds/d.yaml", "lib/x.star", "templates/a.yaml", "templates/b.yaml", "values.yaml"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]File{{Path: "web/crds/own.yaml", Data: []byte("own")}, {Path: "redis-1.3.0.tgz/crds/c.yaml", Data: []byte("c")}}, m.CRDs); diff != "" {
		t.Error(diff)
	}
	if m.Chart.Name != "redis" || m.Chart.Digest == "" || m.Chart.Archive != m.Locked.Archive() || m.ChartValuesFile != "redis-1.3.0.tgz/values.yaml" {
		t.Errorf("the chart is %s %s of %s, its values are in %s", m.Chart.Name, m.Chart.Digest, m.Chart.Archive, m.ChartValuesFile)
	}
	if diff := cmp.Diff([]any{map[string]any{"replicas": int64(1), "image": "redis"}, map[string]any{"replicas": int64(2)}}, []any{m.ChartValues, m.Values}); diff != "" {
		t.Error(diff)
	}
	if other := tr.Modules[0]; other.Err != nil || other.Chart != nil || other.Locked != nil {
		t.Errorf("the other module has %v, %v, %v", other.Err, other.Chart, other.Locked)
	}

	// The tree is one of its archives, too: another reader of its files finds the same.
	again := fstest.MapFS{}
	err = fs.WalkDir(tr.Files, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			data, _ := fs.ReadFile(tr.Files, p)
			again[p] = &fstest.MapFile{Data: data}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if one, err := Read(again, Options{}); err != nil || one.Digest != tr.Digest || one.Modules[1].Err != nil {
		t.Errorf("read again: %v", err)
	}
	if err := fstest.TestFS(tr.Files, m.Chart.Archive, LockFile); err != nil {
		t.Error(err)
	}
	if len(tr.Problems)+len(tr.Hollow) > 0 {
		t.Errorf("got %v, %v", tr.Problems, tr.Hollow)
	}

	// Without its lock.
	if one, err := Read(files, Options{Unlocked: true}); err != nil || one.Modules[1].Chart != nil || one.Modules[1].Locked != nil || one.Modules[1].Err != nil {
		t.Errorf("unlocked: %v", err)
	}
	// A chart in the folder counts; that there are two is for the one who knows module(chart=).
	files["web/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}
	if one, err := Read(files, Options{}); err != nil || one.Modules[1].Chart.Name != "web" || one.Modules[1].Chart.Archive != "" || one.Modules[1].Locked == nil {
		t.Errorf("two charts: %v", err)
	}
}

// An archive that is broken is an error of its module.
func TestLockedChartErrors(t *testing.T) {
	good, digest := packed(t, redisChart)
	for _, test := range []struct {
		name   string
		files  []string // of the archive
		change func(files fstest.MapFS, archive string)
		want   string
	}{
		{"not there", []string{redisChart}, func(files fstest.MapFS, archive string) { delete(files, archive) },
			"starling.lock: redis-1.3.0.tgz of https://charts.example.com/redis is not in .starling/charts: run starling fetch"},
		{"other bytes", []string{redisChart}, func(files fstest.MapFS, archive string) { files[archive].Data = []byte("x") },
			"it holds other bytes than starling.lock says, sha256:2d711642"},
		{"too large", []string{redisChart}, func(files fstest.MapFS, archive string) { files[archive].Data = make([]byte, MaxFileBytes+1) },
			"the file is larger than 4 MiB"},
		{"unpacks to too much", []string{redisChart, "files/a: " + strings.Repeat("a", maxUnpacked)}, nil, "redis-1.3.0.tgz: it holds more than 32 MiB"},
		{"upwards", []string{redisChart, "../../evil: x"}, nil, "redis-1.3.0.tgz: this is no archive of a chart: chart illegally references parent directory"},
		{"no Chart.yaml", []string{"values.yaml: {}"}, nil, "redis-1.3.0.tgz: it holds no Chart.yaml"},
		{"wrong values", []string{redisChart, "values.yaml: []"}, nil, "redis-1.3.0.tgz/values.yaml: values must be a map"},
		{"empty", nil, nil, "this is no archive of a chart: no files in chart archive"},
	} {
		t.Run(test.name, func(t *testing.T) {
			archive, digest := packed(t, test.files...)
			files := lockedTree(t, archive, digest)
			if test.change != nil {
				test.change(files, Locked{Digest: digest}.Archive())
			}
			tr, err := Read(files, Options{})
			if err != nil {
				t.Fatal(err)
			}
			m := tr.Modules[1]
			if m.Err == nil || !strings.Contains(m.Err.Error(), test.want) || strings.Contains(m.Err.Error(), "\n") || m.Chart == nil {
				t.Errorf("got %v, want %s", m.Err, test.want)
			}
			if tr.Modules[0].Err != nil {
				t.Error(tr.Modules[0].Err)
			}
		})
	}
	files := lockedTree(t, good, digest)
	first, err := Read(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// An archive that comes makes another tree.
	delete(files, Locked{Digest: digest}.Archive())
	if second, err := Read(files, Options{Known: first.Digest}); err != nil || second.Digest == first.Digest {
		t.Errorf("the digest without the archive is the same: %v", err)
	}
	for text, want := range map[string]string{
		"charts: [":                       "starling.lock:",
		"<<<<<<< HEAD\ncharts: {}\n":      "remove it, and run starling fetch",
		"charts: {web: {chart: x}}":       "starling.lock: module web: version is missing",
		"charts: {web: {version: 1.0.0}}": "starling.lock: module web: ",
		"modules: {}":                     "starling.lock:",
		"charts: {web: {chart: x, version: 1.0.0, digest: \"sha256:../../../etc\"}}": "is not sha256: and 64 hex digits",
	} {
		files[LockFile].Data = []byte(text)
		if _, err := Read(files, Options{Name: "addons"}); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "modules folder addons: ") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// A lock that names a module that is gone is odd, no more.
func TestLockedOfNobody(t *testing.T) {
	archive, digest := packed(t, redisChart)
	files := lockedTree(t, archive, digest)
	for _, name := range []string{"web/module.star", "web/values.yaml", "web/crds/own.yaml"} {
		delete(files, name)
	}
	tr, err := Read(files, Options{})
	if err != nil || len(tr.Modules) != 1 {
		t.Fatal(tr, err)
	}
	if !slices.ContainsFunc(tr.Problems, func(p Problem) bool {
		return p.String() == "starling.lock: it names a chart of module web, which is not there: run starling fetch, which takes it out"
	}) {
		t.Errorf("got %v", tr.Problems)
	}
}

func TestLockFits(t *testing.T) {
	l := Locked{URL: "oci://example.com/redis", Version: "1.3.0", Digest: "sha256:aa"}
	for _, test := range []struct{ url, version, digest, want string }{
		{"oci://example.com/redis", "1.3.0", "", ""},
		{"oci://example.com/redis", "~1.3", "sha256:aa", ""},
		{"oci://example.com/mysql", "~1.3", "", "names chart oci://example.com/redis, module() oci://example.com/mysql"},
		{"oci://example.com/redis", "~1.2", "", "names version 1.3.0 of the chart, module() ~1.2"},
		{"oci://example.com/redis", "~1.3", "sha256:bb", "names the archive sha256:aa, module() sha256:bb"},
	} {
		got := ""
		if err := l.Fits(test.url, test.version, test.digest); err != nil {
			got = err.Error()
		}
		if strings.TrimPrefix(got, LockFile+" ") != test.want {
			t.Errorf("%v: got %s", test, got)
		}
	}
}

// Archives come later; all else of the tree stays as it was read.
func TestAgain(t *testing.T) {
	archive, digest := packed(t, redisChart)
	files := lockedTree(t, archive, digest)
	whole, err := Read(files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := Locked{Digest: digest}
	delete(files, l.Archive())
	why := errors.New("the repository is down")
	lacks := Options{Archives: func(Locked) ([]byte, error) { return nil, why }}
	first, err := Read(files, lacks)
	if err != nil || first.Modules[1].Err == nil || !strings.Contains(first.Modules[1].Err.Error(), why.Error()) {
		t.Fatalf("got %v, %v", first, err)
	}
	files["other/module.star"].Data = []byte("module(weight = 1)\n")
	if same, err := first.Again(lacks); err != nil || same.Digest != first.Digest {
		t.Errorf("nothing has come: %v", err)
	}
	asked := 0
	next, err := first.Again(Options{Archives: func(Locked) ([]byte, error) { asked++; return archive, nil }})
	if err != nil || next.Modules[1].Err != nil || next.Digest != whole.Digest || asked != 1 {
		t.Fatalf("got %v, asked %d times", err, asked)
	}
	if again, err := next.Again(lacks); err != nil || again.Digest != whole.Digest || again.Modules[1].Err != nil {
		t.Errorf("an archive that is there is asked for again: %v", err)
	}
	// An archive that is too much for the tree is an error of its module alone.
	most := len(archive) - 1
	for _, f := range files {
		most += len(f.Data)
	}
	small, err := Read(files, Options{MaxBytes: int64(most), Archives: func(Locked) ([]byte, error) { return archive, nil }})
	if err != nil || small.Modules[0].Err != nil || small.Modules[1].Err == nil || !strings.Contains(small.Modules[1].Err.Error(), "with this archive all files of the tree together have more than") {
		t.Errorf("got %v, %v", small, err)
	}
}

// The charts of all archives together are as limited as the files of a tree.
func TestArchivesTogether(t *testing.T) {
	files, locks := fstest.MapFS{}, map[string]Locked{}
	for i, name := range []string{"a", "b", "c"} {
		archive, digest := packed(t, redisChart, "files/a: "+strings.Repeat("a", 1<<20+i))
		locks[name] = Locked{URL: "https://charts.example.com/redis", Version: "1.3.0", Digest: digest}
		files[name+"/module.star"] = &fstest.MapFile{Data: []byte("module()\n")}
		files[locks[name].Archive()] = &fstest.MapFile{Data: archive}
	}
	lock, err := FormatLock(locks)
	if err != nil {
		t.Fatal(err)
	}
	files[LockFile] = &fstest.MapFile{Data: lock}
	tr, err := Read(files, Options{MaxBytes: 1100 << 10})
	if err != nil || tr.Modules[0].Err != nil || tr.Modules[1].Err != nil || tr.Modules[2].Err == nil || !strings.Contains(tr.Modules[2].Err.Error(), "the charts of all archives together hold too much") {
		t.Errorf("got %v, %v", tr, err)
	}
}

// A lock is for everybody to read.
func TestLockedURLs(t *testing.T) {
	for _, l := range []Locked{
		{URL: "https://me:hunter2@example.com/redis"}, {URL: "https://example.com/redis?token=hunter2"}, {URL: "file:///hunter2"}, {URL: "redis"}, {URL: "oci:///redis"},
		{URL: "oci://example.com/redis", ArchiveURL: "https://me:hunter2@example.com/redis.tgz"}, {URL: "oci://example.com/redis", ArchiveURL: "file:///hunter2"},
	} {
		l.Version, l.Digest = "1.2.0", "sha256:"+strings.Repeat("0", 64)
		text, err := FormatLock(map[string]Locked{"web": l})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseLock(text); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.HasPrefix(err.Error(), "starling.lock: module web: ") {
			t.Errorf("%v: got %v", l, err)
		}
	}
}
