package builtins

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/starling-operator/starling/builtins/data"
	"github.com/starling-operator/starling/builtins/spec"
)

// RemoteChart is a chart of a registry or of a chart repository, as module(chart=) names it.
type RemoteChart struct {
	// URL is the repository and, after the last slash, the name of the chart; empty: there is none.
	URL string
	// Version is one version, or a range of versions.
	Version string
	// Digest is "sha256:" and the SHA-256 of the archive in hex; empty: any.
	Digest string
}

// chartDigest is how digests of archives are written.
var chartDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// remoteChart reads chart, version and digest of module().
func (c *call) remoteChart() (RemoteChart, error) {
	r := RemoteChart{c.Str("chart"), c.Str("version"), c.Str("digest")}
	if c.Arg("chart") == nil {
		for _, param := range []string{"version", "digest"} {
			if c.Arg(param) != nil {
				return r, fmt.Errorf("%s: it goes with chart, which is missing", param)
			}
		}
		return r, nil
	}
	if c.Arg("digest") != nil && !chartDigest.MatchString(r.Digest) {
		return r, fmt.Errorf(`digest: %q is none: write "sha256:" and the 64 hex digits that starling.lock has`,
			spec.Clip(r.Digest))
	}
	return r, r.Check()
}

// Check says why module() refuses a chart: its URL, or its version.
func (r RemoteChart) Check() error {
	if err := checkChartURL(r.URL); err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	switch {
	case r.Version == "":
		return errors.New(`version: it is missing: name one, "1.2.3", or a range, "~1.2"`)
	case !isRange(r.Version):
		return fmt.Errorf(`version: %q is neither a version, "1.2.3", nor a range, "~1.2"`, spec.Clip(r.Version))
	}
	return nil
}

func isRange(text string) bool {
	if len(text) > data.MaxConstraint {
		return false
	}
	_, err := semver.NewConstraint(text)
	return err == nil
}

// checkChartURL refuses what cannot name a chart. A password does not stand in a module tree.
func checkChartURL(text string) error {
	const form = `write "oci://HOST/PATH/NAME" for a chart of a registry, "https://HOST/PATH/NAME" for chart NAME of the repository whose index is https://HOST/PATH/index.yaml`
	u, err := url.Parse(text)
	switch {
	case err != nil: // its text would hold the URL
		return errors.New("it is no URL: " + form)
	case u.User != nil:
		return errors.New("it holds a login: leave it out; logins are those of helm registry login and of Docker")
	case u.Scheme != "oci" && u.Scheme != "https" && u.Scheme != "http", u.Host == "", u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("%q names no chart: %s", spec.Clip(text), form)
	}
	name := path.Base(u.Path)
	switch {
	case u.Path == "" || strings.HasSuffix(u.Path, "/") || name == "." || name == "..":
		return fmt.Errorf("%q has no name of a chart at its end: %s", spec.Clip(text), form)
	case name == "index.yaml" || strings.HasSuffix(name, ".tgz"):
		return fmt.Errorf("%q ends with a file: %s", spec.Clip(text), form)
	case strings.ContainsAny(name, ":@"):
		return fmt.Errorf("%q holds a version: give it as version", spec.Clip(text))
	}
	return nil
}
