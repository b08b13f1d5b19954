package migrate

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/starling-operator/starling/runtime/generation"
)

// customKind is a kind that a CustomResourceDefinition of the old tree defines.
type customKind struct {
	group, version string // the version that is stored
	kind           string
	names          []string // in lower case: the kind, the plural, the singular and short names
}

// customKinds finds the definitions in an old tree. Files that do not parse, such as templates, are
// left out.
func customKinds(files []oldFile) (out []customKind) {
	for _, f := range files {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(f.path)) || !bytes.Contains(f.data, []byte("CustomResourceDefinition")) {
			continue
		}
		for _, d := range generation.Definitions(f.data) {
			names := d.Spec.Names
			k := customKind{group: d.Spec.Group, version: d.Spec.Version, kind: names.Kind}
			for _, v := range d.Spec.Versions {
				if v.Storage || k.version == "" {
					k.version = v.Name
				}
			}
			for _, name := range append([]string{k.kind, names.Plural, names.Singular}, names.ShortNames...) {
				if name != "" {
					k.names = append(k.names, strings.ToLower(name))
				}
			}
			if k.kind != "" && k.version != "" {
				out = append(out, k)
			}
		}
	}
	return out
}
