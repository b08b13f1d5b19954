package tree

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"
)

const (
	// LockFile is the file at the root that says which archives are the charts of modules with
	// module(chart=). `starling fetch` writes it.
	LockFile = "starling.lock"
	// ChartsDir holds these archives, each by the SHA-256 of its bytes.
	ChartsDir = ".starling/charts"
)

// Locked is the chart that the lock names for a module.
type Locked struct {
	// URL is that of module(chart=).
	URL string `json:"chart"`
	// Version is the one that was chosen.
	Version string `json:"version"`
	// Digest of the archive: "sha256:" and hex.
	Digest string `json:"digest"`
	// ArchiveURL is where the index of a chart repository says that the archive is, so that nobody
	// needs the index again; empty for registries, and where the URL may hold a login.
	ArchiveURL string `json:"archive,omitempty"`
}

// Archive is the path of the archive in the tree.
func (l Locked) Archive() string {
	return ChartsDir + "/" + strings.TrimPrefix(l.Digest, "sha256:") + ".tgz"
}

// File is what messages call the archive: the name that it has in a chart repository.
func (l Locked) File() string { return path.Base(l.URL) + "-" + l.Version + ".tgz" }

// Fits says whether this is a chart that module() asks for; an empty digest is any.
func (l Locked) Fits(url, version, digest string) error {
	switch {
	case l.URL != url:
		return fmt.Errorf("%s names chart %s, module() %s", LockFile, l.URL, url)
	case !InRange(version, l.Version):
		return fmt.Errorf("%s names version %s of the chart, module() %s", LockFile, l.Version, version)
	case digest != "" && l.Digest != digest:
		return fmt.Errorf("%s names the archive %s, module() %s", LockFile, l.Digest, digest)
	}
	return nil
}

// CheckURLs refuses URLs that nobody could ask for a chart, and those that may hold a login: the
// lock is for everybody to read. Errors do not name them.
func (l Locked) CheckURLs() error {
	for _, one := range [][2]string{{"chart", l.URL}, {"archive", l.ArchiveURL}} {
		field, text := one[0], one[1]
		u, err := url.Parse(text)
		switch {
		case field == "archive" && text == "":
		case err != nil || u.Host == "" || !slices.Contains([]string{"oci", "https", "http"}, u.Scheme):
			return fmt.Errorf("%s is no URL with oci://, https:// or http://", field)
		case u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return fmt.Errorf("%s holds a login or a query: leave it out", field)
		}
	}
	return nil
}

// InRange reports whether the version of a chart is in a range of versions, as Helm sees it.
func InRange(versions, version string) bool {
	if versions == version {
		return true
	}
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(version)
	return err == nil && constraint.Check(v)
}

// lockText is a lock file.
type lockText struct {
	Charts map[string]Locked `json:"charts"`
}

var lockedDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseLock reads a lock file: what it names, by module. Errors begin with the file's name.
func ParseLock(data []byte) (map[string]Locked, error) {
	if _, err := parseMap(LockFile, data, "locked charts"); err != nil {
		return nil, err
	}
	var l lockText
	if err := yaml.UnmarshalStrict(data, &l); err != nil {
		return nil, yamlError(LockFile, data, err)
	}
	for _, module := range slices.Sorted(maps.Keys(l.Charts)) {
		var err error
		switch one := l.Charts[module]; {
		case one.URL == "":
			err = errors.New("chart is missing")
		case one.Version == "":
			err = errors.New("version is missing")
		case !lockedDigest.MatchString(one.Digest):
			err = fmt.Errorf("digest %q is not sha256: and 64 hex digits", one.Digest)
		default:
			err = one.CheckURLs()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: module %s: %w", LockFile, module, err)
		}
	}
	return l.Charts, nil
}

// FormatLock is the text of a lock file.
func FormatLock(locked map[string]Locked) ([]byte, error) {
	data, err := yaml.Marshal(lockText{locked})
	return append([]byte("# Written by starling fetch, by what module(chart=) says. Commit it.\n"), data...), err
}
