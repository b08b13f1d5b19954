package generation

import (
	"bytes"
	"maps"
	"slices"

	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/kstatus"
)

// Unheard returns an object as it is or, where its kind has a status that says how far its controller has come, and
// none has said so yet, as one of which the controller has seen no generation. Other says that of kinds that no module
// of the tree defines.
func (g *Generation) Unheard(obj map[string]any, other func(apiVersion, kind string) bool) map[string]any {
	if ref := effect.RefOf(obj); !kstatus.Silent(obj) || !g.reports(ref, other) {
		return obj
	}
	out := maps.Clone(obj)
	effect.Cloned(out, "status")["observedGeneration"] = int64(0)
	return out
}

// reports says whether the status of a kind has conditions, or the generation that its controller has seen.
func (g *Generation) reports(ref effect.Ref, other func(apiVersion, kind string) bool) bool {
	for _, m := range g.All() {
		if defined, reports := m.reports(ref); defined {
			return reports
		}
	}
	return other(ref.APIVersion, ref.Kind)
}

// reports is that of the generation; defined says that the kind is of the module.
func (m *Module) reports(ref effect.Ref) (defined, reports bool) {
	type answer struct{ defined, reports bool }
	if m.kinds == nil { // it is not loaded
		return false, false
	}
	key := ref.APIVersion + " " + ref.Kind
	if known, is := m.kinds.Load(key); is {
		return known.(answer).defined, known.(answer).reports
	}
	files := slices.DeleteFunc(slices.Clone(m.Tree.CRDs), func(f tree.File) bool { return !bytes.Contains(f.Data, []byte(ref.Kind)) })
	if _, version := versionOf(files, ref.APIVersion, ref.Kind); version != nil {
		status := version.Schema.OpenAPIV3Schema.Properties["status"].Properties
		_, conditions := status["conditions"]
		_, observed := status["observedGeneration"]
		defined, reports = true, version.Subresources["status"] != nil && (conditions || observed)
	}
	m.kinds.Store(key, answer{defined, reports})
	return defined, reports
}
