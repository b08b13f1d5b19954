package generation

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/modules/values"
)

// redis is the archive of a chart with a values.yaml, and its digest.
func redis(t *testing.T) (archive, digest string) {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tape := tar.NewWriter(zip)
	for _, f := range [][2]string{{"redis/Chart.yaml", "apiVersion: v2\nname: redis\nversion: 1.3.0\n"}, {"redis/values.yaml", "replicas: 1\n"}} {
		if err := tape.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := tape.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), fmt.Sprintf("sha256:%x", sha256.Sum256(b.Bytes()))
}

// locked adds the lock and the archive of the module web.
func locked(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	archive, digest := redis(t)
	l := tree.Locked{URL: "https://charts.example.com/stable/redis", Version: "1.3.0", Digest: digest}
	lock, err := tree.FormatLock(map[string]tree.Locked{"web": l})
	if err != nil {
		t.Fatal(err)
	}
	files[tree.LockFile], files[l.Archive()] = string(lock), archive
	return files
}

func TestLockedChart(t *testing.T) {
	const ask = `module(chart = "https://charts.example.com/stable/redis", version = "~1.3"`
	_, digest := redis(t)
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string // an error; empty: none
	}{
		{"fits", map[string]string{"web/module.star": ask + ")"}, ""},
		{"fits by digest", map[string]string{"web/module.star": ask + `, digest = "` + digest + `")`}, ""},
		{"another chart", map[string]string{"web/module.star": `module(chart = "oci://example.com/redis", version = "1.3.0")`},
			"web/module.star:1: starling.lock names chart https://charts.example.com/stable/redis, module() oci://example.com/redis: run starling fetch"},
		{"another version", map[string]string{"web/module.star": strings.Replace(ask, "~1.3", "2.x", 1) + ")"},
			"starling.lock names version 1.3.0 of the chart, module() 2.x: run starling fetch"},
		{"another digest", map[string]string{"web/module.star": ask + `, digest = "sha256:` + strings.Repeat("0", 64) + `")`}, ": run starling fetch"},
		{"none any more", map[string]string{"web/module.star": "module()"},
			"starling.lock names chart https://charts.example.com/stable/redis for it, module() names none: run starling fetch"},
		{"no module.star", map[string]string{"web/hooks/a.star": hookOnStartup}, "web: starling.lock names chart"},
		{"two", map[string]string{"web/module.star": ask + ")", "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n"},
			"two charts, one that module(chart=) names and one in the folder: keep one"},
		{"broken otherwise", map[string]string{"web/module.star": "nonsense("}, "web/module.star"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.files["other/module.star"] = "module()"
			g := load(t, locked(t, test.files))
			err := g.Modules["web"].Err
			switch {
			case g.Modules["other"].Err != nil:
				t.Error(g.Modules["other"].Err)
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s", err, test.want)
			case test.name == "broken otherwise" && strings.Contains(err.Error(), "starling.lock"):
				t.Errorf("got %v", err)
			}
		})
	}
	g := load(t, map[string]string{"web/module.star": ask + ")"})
	if err := g.Modules["web"].Err; err == nil || !strings.HasSuffix(err.Error(), "starling.lock names no chart of module web: run starling fetch, which gets it") {
		t.Errorf("without a lock got %v", err)
	}
}

// The values.yaml of a module lies over that of its chart.
func TestFileValues(t *testing.T) {
	g := load(t, locked(t, map[string]string{
		"web/module.star": `module(chart = "https://charts.example.com/stable/redis", version = "1.3.0")`, "web/values.yaml": "replicas: 2\n",
		"own/Chart.yaml": "apiVersion: v2\nname: own\nversion: 0.1.0\n", "own/values.yaml": "replicas: 3\n", "none/module.star": "module()",
		"keyed/Chart.yaml": "apiVersion: v2\nname: keyed\nversion: 0.1.0\n", "keyed/values.yaml": "keyed:\n  replicas: 4\nbeside: 1\n", "keyed/module.star": `module(values_key = "keyed")`,
		"root/Chart.yaml": "apiVersion: v2\nname: root\nversion: 0.1.0\n", "root/values.yaml": "replicas: 5\n", "root/module.star": `module(values_key = "root")`,
	}))
	for name, want := range map[string][]values.Layer{
		"web": {
			{Name: "chart values.yaml", File: "redis-1.3.0.tgz/values.yaml", Data: map[string]any{"replicas": int64(1)}},
			{Name: "module values.yaml", File: "web/values.yaml", Data: map[string]any{"replicas": int64(2)}},
		},
		"own":   {{Name: "chart values.yaml", File: "own/values.yaml", Data: map[string]any{"replicas": int64(3)}}},
		"none":  nil,
		"keyed": {{Name: "chart values.yaml", File: "keyed/values.yaml", Data: map[string]any{"replicas": int64(4)}, Key: "keyed"}},
		"root":  {{Name: "chart values.yaml", File: "root/values.yaml", Data: map[string]any{"replicas": int64(5)}}},
	} {
		if err := g.Modules[name].Err; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, g.Modules[name].FileValues()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestChartOfModule(t *testing.T) {
	for call, want := range map[string]string{
		`chart = "https://example.com/redis"`:                               `version: it is missing: name one, "1.2.3", or a range, "~1.2"`,
		`chart = "https://example.com/redis", version = "newest"`:           `version: "newest" is neither a version`,
		`version = "1.2.3"`:                                                 "version: it goes with chart, which is missing",
		`digest = "sha256:00"`:                                              "digest: it goes with chart, which is missing",
		`chart = "https://example.com/redis", version = "1", digest = "00"`: `digest: "00" is none`,
		`chart = "https://me:hunter2@example.com/redis", version = "1"`:     "chart: it holds a login: leave it out",
		`chart = "https://me:hunter2@example.com/%zz", version = "1"`:       "chart: it is no URL",
		`chart = "redis", version = "1"`:                                    `chart: "redis" names no chart: write "oci://HOST/PATH/NAME"`,
		`chart = "ftp://example.com/redis", version = "1"`:                  "names no chart",
		`chart = "https://example.com/", version = "1"`:                     "has no name of a chart at its end",
		`chart = "https://example.com/charts/index.yaml", version = "1"`:    "ends with a file",
		`chart = "oci://example.com/redis:1.2.3", version = "1"`:            "holds a version: give it as version",
		`chart = "oci://example.com:5000/a/redis", version = ">=1.2, <2"`:   "starling.lock names no chart",
		`chart = "http://127.0.0.1/redis", version = "1.2.3"`:               "starling.lock names no chart",
	} {
		g := load(t, map[string]string{"web/module.star": "module(" + call + ")"})
		if err := g.Modules["web"].Err; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %s", call, err, want)
		}
	}
	g := load(t, map[string]string{"web/module.star": "module()", "global/module.star": `module(chart = "https://example.com/redis")`})
	if g.Global.Err == nil || !strings.Contains(g.Global.Err.Error(), "chart: global hooks are no module") {
		t.Errorf("got %v", g.Global.Err)
	}
}

// A section below values_key is a map, as all sections are.
func TestASectionOfAModuleIsAMap(t *testing.T) {
	g := load(t, map[string]string{
		"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n", "web/values.yaml": "web: [1]\n", "web/module.star": `module(values_key = "web")`,
	})
	if err := g.Modules["web"].Err; err == nil || !strings.Contains(err.Error(), "web/values.yaml: web must be a map") {
		t.Error(err)
	}
}

func TestFilesOfCRDsAreLeftOut(t *testing.T) {
	g := load(t, map[string]string{
		"web/module.star": `module(crd_filter = ["old-*"])`, "web/crds/old-a.yaml": "x", "web/crds/deep/old-b.yaml": "x", "web/crds/new.yaml": "x",
	})
	var got []string
	for _, f := range g.Modules["web"].Tree.CRDs {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{"web/crds/new.yaml"}, got); diff != "" {
		t.Error(diff)
	}
}
