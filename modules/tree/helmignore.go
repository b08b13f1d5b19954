package tree

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v3/pkg/ignore"
)

// helmIgnore reads the .helmignore of the chart in root, by Helm's rules: what it matches is
// no part of the chart.
func helmIgnore(s *snapshot, root string) (ignored func(p string, isDir bool) bool, err error) {
	rules := ignore.Empty()
	if f := s.file(root + "/" + ignore.HelmIgnore); f != nil {
		if rules, err = ignore.Parse(bytes.NewReader(f.Data)); err != nil {
			err = fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	rules.AddDefaults()
	return func(p string, isDir bool) bool { return rules.Ignore(p, &entry{dir: isDir}) }, err
}
