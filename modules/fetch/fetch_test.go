package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/downloader"

	"github.com/starling-operator/starling/modules/tree"
)

// dependencies is a Chart.yaml with these, each "name, version, repository".
func dependencies(list ...string) string {
	text := "apiVersion: v2\nname: web\nversion: 0.1.0\ndependencies:\n"
	for _, d := range list {
		part := strings.Split(d, ", ")
		text += fmt.Sprintf("- {name: %s, version: %q, repository: %q}\n", part[0], part[1], part[2])
	}
	return text
}

// moduleTree writes files to a new module tree.
func moduleTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// fetched runs Tree and returns what it has done, one line a module.
func fetched(t *testing.T, dir string, srv *httptest.Server) string {
	t.Helper()
	o := Options{Dir: dir}
	if srv != nil {
		o.Transport = srv.Client().Transport
	}
	return fetchedBy(t, o)
}

func fetchedBy(t *testing.T, o Options) string {
	t.Helper()
	results, err := Tree(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range results {
		line := r.Module + ": " + strings.Join(r.Fetched, ", ")
		if len(r.Removed) > 0 {
			line += ", without " + strings.Join(r.Removed, ", ")
		}
		if r.Err != nil {
			line = r.Err.Error()
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// filesIn returns all files below dir with their contents, but for the times of locks.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func names(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

func TestRepository(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0", "redis 1.2.7", "redis 2.0.0", "common 1.0.0+a")
	plain := httptest.NewServer(srv.Config.Handler)
	defer plain.Close()
	for _, root := range []string{"web", "web/chart"} {
		dir := moduleTree(t, map[string]string{
			"web/module.star":    "module()",
			root + "/Chart.yaml": dependencies("redis, ~1.2.0, "+srv.URL, "common, *, "+srv.URL+"/"),
			"other/module.star":  "module()",
			"old/Chart.yaml":     "apiVersion: v1\nname: old\nversion: 0.1.0\n",
			"old/requirements.yaml": strings.TrimPrefix(dependencies("redis, 1.2.0, "+plain.URL),
				"apiVersion: v2\nname: web\nversion: 0.1.0\n"),
		})
		if got, want := fetched(t, dir, srv), "old: redis 1.2.0\nweb: redis 1.2.7, common 1.0.0+a"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		want := []string{"old/Chart.yaml", "old/charts/redis-1.2.0.tgz", "old/requirements.lock", "old/requirements.yaml", "other/module.star",
			root + "/Chart.lock", root + "/Chart.yaml", root + "/charts/common-1.0.0+a.tgz", root + "/charts/redis-1.2.7.tgz", "web/module.star"}
		if diff := cmp.Diff(want, names(filesIn(t, dir))); diff != "" {
			t.Error(diff)
		}
		if got := fetched(t, dir, nil); got != "" { // asks nobody: the default transport does not trust the server
			t.Errorf("all is there, and got %s", got)
		}
	}
}

// A lock decides the version; archives of other versions of its charts go.
func TestLock(t *testing.T) {
	first := newRepository(t, nil, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/Chart.yaml": dependencies("redis, 1.x, " + first.URL)})
	if got := fetched(t, dir, first); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	lock := filesIn(t, dir)["web/Chart.lock"]
	second := newRepository(t, nil, "redis 1.2.0", "redis 1.3.0", "mine 0.1.0")
	// The repository has moved, and has a newer version.
	swapped := strings.ReplaceAll(lock, first.URL, second.URL)
	files := map[string]string{"web/Chart.yaml": dependencies("redis, 1.x, " + second.URL), "web/Chart.lock": swapped}
	dir = moduleTree(t, files)
	got := fetched(t, dir, second)
	if want := "web: Chart.lock does not fit the dependencies in Chart.yaml: delete Chart.lock and run starling fetch again"; !strings.HasPrefix(got, want) {
		t.Fatalf("got %s", got)
	}
	if diff := cmp.Diff(files, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(dir, "web/Chart.lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "web/charts"), 0o755); err != nil {
		t.Fatal(err)
	}
	packed(t, filepath.Join(dir, "web/charts"), "redis", "0.9.0")
	packed(t, filepath.Join(dir, "web/charts"), "mine", "0.1.0")
	if got := fetched(t, dir, second); got != "web: redis 1.3.0, without redis-0.9.0.tgz" {
		t.Fatal(got)
	}
	if diff := cmp.Diff([]string{"web/Chart.lock", "web/Chart.yaml", "web/charts/mine-0.1.0.tgz", "web/charts/redis-1.3.0.tgz"}, names(filesIn(t, dir))); diff != "" {
		t.Error(diff)
	}
	if err := os.RemoveAll(filepath.Join(dir, "web/charts")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, second); got != "web: redis 1.3.0" {
		t.Error(got)
	}
}

func TestRegistry(t *testing.T) {
	s, srv := newOCI(t, "redis 1.2.0", "redis 1.3.0", "redis 2.0.0", "large 1.0.0")
	yaml := dependencies("redis, ^1.2, oci://" + host(srv) + "/charts")
	dir := moduleTree(t, map[string]string{"web/Chart.yaml": yaml})
	if got := fetched(t, dir, srv); got != "web: redis 1.3.0" {
		t.Fatal(got)
	}
	if diff := cmp.Diff([]string{"web/Chart.lock", "web/Chart.yaml", "web/charts/redis-1.3.0.tgz"}, names(filesIn(t, dir))); diff != "" {
		t.Error(diff)
	}

	// Other bytes than the digest says, as many of them.
	for digest, data := range s.blobs {
		if data[0] == 0x1f { // an archive
			s.blobs[digest] = append(slices.Clone(data[:len(data)-1]), data[len(data)-1]+1)
		}
	}
	dir = moduleTree(t, map[string]string{"web/Chart.yaml": yaml})
	if got := fetched(t, dir, srv); !strings.Contains(got, "digest") {
		t.Errorf("got %s", got)
	}
	large := moduleTree(t, map[string]string{"web/Chart.yaml": dependencies("large, 1.0.0, oci://" + host(srv) + "/charts")})
	if got := fetched(t, large, srv); !strings.Contains(got, "it is larger than 4 MiB") {
		t.Errorf("got %s", got)
	}
	none := moduleTree(t, map[string]string{"web/Chart.yaml": dependencies("redis, 3.0.0, oci://" + host(srv) + "/charts")})
	if got := fetched(t, none, srv); !strings.Contains(got, "/charts/redis:3.0.0: not found") {
		t.Errorf("got %s", got)
	}
	s.hang.Store(true)
	soon := Options{Dir: dir, Timeout: 2 * time.Second, Transport: srv.Client().Transport}
	if got := fetchedBy(t, soon); !strings.Contains(got, "not done within 2s; --timeout allows more") {
		t.Errorf("got %s", got)
	}
	s.hang.Store(false)
	// Without a login, and with that of Helm.
	login := filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if got := fetched(t, dir, srv); !strings.Contains(got, "basic credential not found") || strings.Contains(got, password) {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff([]string{"web/Chart.yaml"}, names(filesIn(t, dir))); diff != "" {
		t.Error(diff)
	}
	t.Setenv("HELM_REGISTRY_CONFIG", login)
	if got := fetched(t, large, srv); !strings.Contains(got, "it is larger than 4 MiB") {
		t.Errorf("with Helm's login got %s", got)
	}
}

// Helm takes the lock for its own; a chart of the tree is packed again when it has changed.
func TestFolder(t *testing.T) {
	dir := moduleTree(t, map[string]string{
		"web/Chart.yaml":               dependencies("common, 1.x, file://../lib/common"),
		"lib/common/Chart.yaml":        "apiVersion: v2\nname: common\nversion: 1.2.3\n",
		"lib/common/templates/_a.tpl":  "{{/* one */}}",
		"lib/common/.helmignore":       "*.md\n",
		"lib/common/templates/note.md": "left out",
	})
	for _, want := range []string{"web: common 1.2.3", ""} {
		if got := fetched(t, dir, nil); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "lib/common/templates/_a.tpl"), []byte("{{/* two */}}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, nil); got != "web: common 1.2.3" {
		t.Errorf("got %s", got)
	}
	m := &downloader.Manager{Out: io.Discard, ChartPath: filepath.Join(dir, "web"), RepositoryConfig: filepath.Join(dir, "none"), SkipUpdate: true}
	if err := os.WriteFile(m.RepositoryConfig, []byte("apiVersion: v1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.Build(); err != nil {
		t.Errorf("helm dependency build: %v", err)
	}
	if got := fetched(t, dir, nil); got != "" {
		t.Errorf("after helm dependency build got %s", got)
	}
	before := filesIn(t, filepath.Join(dir, "web"))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "lib/common/templates/link")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, nil); !strings.Contains(got, "path escapes from parent") {
		t.Errorf("with a link out of the tree got %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "lib/common/templates/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lib/common/Chart.yaml"), []byte("apiVersion: v2\nname: common\nversion: 1.3.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, nil); !strings.Contains(got, "is version 1.3.0 by now, Chart.lock says 1.2.3: delete Chart.lock") {
		t.Errorf("got %s", got)
	}
	if diff := cmp.Diff(before, filesIn(t, filepath.Join(dir, "web"))); diff != "" {
		t.Error(diff)
	}
}

// TestErrors: each leaves the tree as it was, and one module's error leaves others alone.
func TestErrors(t *testing.T) {
	send := func(data []byte) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }
	}
	noDigest := "apiVersion: v1\nentries: {redis: [{apiVersion: v2, name: redis, version: 1.2.0, urls: [redis-1.2.0.tgz]}]}\n"
	index := strings.Replace(noDigest, "version: 1.2.0", "version: 1.2.0, digest: abcd", 1)
	archive, err := os.ReadFile(packed(t, t.TempDir(), "redis", "1.2.0"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(packed(t, t.TempDir(), "other", "1.2.0"))
	if err != nil {
		t.Fatal(err)
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, test := range []struct {
		name, dependency, index string
		archive                 func(w http.ResponseWriter, r *http.Request)
		want                    string
	}{
		{"other bytes", "", index, send(archive), "has sent other bytes than the index says"},
		{"no archive", "", noDigest, http.NotFound, "redis-1.2.0.tgz answers 404 Not Found"},
		{"no index", "redis, 1.x, URL/none", "", nil, "/none/index.yaml answers 404 Not Found"},
		{"index of nothing", "", "<html>", nil, "is no index of a chart repository"},
		{"no such chart", "mysql, 1.x, URL", noDigest, nil, "dependency mysql: URL has no chart of this name"},
		{"no such version", "redis, 2.x, URL", noDigest, nil, "has no version that fits 2.x; the newest is 1.2.0"},
		{"no range", "redis, newest, URL", noDigest, nil, `version "newest" is no range of versions`},
		{"an alias", "redis, 1.x, @mine", noDigest, nil, "in the place of an alias of `helm repo add` write the URL"},
		{"a password", "redis, 1.x, https://me:hunter2@127.0.0.1:1", "", nil, "connection refused"},
		{"hangs", "", noDigest, hang, "not done within 500ms; --timeout allows more"},
		{"too large", "", noDigest, send(bytes.Repeat([]byte("a"), tree.MaxFileBytes+1)), "it is larger than 4 MiB"},
		{"unpacks to too much", "", noDigest, send(hostileArchive(t, "redis/templates/a", make([]byte, 33<<20))), "packed charts hold more than 32 MiB"},
		{"a path upwards", "", noDigest, send(hostileArchive(t, "redis/../../evil", []byte("x"))), "chart illegally references parent directory"},
		{"no chart", "", noDigest, send([]byte("nonsense")), "chart redis-1.2.0.tgz: "},
		{"another chart", "", noDigest, send(other), "has sent chart other 1.2.0, wanted is version 1.2.0"},
		{"a folder that is not there", "redis, 1.x, file://../none", "", nil, "file://../none: "},
		{"a folder outside", "redis, 1.x, file://../../", "", nil, "file://../../ is not in the module tree"},
		{"no repository", "redis, 1.x, ", "", nil, "it has no repository and is not in charts/"},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/index.yaml":
					io.WriteString(w, test.index)
				case r.URL.Path == "/redis-1.2.0.tgz":
					test.archive(w, r)
				default:
					return false
				}
				return true
			})
			if test.dependency == "" {
				test.dependency = "redis, 1.x, URL"
			}
			yaml := strings.ReplaceAll(dependencies(test.dependency), "URL", srv.URL)
			files := map[string]string{
				"web/Chart.yaml":        yaml,
				"zoo/Chart.yaml":        dependencies("common, 1.x, file://../lib/common"),
				"lib/common/Chart.yaml": "apiVersion: v2\nname: common\nversion: 1.2.3\n",
			}
			dir := moduleTree(t, files)
			timeout := time.Minute
			if test.name == "hangs" {
				timeout = 500 * time.Millisecond
			}
			results, err := Tree(t.Context(), Options{Dir: dir, Timeout: timeout, Transport: srv.Client().Transport})
			if err != nil || len(results) != 2 || results[0].Err == nil || results[1].Err != nil {
				t.Fatalf("got %v, %v", results, err)
			}
			if got := strings.ReplaceAll(results[0].Err.Error(), srv.URL, "URL"); !strings.Contains(got, test.want) || !strings.HasPrefix(got, "web: ") || strings.Contains(got, "hunter2") {
				t.Errorf("got %s, want %s", got, test.want)
			}
			want := append(names(files), "zoo/Chart.lock", "zoo/charts/common-1.2.3.tgz")
			slices.Sort(want)
			if diff := cmp.Diff(want, names(filesIn(t, dir))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Links that lead out of a chart are not written through.
func TestLinks(t *testing.T) {
	srv := newRepository(t, nil, "redis 1.2.0")
	dir, outside := moduleTree(t, map[string]string{"web/Chart.yaml": dependencies("redis, 1.x, " + srv.URL)}), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "web/charts")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, srv); got == "" || strings.Contains(got, "web: redis") {
		t.Errorf("got %s", got)
	}
	if got := names(filesIn(t, outside)); len(got) > 0 {
		t.Errorf("outside: %s", got)
	}
}

func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	srv := newRepository(t, func(_ http.ResponseWriter, r *http.Request) bool { cancel(); <-r.Context().Done(); return true })
	dir := moduleTree(t, map[string]string{"web/Chart.yaml": dependencies("redis, 1.x, " + srv.URL)})
	_, err := Tree(ctx, Options{Dir: dir, Transport: srv.Client().Transport})
	if err == nil || err.Error() != "stopped while charts of web were fetched" {
		t.Errorf("got %v", err)
	}
}
