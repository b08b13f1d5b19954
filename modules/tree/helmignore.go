package tree

import (
	"fmt"

	"github.com/starling-operator/starling/modules/helm"
)

// helmIgnore reads the .helmignore of the chart in root, by Helm's rules: what it matches is
// no part of the chart.
func helmIgnore(s *snapshot, root string) (ignored func(p string, isDir bool) bool, err error) {
	var text []byte
	f := s.file(root + "/" + helm.IgnoreFile)
	if f != nil {
		text = f.Data
	}
	if ignored, err = helm.Ignored(text); err != nil {
		err = fmt.Errorf("%s: %w", f.Path, err)
	}
	return ignored, err
}
