package generation

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/modules/tree"
	"github.com/starling-operator/starling/runtime/bounded"
)

// Definition is a CustomResourceDefinition as it stands in a file, as far as it is read before it is applied.
type Definition struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Group, Scope string
		Version      string // of apiextensions.k8s.io/v1beta1
		Names        struct {
			Kind, Plural, Singular string
			ShortNames             []string
		}
		Versions []DefinitionVersion
	}
}

// DefinitionVersion is one version of a [Definition].
type DefinitionVersion struct {
	Name            string
	Served, Storage bool
	Subresources    map[string]any
	Schema          struct{ OpenAPIV3Schema schemaOf }
}

// Definitions are those in a file of YAML. Other documents are passed over, and so are those that cannot be read: these
// are an error where they are applied.
func Definitions(data []byte) (out []Definition) {
	docs, err := bounded.YAMLDocuments(data)
	if err != nil {
		return nil
	}
	for _, doc := range docs {
		var d Definition
		if yaml.Unmarshal(doc, &d) == nil && d.Kind == "CustomResourceDefinition" {
			out = append(out, d)
		}
	}
	return out
}

type schemaOf struct {
	Properties map[string]schemaOf
	Items      *schemaOf
	Preserve   bool     `json:"x-kubernetes-preserve-unknown-fields"`
	ListType   string   `json:"x-kubernetes-list-type"`
	ListKeys   []string `json:"x-kubernetes-list-map-keys"`
}

// has says that the API server keeps a field of a value.
func (s *schemaOf) has(field string) bool {
	_, there := s.Properties[field]
	return there || s.Preserve
}

// statusYAML is what a version of a definition needs for a status.
const statusYAML = `
    subresources:
      status: {}
    schema:
      openAPIV3Schema:
        properties:
          status:
            type: object
            properties:
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}`

// checkStatus finds out which controllers write the status of their parents: those that say what it
// holds, and those whose parents are of a kind of the module. That kind must have a status, and one
// controller that writes it.
func (m *Module) checkStatus() {
	writers := map[string]*Hook{} // by what they watch
	for _, h := range m.Hooks {
		if !h.Decides() {
			h.WritesStatus = h.Controller != nil && h.Controller.Act != nil
			continue
		}
		w := h.Binding(h.ForEach).Watch
		path, version := versionOf(m.Tree.CRDs, w.APIVersion, w.Kind)
		h.WritesStatus = h.Controller.Status != nil || version != nil
		if parents := parentsOf(w); h.WritesStatus && writers[parents] != nil {
			m.join(fmt.Errorf("%s: controllers %s and %s would both write the status of each %s: make them one, or give their watches labels that tell the parents apart",
				w.Pos, writers[parents].HookDecl.ID, h.HookDecl.ID, w.Kind))
		} else if h.WritesStatus {
			writers[parents] = h
		}
		if version == nil {
			continue
		}
		lacks := version.lacks()
		if lacks == "" {
			continue
		}
		help := "add to that version:" + statusYAML
		if strings.Contains(path, ".star:") {
			help = "leave status = False, and other conditions, out of crd(…)"
		}
		m.join(fmt.Errorf("%s: controller %s writes the status of %s %s, and in %s version %s %s; %s",
			w.Pos, h.HookDecl.ID, w.APIVersion, w.Kind, path, version.Name, lacks, help))
	}
}

// parentsOf are the objects that a watch selects, in any version of their kind.
func parentsOf(w *builtins.WatchBinding) string {
	group, _, _ := strings.Cut(w.APIVersion, "/")
	return fmt.Sprintf("%q", []any{group, w.Kind, w.Namespaces, w.ExcludeNamespaces, w.NamespaceLabels, w.Names, w.Labels, w.Fields})
}

// versionOf finds the version of the definition of a kind, nil when the files have none.
func versionOf(files []tree.File, apiVersion, kind string) (path string, found *DefinitionVersion) {
	group, name, _ := strings.Cut(apiVersion, "/")
	for _, f := range files {
		for _, d := range Definitions(f.Data) {
			for i := range d.Spec.Versions {
				if v := &d.Spec.Versions[i]; d.Spec.Group == group && d.Spec.Names.Kind == kind && v.Name == name {
					return f.Path, v
				}
			}
		}
	}
	return "", nil
}

// lacks says what a version needs so that the API server keeps what a controller writes, beside the conditions
// of others; "" for nothing.
func (v *DefinitionVersion) lacks() string {
	if v.Subresources["status"] == nil {
		return "has no subresource status"
	}
	root := v.Schema.OpenAPIV3Schema
	status, there := root.Properties["status"]
	if !there {
		status.Preserve = root.Preserve
	}
	conditions, there := status.Properties["conditions"]
	switch {
	case !status.has("observedGeneration"):
		return "has no status.observedGeneration, which the API server would drop again and again"
	case !there, conditions.Items == nil:
		return "has no schema of status.conditions"
	case conditions.ListType != "map" || !slices.Equal(conditions.ListKeys, []string{"type"}):
		return "has status.conditions without x-kubernetes-list-type: map by type, so a write would remove the conditions of others"
	}
	for _, field := range []string{"type", "status", "reason", "message", "lastTransitionTime"} {
		if !conditions.Items.has(field) {
			return "has no " + field + " in the items of status.conditions, which the API server would drop again and again"
		}
	}
	return ""
}
