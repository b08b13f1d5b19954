package fetch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/repo"
)

// An archive that comes without TLS is taken from a repository with TLS only where a digest says which one it is.
func TestArchiveWithoutTLS(t *testing.T) {
	for _, tt := range []struct {
		repository, url, digest, known string
		refused                        bool
	}{
		{"https://charts.example.com", "http://files.example.com/web-1.0.0.tgz", "", "", true},
		{"https://charts.example.com", "http://files.example.com/web-1.0.0.tgz", "sha256:00", "", false},
		{"https://charts.example.com", "http://files.example.com/web-1.0.0.tgz", "", "sha256:00", false},
		{"https://charts.example.com", "web-1.0.0.tgz", "", "", false},
		{"http://charts.example.com", "web-1.0.0.tgz", "", "", false},
	} {
		version := &repo.ChartVersion{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0"}, URLs: []string{tt.url}, Digest: tt.digest}
		f := &fetcher{indexes: map[string]*repo.IndexFile{tt.repository: {Entries: map[string]repo.ChartVersions{"web": {version}}}}}
		_, _, err := f.find(t.Context(), &chart.Dependency{Name: "web", Version: "1.0.0", Repository: tt.repository}, tt.known)
		if (err != nil) != tt.refused || tt.refused && !strings.Contains(err.Error(), "without TLS and without a digest") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// An index of few bytes with very many values is refused before it is read.
func TestIndexOfManyValues(t *testing.T) {
	text := "entries: {a: [" + strings.Repeat("1,", maxIndexValues) + "1]}\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
	defer server.Close()
	f := &fetcher{indexes: map[string]*repo.IndexFile{}, maxIndex: maxIndex}
	if _, err := f.index(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "more than 3000000 values") {
		t.Errorf("error is %v", err)
	}
}
