package fetch

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// packed writes an archive of a chart to dir and returns its path. The chart "large" has 6 MiB.
func packed(t *testing.T, dir, name, version string) string {
	t.Helper()
	ch := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: name, Version: version},
		Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte("# " + name + " " + version + "\n")}},
	}
	if name == "large" {
		data := make([]byte, 3<<20)
		rand.Read(data)
		ch.Files = []*chart.File{{Name: "a", Data: data}, {Name: "b", Data: data}}
	}
	file, err := chartutil.Save(ch, dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// newRepository serves a chart repository with charts, each "name version". instead may answer a
// request in its place.
func newRepository(t *testing.T, instead func(w http.ResponseWriter, r *http.Request) bool, charts ...string) *httptest.Server {
	t.Helper()
	dir := t.TempDir()
	for _, c := range charts {
		name, version, _ := strings.Cut(c, " ")
		packed(t, dir, name, version)
	}
	index, err := repo.IndexDirectory(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	index.SortEntries()
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if instead == nil || !instead(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

// ociServer is a registry: it keeps what Helm's client pushes, and asks for a login.
type ociServer struct {
	mu        sync.Mutex
	blobs     map[string][]byte
	manifests map[string][]byte // by name and tag or digest
	tags      []string
	// hang keeps all requests waiting.
	hang atomic.Bool
}

const user, password = "reader", "not-a-secret"

// newOCI serves a registry whose login is in Docker's config, and pushes charts to it, each
// "name version". It returns its host.
func newOCI(t *testing.T, charts ...string) (*ociServer, *httptest.Server) {
	t.Helper()
	s := &ociServer{blobs: map[string][]byte{}, manifests: map[string][]byte{}}
	srv := httptest.NewTLSServer(s)
	t.Cleanup(srv.Close)
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	t.Setenv("HELM_REGISTRY_CONFIG", filepath.Join(config, "none.json"))
	t.Setenv("HELM_CONFIG_HOME", config)
	auth, err := json.Marshal(map[string]any{"auths": map[string]any{host(srv): map[string]any{"username": user, "password": password}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(config, "config.json"), auth, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.NewClient(registry.ClientOptHTTPClient(srv.Client()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range charts {
		name, version, _ := strings.Cut(c, " ")
		data, err := os.ReadFile(packed(t, t.TempDir(), name, version))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Push(data, host(srv)+"/charts/"+name+":"+version); err != nil {
			t.Fatal(err)
		}
	}
	return s, srv
}

func host(srv *httptest.Server) string { return strings.TrimPrefix(srv.URL, "https://") }

func (s *ociServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hang.Load() {
		<-r.Context().Done()
		return
	}
	if u, p, _ := r.BasicAuth(); u != user || p != password {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	dir, last := r.URL.Path[:strings.LastIndex(r.URL.Path, "/")], r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	name, what, _ := strings.Cut(strings.TrimPrefix(dir, "/v2/"), "/manifests")
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
	isManifest := what == "" && strings.HasSuffix(dir, "/manifests")
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set("Location", dir+"/upload")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut && isManifest:
		s.manifests[name+":"+last], s.manifests[name+":"+digest] = body, body
		if !strings.HasPrefix(last, "sha256:") {
			s.tags = append(s.tags, last)
		}
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPut:
		s.blobs[r.URL.Query().Get("digest")] = body
		w.WriteHeader(http.StatusCreated)
	case strings.HasSuffix(dir, "/tags"):
		json.NewEncoder(w).Encode(map[string]any{"name": name, "tags": s.tags})
	case isManifest && s.manifests[name+":"+last] != nil:
		s.send(w, r, "application/vnd.oci.image.manifest.v1+json", s.manifests[name+":"+last])
	case !isManifest && s.blobs[last] != nil:
		s.send(w, r, "application/octet-stream", s.blobs[last])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *ociServer) send(w http.ResponseWriter, r *http.Request, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if strings.Contains(kind, "manifest") {
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(data)))
	}
	if r.Method != http.MethodHead {
		w.Write(data)
	}
}
