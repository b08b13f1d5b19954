package helm

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/helmpath"
	"helm.sh/helm/v3/pkg/registry"
	"sigs.k8s.io/yaml"
)

// Index is that of a chart repository. Helm's own type stands in a package that brings kubectl and kustomize, see
// decision 121.
type Index struct {
	APIVersion string                     `json:"apiVersion"`
	Entries    map[string][]*IndexVersion `json:"entries"`

	// Nobody reads the others, but YAML with a field that is not here is refused, as Helm refuses it.
	Generated   time.Time         `json:"generated"`
	ServerInfo  map[string]any    `json:"serverInfo"`
	PublicKeys  []string          `json:"publicKeys"`
	Annotations map[string]string `json:"annotations"`
}

// IndexVersion is one version of a chart.
type IndexVersion struct {
	*chart.Metadata
	URLs   []string `json:"urls"`
	Digest string   `json:"digest"`

	Created       time.Time `json:"created"`
	Removed       bool      `json:"removed"`
	Checksum      string    `json:"checksum"`
	Engine        string    `json:"engine"`
	TillerVersion string    `json:"tillerVersion"`
	URL           string    `json:"url"`
}

// ReadIndex reads an index, the newest version of a chart first. It is within limits. Versions that Helm would not
// take are left out.
func ReadIndex(data []byte) (*Index, error) {
	if len(data) == 0 {
		return nil, errors.New("it is empty")
	}
	read := json.Unmarshal
	if !json.Valid(data) {
		read = func(data []byte, into any) error { return yaml.UnmarshalStrict(data, into) }
	}
	index := &Index{}
	if err := read(data, index); err != nil {
		return nil, err
	}
	if index.APIVersion == "" {
		return nil, errors.New("it has no apiVersion")
	}
	for name, versions := range index.Entries {
		versions = slices.DeleteFunc(versions, func(v *IndexVersion) bool { return !v.complete() })
		slices.SortStableFunc(versions, func(a, b *IndexVersion) int { return compareVersions(b.Version, a.Version) })
		index.Entries[name] = versions
	}
	return index, nil
}

// complete fills in what an index may leave out, and says whether Helm would take the version.
func (v *IndexVersion) complete() bool {
	if v == nil {
		return false
	}
	if v.Metadata == nil {
		v.Metadata = &chart.Metadata{}
	}
	if v.APIVersion == "" {
		v.APIVersion = chart.APIVersionV1
	}
	err := v.Validate()
	// Some repositories strip the field alias: https://github.com/helm/helm/issues/12748
	return err == nil || strings.HasPrefix(err.Error(), "validation: more than one dependency with name or alias")
}

// compareVersions puts what is no version before all others.
func compareVersions(a, b string) int {
	x, notX := semver.NewVersion(a)
	y, notY := semver.NewVersion(b)
	switch {
	case notX != nil && notY != nil:
		return 0
	case notX != nil:
		return -1
	case notY != nil:
		return 1
	}
	return x.Compare(y)
}

// ResolveURL is the URL that a repository names, which may be one beside its own.
func ResolveURL(repository, named string) (string, error) {
	to, err := url.Parse(named)
	if err != nil || to.IsAbs() {
		return named, err
	}
	base, err := url.Parse(repository)
	if err != nil {
		return "", err
	}
	// A base without / at its end would lose its last part.
	base.RawPath = strings.TrimSuffix(base.RawPath, "/") + "/"
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	resolved := base.ResolveReference(to)
	resolved.RawQuery = base.RawQuery
	return resolved.String(), nil
}

// Logins is the path of the file that `helm registry login` writes.
func Logins() string {
	if path, set := os.LookupEnv("HELM_REGISTRY_CONFIG"); set {
		return path
	}
	return helmpath.ConfigPath("registry/config.json")
}

// Tags are the versions of a chart in a registry, the newest first. The logins are those of `helm registry login` and
// of Docker.
func Tags(client *http.Client, ref string) ([]string, error) {
	r, err := registryOf(client)
	if err != nil {
		return nil, err
	}
	return r.Tags(ref)
}

// Pull gets the archive of a chart from a registry; the digests of its parts are checked on the way.
func Pull(client *http.Client, ref string) ([]byte, error) {
	r, err := registryOf(client)
	if err != nil {
		return nil, err
	}
	pulled, err := r.Pull(ref)
	if err != nil {
		return nil, err
	}
	return pulled.Chart.Data, nil
}

func registryOf(client *http.Client) (*registry.Client, error) {
	return registry.NewClient(
		registry.ClientOptHTTPClient(client), registry.ClientOptCredentialsFile(Logins()),
		registry.ClientOptEnableCache(true),
	)
}
