package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// contextName names the one cluster and context of our kubeconfigs; a file that
// holds something else is not ours to replace.
const contextName = "devcluster"

// kubeconfigFile is a file that appears whole or not at all, so that others may
// wait for it.
type kubeconfigFile struct{ path, temp string }

// reserveKubeconfig checks early that the file can be written and takes away
// the one of an earlier run, which names a dead server. A file that this command
// has not written is refused.
func reserveKubeconfig(path string) (*kubeconfigFile, error) {
	if err := checkOurs(path); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".devcluster-*") // mode 0600
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--kubeconfig %s: folder %s does not exist", path, filepath.Dir(path))
		}
		return nil, fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	k := &kubeconfigFile{path: path, temp: f.Name()}
	if err := errors.Join(f.Close(), removeIfThere(path)); err != nil {
		k.discard()
		return nil, fmt.Errorf("--kubeconfig %s: %w", path, err)
	}
	return k, nil
}

func checkOurs(path string) error {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--kubeconfig %s: %w", path, err)
	case len(data) == 0: // made by mktemp
		return nil
	}
	c, err := clientcmd.Load(data)
	if err != nil || len(c.Clusters) != 1 || c.Clusters[contextName] == nil {
		return fmt.Errorf("--kubeconfig %s exists and is not one of devcluster's; choose another file", path)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// publish puts the file in its place.
func (k *kubeconfigFile) publish(c *clientcmdapi.Config) error {
	if err := clientcmd.WriteToFile(*c, k.temp); err != nil {
		return err
	}
	return os.Rename(k.temp, k.path)
}

// discard takes away what publish has not put in place.
func (k *kubeconfigFile) discard() { _ = removeIfThere(k.temp) }
