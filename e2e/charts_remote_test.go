package e2e

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/starling-operator/starling/modules/status"
	"github.com/starling-operator/starling/modules/tree"
)

// remoteChart is a chart repository that can be down, and the archive of a chart in it.
type remoteChart struct {
	down   atomic.Bool
	url    string
	locked tree.Locked
}

// packedMirror writes the archive of the chart of mirror(name) to dir, in this version, which its
// ConfigMap shows, too. It returns its path.
func packedMirror(t *testing.T, dir, name, version string) string {
	t.Helper()
	var files []*loader.BufferedFile
	for path, text := range mirror(name, on) {
		switch path = strings.TrimPrefix(path, name+"/"); path {
		case "module.star", "openapi/config-values.yaml":
			continue
		case "Chart.yaml":
			text = strings.Replace(text, "0.1.0", version, 1)
		case "templates/cm.yaml":
			text += "  version: {{ .Chart.Version | quote }}\n"
		}
		files = append(files, &loader.BufferedFile{Name: path, Data: []byte(text)})
	}
	ch, err := loader.LoadFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	file, err := chartutil.Save(ch, dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// newRemoteChart serves the chart of mirror("web").
func newRemoteChart(t *testing.T) *remoteChart {
	t.Helper()
	dir := t.TempDir()
	file := packedMirror(t, dir, "web", "0.1.0")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	index, err := repo.IndexDirectory(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := &remoteChart{}
	served := http.FileServer(http.Dir(dir))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.down.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		served.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	c.url = srv.URL + "/web"
	c.locked = tree.Locked{
		URL: c.url, Version: "0.1.0", Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)),
		ArchiveURL: srv.URL + "/" + filepath.Base(file),
	}
	return c
}

// module is a module with this chart and what the lock says of it.
func (c *remoteChart) module(t *testing.T, locked tree.Locked) map[string]string {
	t.Helper()
	lock, err := tree.FormatLock(map[string]tree.Locked{"web": locked})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"web/module.star": fmt.Sprintf("module(enabled = True, chart = %q, version = \"0.1.x\")\n", c.url),
		"web/values.yaml": "text: mine\n",
		tree.LockFile:     string(lock),
	}
}

// A repository that is down keeps one module waiting. Once it is up the module is released, in a
// process that does not follow the tree, too; after that nobody asks it again.
func TestChartOfRepositoryThatIsDown(t *testing.T) {
	t.Parallel()
	c := newRemoteChart(t)
	c.down.Store(true)
	f := newFixture(t, trees(c.module(t, c.locked), mirror("shop", on))).alone("a state folder keeps what its process has fetched")
	f.start("--reload=false")
	f.waitRevision(f.ns, "shop", 1)
	f.waitState("web", status.ModuleBroken, "web-0.1.0.tgz of "+c.url, "it cannot be fetched, and is tried again", "403 Forbidden")
	noRelease(t, f.ns, "web")

	c.down.Store(false)
	f.waitData("web", map[string]string{"text": "mine", "version": "0.1.0"})
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)

	c.down.Store(true)
	f.restart()
	f.waitState("web", status.ModuleReady)
	f.waitRevision(f.ns, "web", 1)
	f.waitRevision(f.ns, "shop", 1)
}

// Other bytes than the lock names are one clear error, and the release stays.
func TestChartOfOtherBytes(t *testing.T) {
	t.Parallel()
	c := newRemoteChart(t)
	f := newFixture(t, trees(c.module(t, c.locked), mirror("shop", on)))
	f.start()
	f.waitState("web", status.ModuleReady)
	wrong := c.locked
	wrong.Digest = "sha256:" + strings.Repeat("0", 64)
	f.restart(c.module(t, wrong))
	f.waitState("web", status.ModuleBroken, "has sent other bytes for version 0.1.0 than are asked for")
	f.waitState("shop", status.ModuleReady)
	f.waitData("web", map[string]string{"text": "mine", "version": "0.1.0"})
	f.waitRevision(f.ns, "web", 1)
}
