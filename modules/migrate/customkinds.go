package migrate

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
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
		docs, err := bounded.YAMLDocuments(f.data)
		if err != nil {
			continue
		}
		for _, doc := range docs {
			if k, is := customKindOf(doc); is {
				out = append(out, k)
			}
		}
	}
	return out
}

func customKindOf(doc []byte) (customKind, bool) {
	var crd struct {
		Kind string
		Spec struct {
			Group   string
			Version string // of apiextensions.k8s.io/v1beta1
			Names   struct {
				Kind, Plural, Singular string
				ShortNames             []string
			}
			Versions []struct {
				Name    string
				Storage bool
			}
		}
	}
	if err := yaml.Unmarshal(doc, &crd); err != nil || crd.Kind != "CustomResourceDefinition" || crd.Spec.Names.Kind == "" {
		return customKind{}, false
	}
	k := customKind{group: crd.Spec.Group, version: crd.Spec.Version, kind: crd.Spec.Names.Kind}
	for _, v := range crd.Spec.Versions {
		if v.Storage || k.version == "" {
			k.version = v.Name
		}
	}
	for _, name := range append([]string{k.kind, crd.Spec.Names.Plural, crd.Spec.Names.Singular}, crd.Spec.Names.ShortNames...) {
		if name != "" {
			k.names = append(k.names, strings.ToLower(name))
		}
	}
	return k, k.version != ""
}
