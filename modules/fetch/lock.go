package fetch

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/modules/helm"
)

// lockName is the name of the file that holds the chosen versions.
func lockName(ch *helm.Chart) string {
	if helm.HasV1(ch) {
		return "requirements.lock"
	}
	return "Chart.lock"
}

// lockedBy returns the dependencies of the lock, nil without a lock.
func lockedBy(ch *helm.Chart) ([]*helm.Dependency, error) {
	if ch.Lock == nil {
		return nil, nil
	}
	if slices.Contains(ch.Lock.Dependencies, nil) {
		return nil, fmt.Errorf("%s has an empty dependency: delete it and run starling fetch again, which then writes a new one", lockName(ch))
	}
	wanted := ch.Metadata.Dependencies
	digest, err := digestOf([2][]*helm.Dependency{wanted, ch.Lock.Dependencies})
	if err != nil {
		return nil, err
	}
	helm2, err := digestOf(map[string][]*helm.Dependency{"dependencies": wanted})
	if err != nil {
		return nil, err
	}
	if ch.Lock.Digest == digest || helm.HasV1(ch) && ch.Lock.Digest == helm2 {
		return ch.Lock.Dependencies, nil
	}
	name, from := lockName(ch), "Chart.yaml"
	if helm.HasV1(ch) {
		from = "requirements.yaml"
	}
	return nil, fmt.Errorf("%s does not fit the dependencies in %s: delete %s and run starling fetch again, which then chooses versions and writes a new one", name, from, name)
}

// newLock is the text of a lock file.
func newLock(ch *helm.Chart, locked []*helm.Dependency) ([]byte, error) {
	digest, err := digestOf([2][]*helm.Dependency{ch.Metadata.Dependencies, locked})
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(helm.Lock{Generated: time.Now(), Digest: digest, Dependencies: locked})
}

// digestOf is how Helm tells that a lock was made of these dependencies.
func digestOf(dependencies any) (string, error) {
	data, err := json.Marshal(dependencies)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), err
}
