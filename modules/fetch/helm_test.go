package fetch

import (
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/downloader"
	"helm.sh/helm/v3/pkg/getter"
)

// helmManager is `helm dependency` for the chart in dir, after a `helm repo add`.
func helmManager(t *testing.T, dir, url string) *downloader.Manager {
	t.Helper()
	home := t.TempDir()
	writeFile(t, home, "repositories.yaml", "apiVersion: v1\nrepositories: [{name: stable, url: \""+url+"\"}]\n")
	return &downloader.Manager{
		Out: io.Discard, ChartPath: dir, Getters: getter.All(cli.New()), RepositoryConfig: filepath.Join(home, "repositories.yaml"), RepositoryCache: filepath.Join(home, "cache"),
	}
}

// The lock of one is that of the other, and both fill charts/ with the same bytes.
func TestAsHelmBuilds(t *testing.T) {
	t.Setenv("HELM_CACHE_HOME", t.TempDir())
	srv := newRepository(t, nil, "redis 1.2.0", "redis 1.3.0", "redis 2.0.0", "common 1.0.0")
	plain := httptest.NewServer(srv.Config.Handler)
	defer plain.Close()
	yaml := dependencies("redis, 1.x, "+plain.URL, "common, ^1.0.0, "+plain.URL) + "- {name: common, alias: more, version: 1.0.0, repository: \"" + plain.URL + "\", condition: more.enabled}\n"
	without := func(files map[string]string) map[string]string {
		out := map[string]string{}
		for name, text := range files {
			if !strings.HasPrefix(name, "web/charts/") && !strings.HasPrefix(name, "web/tmpcharts") {
				out[name] = text
			}
		}
		return out
	}

	helms := moduleTree(t, map[string]string{"web/Chart.yaml": yaml})
	if err := helmManager(t, filepath.Join(helms, "web"), plain.URL).Update(); err != nil {
		t.Fatal(err)
	}
	want := filesIn(t, helms)
	ours := moduleTree(t, without(want))
	if got := fetched(t, ours, nil); got != "web: redis 1.3.0, common 1.0.0" {
		t.Fatal(got)
	}
	if diff := cmp.Diff(want, filesIn(t, ours)); diff != "" {
		t.Errorf("by Helm's lock (-helm +starling):\n%s", diff)
	}

	ours = moduleTree(t, map[string]string{"web/Chart.yaml": yaml})
	if got := fetched(t, ours, nil); got != "web: redis 1.3.0, common 1.0.0" {
		t.Fatal(got)
	}
	want = filesIn(t, ours)
	helms = moduleTree(t, without(want))
	if err := helmManager(t, filepath.Join(helms, "web"), plain.URL).Build(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(filesIn(t, helms), want); diff != "" {
		t.Errorf("by our lock (-helm +starling):\n%s", diff)
	}
}
