package helm

import (
	"errors"
	"net/http"
	"os"

	"helm.sh/helm/v3/pkg/cli"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// Index is that of a chart repository.
type Index = repo.IndexFile

// ReadIndex reads an index, the newest version of a chart first. It is within limits.
func ReadIndex(data []byte) (*Index, error) {
	temp, err := os.CreateTemp("", "starling-index-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Close()); err != nil {
		return nil, err
	}
	return repo.LoadIndexFile(temp.Name())
}

// ResolveURL is the URL that a repository names, which may be one beside its own.
func ResolveURL(repository, url string) (string, error) {
	return repo.ResolveReferenceURL(repository, url)
}

// Logins is the path of the file that `helm registry login` writes.
func Logins() string { return cli.New().RegistryConfig }

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
