package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/starling-operator/starling/modules/tree"
)

// redisIndex names the chart redis 1.2.0 at redis-1.2.0.tgz, without a digest.
const redisIndex = "apiVersion: v1\nentries: {redis: [{apiVersion: v2, name: redis, version: 1.2.0, urls: [redis-1.2.0.tgz]}]}\n"

// hostileArchive is a chart with a file of this name and text.
func hostileArchive(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	tape := tar.NewWriter(zip)
	for _, f := range []struct {
		name string
		data []byte
	}{{"redis/Chart.yaml", []byte("apiVersion: v2\nname: redis\nversion: 1.2.0\n")}, {name, text}} {
		if err := tape.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write(f.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := tape.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// endless sends so many MiB of comments.
func endless(w io.Writer, mib int) {
	line := append(bytes.Repeat([]byte("#"), 1<<20-1), '\n')
	for range mib {
		if _, err := w.Write(line); err != nil {
			return
		}
	}
}

// A server may do as it likes: it gets one error, and nothing is written. Logins are never shown.
func TestHostileRepository(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	to := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
	}
	send := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.Write(data) }
	}
	drops := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			io.WriteString(w, "#")
			http.NewResponseController(w).Flush()
			<-time.After(10 * time.Millisecond)
		}
	}
	inside := hostileArchive(t, "s/templates/a", make([]byte, 33<<20))
	for _, test := range []struct {
		name           string
		index, archive http.HandlerFunc // nil: as it should be
		want           string
	}{
		{"an index of 50 MiB", func(w http.ResponseWriter, _ *http.Request) { endless(w, 50) }, nil, "/index.yaml: it is larger than 32 MiB"},
		{"a slow index", drops, nil, "not done within 500ms; --timeout allows more"},
		{"a slow archive", nil, drops, "not done within 500ms; --timeout allows more"},
		{"an archive without an end", nil, func(w http.ResponseWriter, _ *http.Request) { endless(w, 1<<20) }, "it is larger than 4 MiB"},
		{"an archive of zeros", nil, send(hostileArchive(t, "redis/templates/a", make([]byte, 33<<20))), "packed charts hold more than 32 MiB"},
		{"an archive of archives of zeros", nil, send(hostileArchive(t, "redis/charts/s.tgz", inside)), "packed charts hold more than 32 MiB"},
		{"an archive with a path upwards", nil, send(hostileArchive(t, "redis/../../evil", []byte("x"))), "chart illegally references parent directory"},
		{"an archive with a name from the root", nil, send(hostileArchive(t, "redis//etc/passwd", []byte("x"))), "chart illegally contains absolute paths"},
		{"an archive without its subcharts", nil, send(hostileArchive(t, "redis/Chart.yaml", []byte("apiVersion: v2\nname: redis\nversion: 1.2.0\ndependencies: [{name: common, version: 1.x, repository: https://charts.example.com}]\n"))),
			"the archive lacks what the chart depends on"},
		{"sends us on without TLS", to(plain.URL), nil, "it sends us on without TLS"},
		{"sends us on without an end", to("/index.yaml"), nil, "it sends us on more than 10 times"},
		{"sends us to a file", to("file:///etc/passwd"), nil, "without TLS"},
		{"sends us on with a login", nil, to("https://me:hunter2@127.0.0.1:1/x.tgz?token=hunter2"), "connection refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch {
				case r.URL.Path == "/index.yaml" && test.index != nil:
					test.index(w, r)
				case r.URL.Path == "/index.yaml":
					io.WriteString(w, redisIndex)
				case test.archive != nil:
					test.archive(w, r)
				default:
					return false
				}
				return true
			})
			dir, timeout := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x")}), time.Minute
			if strings.HasPrefix(test.want, "not done") {
				timeout = 500 * time.Millisecond
			}
			results, err := Tree(t.Context(), Options{Dir: dir, Timeout: timeout, Transport: srv.Client().Transport})
			if err != nil || len(results) != 1 || results[0].Err == nil {
				t.Fatalf("got %v, %v", results, err)
			}
			if got := results[0].Err.Error(); !strings.Contains(got, test.want) || strings.Contains(got, "hunter2") {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := names(filesIn(t, dir)); len(got) != 1 {
				t.Errorf("the tree holds %s", got)
			}
		})
	}
}

// A process that runs reads no index that would take much memory.
func TestCacheOfLargeIndex(t *testing.T) {
	for want, index := range map[string]func(w io.Writer){
		"/index.yaml: it is larger than 4 MiB":         func(w io.Writer) { endless(w, 50) },
		"/index.yaml is too large: it holds more than": func(w io.Writer) { io.WriteString(w, "entries: ["+strings.Repeat("{},", 1<<20)+"]\n") },
	} {
		srv := newRepository(t, func(w http.ResponseWriter, _ *http.Request) bool { index(w); return true })
		c := NewCache(CacheOptions{Dir: t.TempDir(), Transport: srv.Client().Transport, Log: zerolog.Nop()})
		err := c.try(t.Context(), tree.Locked{URL: srv.URL + "/redis", Version: "1.2.0", Digest: "sha256:" + strings.Repeat("0", 64)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A repository that has moved its archives: the index says where they are now, and so does the lock.
func TestArchiveThatMoves(t *testing.T) {
	var moved atomic.Bool
	srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case !moved.Load():
			return false
		case r.URL.Path == "/index.yaml":
			io.WriteString(w, strings.Replace(redisIndex, "redis-1.2.0.tgz", "new/redis-1.2.0.tgz", 1))
			return true
		case r.URL.Path == "/redis-1.2.0.tgz":
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/new")
		return false
	}, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x")})
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	moved.Store(true)
	if err := os.RemoveAll(filepath.Join(dir, ".starling")); err != nil {
		t.Fatal(err)
	}
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	if got := filesIn(t, dir)[tree.LockFile]; !strings.Contains(got, "archive: "+srv.URL+"/new/redis-1.2.0.tgz\n") {
		t.Errorf("the lock is %s", got)
	}
	if got := charts(t, dir); got != "web: redis 1.2.0" {
		t.Errorf("got %s", got)
	}
}

// Servers that say of an archive that it is an encoded tar, and that encode the index, send what they say.
func TestEncodings(t *testing.T) {
	srv := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/index.yaml" {
			w.Header().Set("Content-Encoding", "gzip")
			return false
		}
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.WriteHeader(http.StatusNotAcceptable)
			return true
		}
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		io.WriteString(zip, redisIndex)
		zip.Close()
		return true
	}, "redis 1.2.0")
	dir := moduleTree(t, map[string]string{"web/module.star": named(srv.URL+"/redis", "1.x")})
	if got := fetched(t, dir, srv); got != "web: redis 1.2.0" {
		t.Fatal(got)
	}
	if got := charts(t, dir); got != "web: redis 1.2.0" {
		t.Errorf("got %s", got)
	}
}

// A repository may ask for the login that Docker's config has for its host; no other host gets it, and
// nobody without TLS does.
func TestLoginOfRepository(t *testing.T) {
	asks := func(given *atomic.Int32) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			name, pass, sent := r.BasicAuth()
			if sent {
				given.Add(1)
			}
			if name == user && pass == password {
				return false
			}
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
	}
	var given, others atomic.Int32
	other := newRepository(t, asks(&others))
	home := newRepository(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/away/index.yaml" {
			http.Redirect(w, r, other.URL+"/index.yaml", http.StatusFound)
			return true
		}
		return asks(&given)(w, r)
	}, "redis 1.2.0")
	plain := httptest.NewServer(home.Config.Handler)
	defer plain.Close()
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	t.Setenv("HELM_REGISTRY_CONFIG", filepath.Join(config, "none.json"))
	dir := moduleTree(t, map[string]string{"web/module.star": named(home.URL+"/redis", "1.x")})
	if got := fetched(t, dir, home); !strings.Contains(got, "/index.yaml answers 401 Unauthorized") {
		t.Errorf("without a login got %s", got)
	}
	writeFile(t, config, "config.json", "{")
	if got := fetched(t, dir, home); !strings.Contains(got, "answers 401 Unauthorized; logins cannot be read: ") {
		t.Errorf("with a broken config got %s", got)
	}
	auth, err := json.Marshal(map[string]any{"auths": map[string]any{
		host(home): map[string]any{"username": user, "password": password}, host(plain): map[string]any{"username": user, "password": password},
	}})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, config, "config.json", string(auth))
	if got := fetched(t, dir, home); got != "web: redis 1.2.0" || given.Load() != 2 {
		t.Errorf("got %s, with %d logins", got, given.Load())
	}
	if text := filesIn(t, dir)[tree.LockFile]; strings.Contains(text, password) {
		t.Errorf("the lock is %s", text)
	}
	for _, url := range []string{plain.URL + "/redis", home.URL + "/away/redis"} {
		given.Store(0)
		away := moduleTree(t, map[string]string{"web/module.star": named(url, "1.x")})
		if got := fetched(t, away, home); !strings.Contains(got, "/index.yaml answers 401 Unauthorized") || strings.Contains(got, password) {
			t.Errorf("%s: got %s", url, got)
		}
		if given.Load()+others.Load() > 0 {
			t.Errorf("%s: the login was sent", url)
		}
	}
}

// A registry may not fill the memory: neither by layers nor by tags.
func TestHostileRegistry(t *testing.T) {
	s, srv := newOCI(t)
	layer := bytes.Repeat([]byte("a"), 3<<20)
	config := []byte(`{"name":"redis","version":"1.2.0"}`)
	part := func(kind string, data []byte) map[string]any {
		digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		s.blobs[digest] = data
		return map[string]any{"mediaType": kind, "digest": digest, "size": len(data)}
	}
	var layers []any
	for i := range 4 {
		layers = append(layers, part(registry.ChartLayerMediaType, append([]byte{byte(i)}, layer...)))
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": part(registry.ConfigMediaType, config), "layers": layers,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.manifests["charts/redis:1.2.0"] = manifest
	s.manifests[fmt.Sprintf("charts/redis:sha256:%x", sha256.Sum256(manifest))] = manifest
	dir := moduleTree(t, map[string]string{"web/module.star": named("oci://"+host(srv)+"/charts/redis", "1.2.0")})
	if got := fetched(t, dir, srv); !strings.Contains(got, "it is larger than 4 MiB") {
		t.Errorf("layers: got %s", got)
	}
	tags := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `<`+r.URL.Path+`?n=1>; rel="next"`)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name": "charts/redis", "tags": ["1.2.0", %q]}`, strings.Repeat("a", 1<<20))
	}))
	defer tags.Close()
	dir = moduleTree(t, map[string]string{"web/module.star": named("oci://"+host(tags)+"/charts/redis", "1.x")})
	if got := fetched(t, dir, tags); !strings.Contains(got, "it is larger than 4 MiB") {
		t.Errorf("tags: got %s", got)
	}
}
