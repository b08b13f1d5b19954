package main

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func appResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "bench.starling.dev", Version: "v1", Resource: "apps"}
}

// appCRD is the kind of the parents.
const appCRD = `{
"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "apps.bench.starling.dev"},
"spec": {"group": "bench.starling.dev", "names": {"kind": "App", "plural": "apps"}, "scope": "Namespaced", "versions": [{
  "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
  "schema": {"openAPIV3Schema": {"type": "object", "properties": {
    "spec": {"type": "object", "properties": {"stamp": {"type": "string"}}},
    "status": {"type": "object", "properties": {
      "observedGeneration": {"type": "integer", "format": "int64"}, "children": {"type": "integer"},
      "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], "items": {"type": "object",
        "required": ["type", "status"], "properties": {"type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
          "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"}}}}}}}}}}]}}`

// ownersTree is a controller of the Apps of its side, with three children each.
func ownersTree(namespace string) map[string]string {
	return map[string]string{
		"owners/module.star": "module(enabled = True)\n",
		"owners/hooks/owner.star": `def desired(ctx, app):
    name = app.metadata.name

    def child(api_version, kind, **fields):
        labels = {"app": name, "` + sideLabel + `": "` + sideHook + `"}
        return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}} | fields

    return [
        part(name = "config", obj = child("v1", "ConfigMap", data = {"` + stampKey + `": app.spec.` + stampKey + `})),
        part(name = "service", obj = child("v1", "Service", spec = {"clusterIP": "None", "ports": [{"port": 80}]})),
        part(name = "account", obj = child("v1", "ServiceAccount", automountServiceAccountToken = False)),
    ]

controller(
    "owner",
    ` + appWatch(namespace) + `,
    desired,
    owns = [owns("v1", "ConfigMap"), owns("v1", "Service"), owns("v1", "ServiceAccount")],
    status = lambda ctx, app: {"children": len(ctx.children)},
    parallel = ` + strconv.Itoa(ownerWorkers) + `,
)
`,
	}
}

func appWatch(namespace string) string {
	return `k8s.watch("bench.starling.dev/v1", "App", name = "apps", namespaces = ["` + namespace + `"], labels = {"` + sideLabel + `": "` + sideHook + `"})`
}

// parentsTree watches the same parents, without children.
func parentsTree(namespace string) map[string]string {
	return map[string]string{
		"parents/module.star": "module(enabled = True)\n",
		"parents/hooks/parent.star": `def parent(ctx):
    pass

hook(parent, for_each = "apps", on = [` + appWatch(namespace) + `])
`,
	}
}
