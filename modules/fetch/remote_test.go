package fetch

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-operator/starling/modules/tree"
)

// named is a module.star that names a chart.
func named(url, version string) string {
	return fmt.Sprintf("module(chart = %q, version = %q)\n", url, version)
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// charts says which charts the modules of a tree have, as all commands read it, one line a module.
func charts(t *testing.T, dir string) string {
	t.Helper()
	read, err := tree.ReadDir(dir, tree.Options{})
	if err != nil {
		return err.Error()
	}
	return chartsOf(t, read)
}

func chartsOf(t *testing.T, read *tree.Tree) string {
	t.Helper()
	var lines []string
	for name, m := range declared(t.Context(), read) {
		line := name + ": "
		switch {
		case m.Err != nil:
			line = m.Err.Error()
		case m.Tree.Chart == nil:
			line += "none"
		case m.Tree.Locked == nil:
			line += "in its folder"
		default:
			line += m.Tree.Chart.Name + " " + m.Tree.Locked.Version
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// archives are the names of the files below .starling.
func archives(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, name := range names(filesIn(t, dir)) {
		if strings.HasPrefix(name, ".starling/") {
			found = append(found, name)
		}
	}
	return found
}

func TestChartOfRepository(t *testing.T) {
	var requests atomic.Int32
	srv := newRepository(t, func(http.ResponseWriter, *http.Request) bool { requests.Add(1); return false }, "redis 1.2.0", "redis 1.3.0", "redis 2.0.0", "common 1.0.0")
	dir := moduleTree(t, map[string]string{
		"web/module.star":   named(srv.URL+"/redis", "1.x"),
		"web/values.yaml":   "replicas: 2\n",
		"again/module.star": named(srv.URL+"/redis", "~1.3"),
		"other/module.star": "module()\n",
		"plain/Chart.yaml":  dependencies("common, 1.x, " + srv.URL),
	})
	if got, want := charts(t, dir), "web/module.star:1: starling.lock names no chart of module web: run starling fetch, which gets it"; !strings.Contains(got, want) {
		t.Errorf("before the fetch got %s", got)
	}
	if got, want := fetched(t, dir, srv), "again: redis 1.3.0\nplain: common 1.0.0\nweb: redis 1.3.0"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if got, want := charts(t, dir), "again: redis 1.3.0\nother: none\nplain: in its folder\nweb: redis 1.3.0"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := archives(t, dir); len(got) != 1 || !strings.HasPrefix(got[0], ".starling/charts/") || filepath.Ext(got[0]) != ".tgz" {
		t.Errorf("the archives are %s", got)
	}
	// All is there: nobody is asked, nothing is written.
	before := filesIn(t, dir)
	requests.Store(0)
	if got := fetched(t, dir, srv); got != "" || requests.Load() > 0 {
		t.Errorf("got %s, after %d requests", got, requests.Load())
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	// The lock alone is enough, and counts.
	if err := os.RemoveAll(filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	if got := charts(t, dir); !strings.Contains(got, "redis-1.3.0.tgz of "+srv.URL+"/redis is not in .starling/charts: run starling fetch") {
		t.Errorf("without the archive got %s", got)
	}
	if got := fetched(t, dir, srv); got != "again: redis 1.3.0" { // of which both have the archive
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	// An archive that somebody has changed is fetched again.
	writeFile(t, dir, archives(t, dir)[0], "x")
	if got := charts(t, dir); !strings.Contains(got, "it holds other bytes than starling.lock says") {
		t.Errorf("got %s", got)
	}
	if got := fetched(t, dir, srv); got != "again: redis 1.3.0" {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	// Another range: the lock changes, and the archive goes with the last module that has it, as does
	// the one of a fetch that was killed.
	writeFile(t, dir, tree.ChartsDir+"/0a.tgz", "x")
	writeFile(t, dir, tree.ChartsDir+"/.0b.tgz.new", "x")
	writeFile(t, dir, "web/module.star", named(srv.URL+"/redis", ">=2"))
	if got := charts(t, dir); !strings.Contains(got, "starling.lock names version 1.3.0 of the chart, module() >=2: run starling fetch") {
		t.Errorf("got %s", got)
	}
	if got := fetched(t, dir, srv); got != "web: redis 2.0.0" || len(archives(t, dir)) != 2 {
		t.Errorf("got %s, and %s", got, archives(t, dir))
	}
	if err := os.RemoveAll(filepath.Join(dir, "again")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, srv); got != "again: " || len(archives(t, dir)) != 1 {
		t.Errorf("got %s, and %s", got, archives(t, dir))
	}
	writeFile(t, dir, "web/module.star", "module()\n")
	if got := charts(t, dir); !strings.Contains(got, "module() names none: run starling fetch") {
		t.Errorf("got %s", got)
	}
	if got := fetched(t, dir, nil); got != "web: " || len(archives(t, dir)) != 0 {
		t.Errorf("got %s, and %s", got, archives(t, dir))
	}
	if got := charts(t, dir); !strings.HasSuffix(got, "web: none") {
		t.Errorf("got %s", got)
	}
}

func TestChartOfRegistry(t *testing.T) {
	s, srv := newOCI(t, "redis 1.2.0", "redis 1.3.0", "redis 2.0.0", "large 1.0.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named("oci://"+host(srv)+"/charts/redis", "^1.2")})
	if got := fetched(t, dir, srv); got != "web: redis 1.3.0" {
		t.Fatal(got)
	}
	if got := charts(t, dir); got != "web: redis 1.3.0" {
		t.Errorf("got %s", got)
	}
	if text := filesIn(t, dir)[tree.LockFile]; strings.Contains(text, password) {
		t.Errorf("the lock is %s", text)
	}
	// A tag that has moved: the digest of the lock says so.
	s.mu.Lock()
	for name, manifest := range s.manifests {
		if rest, ok := strings.CutSuffix(name, ":1.2.0"); ok {
			s.manifests[rest+":1.3.0"] = manifest
		}
	}
	s.mu.Unlock()
	if err := os.RemoveAll(filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, dir)
	if got := fetched(t, dir, srv); !strings.Contains(got, "has sent other bytes for version 1.3.0 than are asked for: sha256:") {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	large := moduleTree(t, map[string]string{"web/module.star": named("oci://"+host(srv)+"/charts/large", "1.0.0")})
	if got := fetched(t, large, srv); !strings.Contains(got, "it is larger than 4 MiB") {
		t.Errorf("got %s", got)
	}
	s.hang.Store(true)
	soon := Options{Dir: dir, Timeout: 2 * time.Second, Transport: srv.Client().Transport}
	if got := fetchedBy(t, soon); !strings.Contains(got, "not done within 2s; --timeout allows more") {
		t.Errorf("got %s", got)
	}
}

// Each leaves the tree as it was, and one module's error leaves others alone.
func TestChartErrors(t *testing.T) {
	for _, test := range []struct{ name, star, chart, want string }{
		{"no such chart", named("URL/mysql", "1.x"), "", "web/module.star:1: chart mysql: URL has no chart of this name"},
		{"no such version", named("URL/redis", "7.x"), "", "has no version that fits 7.x; the newest is 1.2.0"},
		{"no repository", named("URL/none/redis", "1.x"), "", "/none/index.yaml answers 404 Not Found"},
		{"another digest", fmt.Sprintf("module(chart = %q, version = %q, digest = %q)\n", "URL/redis", "1.x", "sha256:"+strings.Repeat("0", 64)), "",
			"has sent other bytes for version 1.2.0 than are asked for"},
		{"two charts", named("URL/redis", "1.x"), "apiVersion: v2\nname: web\nversion: 0.1.0\n", "two charts, one that module(chart=) names and one in the folder: keep one"},
		{"nobody listens", named("https://127.0.0.1:1/redis", "1.x"), "", "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := newRepository(t, nil, "redis 1.2.0")
			files := map[string]string{
				"web/module.star": strings.ReplaceAll(test.star, "URL", srv.URL),
				"zoo/module.star": named(srv.URL+"/redis", "1.x"),
			}
			if test.chart != "" {
				files["web/Chart.yaml"] = test.chart
			}
			dir := moduleTree(t, files)
			results, err := Tree(t.Context(), Options{Dir: dir, Transport: srv.Client().Transport})
			if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err != nil || results[1].Lock != tree.LockFile {
				t.Fatalf("got %v, %v", results, err)
			}
			if got := strings.ReplaceAll(results[0].Err.Error(), srv.URL, "URL"); !strings.Contains(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := charts(t, dir); !strings.HasSuffix(got, "zoo: redis 1.2.0") || len(archives(t, dir)) != 1 {
				t.Errorf("got %s, and %s", got, archives(t, dir))
			}
		})
	}
}

// A module whose module.star is broken keeps its entry, a lock that is broken is left alone.
func TestLockOfTreeIsKept(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x")})
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	writeFile(t, dir, "web/module.star", "module(")
	before := filesIn(t, dir)
	if got := fetched(t, dir, srv); !strings.Contains(got, "web/module.star:1") {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]string{`module(chart = "redis", version = "1.x")`: `"redis" names no chart`, "def enabled(): return True": ""} {
		fresh := moduleTree(t, map[string]string{"new/module.star": text})
		if got := fetched(t, fresh, srv); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("of %s got %s", text, got)
		}
	}
	writeFile(t, dir, tree.LockFile, "<<<<<<< HEAD\ncharts: {}\n")
	before = filesIn(t, dir)
	if _, err := Tree(t.Context(), Options{Dir: dir, Transport: srv.Client().Transport}); err == nil || !strings.Contains(err.Error(), "remove it, and run starling fetch again") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(before, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// A server without TLS is named as one.
func TestServersWithoutTLS(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0")
	plain := httptest.NewServer(srv.Config.Handler)
	defer plain.Close()
	_, host, _ := strings.Cut(plain.URL, "://")
	for _, chart := range []string{named("https://"+host+"/redis", "1.x"), named("oci://"+host+"/redis", "1.x"), named("oci://"+host+"/redis", "1.2.0")} {
		if got := fetched(t, moduleTree(t, map[string]string{"web/module.star": chart}), nil); !strings.Contains(got, "the server has no TLS: a registry needs it") {
			t.Errorf("of %s got %s", chart, got)
		}
	}
}

// Links that lead out of the tree are not written through.
func TestArchivesStayInTheTree(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0")
	dir, outside := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x")}), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, srv); got == "" || strings.Contains(got, "web: redis") {
		t.Errorf("got %s", got)
	}
	if got := names(filesIn(t, outside)); len(got) > 0 {
		t.Errorf("outside: %s", got)
	}
}

// The digest is that of the archive, as an index has it.
func TestDigestOfTheLock(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.2.0")})
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	files := filesIn(t, dir)
	lock, err := tree.ParseLock([]byte(files[tree.LockFile]))
	if err != nil {
		t.Fatal(err)
	}
	web := lock["web"]
	want := tree.Locked{URL: srv.URL + "/redis", Version: "1.2.0", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(files[web.Archive()]))), ArchiveURL: srv.URL + "/redis-1.2.0.tgz"}
	if web != want {
		t.Errorf("the lock names %v, want %v", web, want)
	}
}

// A newer version counts once somebody asks for it.
func TestUpdate(t *testing.T) {
	var newer atomic.Bool
	before, after := newRepository(t, nil, "redis 1.2.0", "common 1.0.0"), newRepository(t, nil, "redis 1.2.0", "redis 1.3.0", "redis 2.0.0", "common 1.0.0", "common 1.1.0")
	srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
		if newer.Load() {
			after.Config.Handler.ServeHTTP(w, r)
		} else {
			before.Config.Handler.ServeHTTP(w, r)
		}
		return true
	})
	update := func(dir string, modules ...string) string {
		t.Helper()
		return fetchedBy(t, Options{Dir: dir, Update: true, Modules: modules, Transport: srv.Client().Transport})
	}
	dir := moduleTree(t, map[string]string{
		"web/module.star": named(srv.URL+"/redis", "1.x"),
		"zoo/module.star": named(srv.URL+"/redis", "1.x"),
		"old/Chart.yaml":  dependencies("common, 1.x, " + srv.URL),
	})
	if got, want := update(dir), "old: common 1.0.0\nweb: redis 1.2.0\nzoo: redis 1.2.0"; got != want {
		t.Fatalf("got %s", got)
	}
	first := filesIn(t, dir)
	if got := update(dir); got != "" {
		t.Errorf("nothing is newer, and got %s", got)
	}
	if diff := cmp.Diff(first, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	newer.Store(true)
	if got := fetched(t, dir, srv); got != "" {
		t.Errorf("nobody has asked for newer ones, and got %s", got)
	}
	if got := update(dir, "zoo"); got != "zoo: redis 1.3.0" || len(archives(t, dir)) != 2 {
		t.Errorf("got %s, and %s", got, archives(t, dir))
	}
	// A digest names one archive, and is no question.
	lock, err := tree.ParseLock([]byte(first[tree.LockFile]))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "web/module.star", fmt.Sprintf("module(chart = %q, version = \"1.x\", digest = %q)\n", srv.URL+"/redis", lock["web"].Digest))
	if got := update(dir); got != "old: common 1.1.0, without common-1.0.0.tgz" {
		t.Errorf("got %s", got)
	}
	if got, want := charts(t, dir), "old: in its folder\nweb: redis 1.2.0\nzoo: redis 1.3.0"; got != want {
		t.Errorf("got %s", got)
	}
	if got := update(dir); got != "" {
		t.Errorf("got %s", got)
	}
	if _, err := Tree(t.Context(), Options{Dir: dir, Modules: []string{"none"}}); err == nil || err.Error() != "modules folder "+dir+" has no module none" {
		t.Errorf("got %v", err)
	}
}
