package rest

import (
	"strings"

	"github.com/starling-operator/starling/runtime/sim/store"
)

// openAPI answers /openapi/v3 and what it points to: documents without schemas, in
// which kubectl finds that patches take dryRun and fieldValidation. Without them
// kubectl apply would refuse to validate.
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
		paths[at+"/"+k.Plural+"/{name}"] = map[string]any{"patch": map[string]any{
			"parameters": []any{query("dryRun"), query("fieldManager"), query("fieldValidation"), query("force")},
			"responses":  map[string]any{"200": map[string]any{"description": "OK"}},
			"x-kubernetes-group-version-kind": map[string]any{
				"group": k.Group, "version": k.Version, "kind": k.Kind,
			},
		}}
	}
	if len(paths) == 0 {
		return nowhere(), nil
	}
	return ok(map[string]any{"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": Version}, "paths": paths}), nil
}

// groupVersionPath returns "api/v1" or "apis/apps/v1".
func groupVersionPath(k store.Kind) string {
	if k.Group == "" {
		return "api/" + k.Version
	}
	return "apis/" + k.Group + "/" + k.Version
}
