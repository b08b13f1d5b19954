package rest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// openAPI answers /openapi/v3 and what it points to: documents with the schemas of
// definitions alone, in which kubectl finds that patches take dryRun and fieldValidation.
// Without them kubectl apply would refuse to validate.
func (s *Server) openAPI(path string) (*answer, error) {
	rest := strings.Trim(strings.TrimPrefix(path, "openapi/v3"), "/")
	if rest == "" {
		paths := map[string]any{}
		for _, k := range s.o.Store.Kinds() {
			gv := groupVersionPath(k)
			paths[gv] = map[string]any{"serverRelativeURL": "/openapi/v3/" + gv}
		}
		return ok(map[string]any{"paths": paths}), nil
	}
	paths := map[string]any{}
	query := func(name string) any {
		return map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}}
	}
	for _, k := range s.o.Store.Kinds() {
		if groupVersionPath(k) != rest {
			continue
		}
		at := "/" + rest
		if k.Namespaced {
			at += "/namespaces/{namespace}"
		}
		patch := map[string]any{"patch": map[string]any{
			"parameters": []any{query("dryRun"), query("fieldManager"), query("fieldValidation"), query("force")},
			"responses":  map[string]any{"200": map[string]any{"description": "OK"}},
			"x-kubernetes-group-version-kind": map[string]any{
				"group": k.Group, "version": k.Version, "kind": k.Kind,
			},
		}}
		if at += "/" + k.Plural + "/{name}"; k.Status {
			paths[at+"/status"] = patch
		}
		paths[at] = patch
	}
	if len(paths) == 0 {
		return nowhere(), nil
	}
	return ok(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": Version}, "paths": paths,
		"components": map[string]any{"schemas": s.schemas(rest)},
	}), nil
}

// schemas are those of the definitions of a group-version.
func (s *Server) schemas(groupVersion string) map[string]any {
	out := map[string]any{}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := s.o.Store.List(store.Target{GVR: definitions, Spared: true}, store.ListOptions{})
	if err != nil {
		return out
	}
	for _, obj := range list.Items {
		group, _, _ := unstructured.NestedString(obj, "spec", "group")
		kind, _, _ := unstructured.NestedString(obj, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(obj, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			name, _, _ := unstructured.NestedString(version, "name")
			of, there, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
			if !there || groupVersion != "apis/"+group+"/"+name {
				continue
			}
			of["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": name, "kind": kind}}
			out[group+"."+name+"."+kind] = of
		}
	}
	return out
}

// groupVersionPath returns "api/v1" or "apis/apps/v1".
func groupVersionPath(k store.Kind) string {
	if k.Group == "" {
		return "api/" + k.Version
	}
	return "apis/" + k.Group + "/" + k.Version
}
