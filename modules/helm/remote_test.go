package helm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/repo"
)

// An index is what Helm reads in it, and refused where Helm refuses it.
func TestIndexAsInHelm(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":         "",
		"no apiVersion":   "entries: {}",
		"no index":        "<html>",
		"not YAML":        "apiVersion: v1\nentries: [",
		"a wrong time":    "apiVersion: v1\ngenerated: yesterday\n",
		"an unknown key":  "apiVersion: v1\nchart: []\n",
		"in JSON":         `{"apiVersion":"v1","other":1,"entries":{"web":[{"name":"web","version":"1.0.0","urls":["a.tgz"],"more":true}]}}`,
		"an unknown one":  "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0, more: true}\n",
		"all keys of one": "apiVersion: v1\nserverInfo: {a: 1}\npublicKeys: [a]\nannotations: {a: b}\ngenerated: 2026-01-01T00:00:00Z\nentries:\n  web:\n  - {name: web, version: 1.0.0, urls: [a], digest: d, created: 2026-01-01T00:00:00Z, removed: true, checksum: c, engine: e, tillerVersion: t, url: u}\n",
		"versions": "apiVersion: v1\nentries:\n  web:\n  - {name: web, version: 1.0.0}\n  - {name: web, version: 1.10.0}\n  - {name: web, version: 1.9.0-rc.1}\n  - {name: web, version: 1.9.0}\n" +
			"  - ~\n  - {name: ../web, version: 2.0.0}\n  - {name: web, version: none}\n  - {urls: [a]}\n" +
			"  - {name: web, version: 0.1.0, dependencies: [{name: a, version: 1.0.0}, {name: a, version: 1.0.0}]}\n  none: []\n  gone: ~\n",
	} {
		file := filepath.Join(t.TempDir(), "index.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		theirs, refused := repo.LoadIndexFile(file)
		ours, err := ReadIndex([]byte(text))
		if (err != nil) != (refused != nil) {
			t.Errorf("%s: error is %v, and Helm's is %v", name, err, refused)
			continue
		}
		if refused != nil {
			continue
		}
		var want Index
		data, err := json.Marshal(theirs)
		if err == nil {
			err = json.Unmarshal(data, &want)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := asText(t, ours), asText(t, &want); got != want {
			t.Errorf("%s: got\n%s\nand Helm has\n%s", name, got, want)
		}
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// URLs of an index lead where they lead in Helm.
func TestURLsAsInHelm(t *testing.T) {
	for _, base := range []string{"https://a.example/charts", "https://a.example/charts/", "https://a.example/c%2Fd?token=1", "://"} {
		for _, named := range []string{"web.tgz", "/web.tgz", "../web.tgz", "https://b.example/web.tgz", "web.tgz?x=1", "%zz"} {
			want, refused := repo.ResolveReferenceURL(base, named)
			got, err := ResolveURL(base, named)
			if (err != nil) != (refused != nil) || refused == nil && got != want {
				t.Errorf("%s at %s: %s (%v), and Helm has %s (%v)", named, base, got, err, want, refused)
			}
		}
	}
}

// The file of logins is where `helm registry login` writes it.
func TestLoginsAsInHelm(t *testing.T) {
	for _, set := range [][2]string{{"HOME", t.TempDir()}, {"HELM_CONFIG_HOME", "/config"}, {"HELM_REGISTRY_CONFIG", "/registry.json"}, {"HELM_REGISTRY_CONFIG", ""}} {
		t.Setenv(set[0], set[1])
		if got, want := Logins(), cli.New().RegistryConfig; got != want {
			t.Errorf("with %s=%s: %s, and Helm has %s", set[0], set[1], got, want)
		}
	}
}
