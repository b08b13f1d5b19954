package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	isImmutable = "field is immutable"
	whenSet     = "field is immutable when `immutable` is set"
)

// immutable says which changes of a built-in kind are refused, of those that upgrades
// of charts meet: what is fixed once an object is there.
func immutable(k *kind, obj, old map[string]any) field.ErrorList {
	switch k.groupResource().String() {
	case "configmaps", "secrets":
		return immutableData(k, obj, old)
	case "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io":
		return fixed(obj, old, roleRef(obj), "roleRef")
	case "storageclasses.storage.k8s.io":
		errs := fixed(obj, old, nil, "provisioner")
		return append(errs, fixed(obj, old, nil, "parameters")...)
	case "ingressclasses.networking.k8s.io":
		return fixed(obj, old, nested(obj, "spec", "controller"), "spec", "controller")
	case "priorityclasses.scheduling.k8s.io":
		if nested(obj, "value") != nested(old, "value") {
			return field.ErrorList{field.Forbidden(field.NewPath("value"), "may not be changed in an update.")}
		}
	case "services":
		return fixedAddresses(obj, old)
	case "pods":
		return fixedPod(obj, old)
	case "jobs.batch":
		return fixedJob(obj, old)
	case "statefulsets.apps":
		return fixedStatefulSet(obj, old)
	case "persistentvolumeclaims":
		may := []string{"resources", "volumeAttributesClassName", "volumeName"}
		if nested(old, "spec", "storageClassName") == nil {
			may = append(may, "storageClassName") // as for a claim that is older than the default class
		}
		if !sameBut(specOf(obj), specOf(old), may...) {
			return field.ErrorList{field.Forbidden(field.NewPath("spec"),
				"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims")}
		}
	}
	return nil
}

// fixed refuses a change at a path; shown is the new value as the server shows it.
func fixed(obj, old map[string]any, shown any, path ...string) field.ErrorList {
	if reflect.DeepEqual(nested(obj, path...), nested(old, path...)) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path[0], path[1:]...), shown, isImmutable)}
}

// immutableData holds the data of ConfigMaps and Secrets that say so, and the type of
// all Secrets.
func immutableData(k *kind, obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if k.Plural == "secrets" {
		errs = fixed(obj, old, obj["type"], "type")
	}
	if old["immutable"] != true {
		return errs
	}
	if obj["immutable"] != true {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), whenSet))
	}
	for _, part := range []string{"data", "binaryData"} {
		if !reflect.DeepEqual(obj[part], old[part]) {
			errs = append(errs, field.Forbidden(field.NewPath(part), whenSet))
		}
	}
	return errs
}

// roleRef is the reference of a binding as the server's own type writes it.
func roleRef(obj map[string]any) any {
	text := func(key string) string { s, _ := nested(obj, "roleRef", key).(string); return s }
	return struct{ APIGroup, Kind, Name string }{text("apiGroup"), text("kind"), text("name")}
}

// fixedAddresses holds the first address of a Service, unless its type changes.
func fixedAddresses(obj, old map[string]any) field.ErrorList {
	before, _ := nested(old, "spec", "clusterIPs").([]any)
	now, _ := nested(obj, "spec", "clusterIPs").([]any)
	external := nested(obj, "spec", "type") == "ExternalName" || nested(old, "spec", "type") == "ExternalName"
	if external || len(before) == 0 || len(now) > 0 && now[0] == before[0] {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "clusterIPs").Index(0), now, "may not change once set")}
}

// fixedPod holds all of a Pod but its images, its tolerations and its gates; its deadline may be set
// and come nearer.
func fixedPod(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	before, had := nested(old, "spec", "activeDeadlineSeconds").(int64)
	if now, has := nested(obj, "spec", "activeDeadlineSeconds").(int64); had && (!has || now > before) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "activeDeadlineSeconds"), now, "must be less than or equal to previous value"))
	}
	part := func(o map[string]any) map[string]any { return containersWithout(specOf(o), "image") }
	may := []string{"activeDeadlineSeconds", "tolerations", "schedulingGates"}
	if nested(old, "spec", "nodeName") == nil {
		may = append(may, "nodeName") // the scheduler of the simulation writes it; a real one asks for a binding
	}
	if !sameBut(part(obj), part(old), may...) {
		errs = append(errs, field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than `spec.containers[*].image`,"+
			"`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
			"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"))
	}
	return errs
}

// containersWithout is a copy of the spec of a Pod; its containers lack a field.
func containersWithout(spec map[string]any, key string) map[string]any {
	out := maps.Clone(spec)
	for _, list := range []string{"containers", "initContainers"} {
		var left []any
		for _, c := range mapsOf(out[list]) {
			left = append(left, without(c, key, true))
		}
		if left != nil {
			out[list] = left
		}
	}
	return out
}

func fixedJob(obj, old map[string]any) field.ErrorList {
	errs := fixed(obj, old, nested(obj, "spec", "selector"), "spec", "selector")
	if nested(old, "spec", "suspend") == true && nested(old, "status", "startTime") == nil {
		// Fields that schedule the Pods, and resources, may change while the Job waits for
		// its start.
		part := func(o map[string]any) map[string]any {
			m, _ := nested(o, "spec", "template", "spec").(map[string]any)
			return containersWithout(m, "resources")
		}
		if !sameBut(part(obj), part(old), "nodeSelector", "tolerations", "affinity", "schedulingGates") {
			errs = append(errs, field.Invalid(field.NewPath("spec", "template", "spec"), part(obj), isImmutable))
		}
		return errs
	}
	if nested(obj, "spec", "completionMode") != "Indexed" {
		errs = append(errs, fixed(obj, old, nested(obj, "spec", "completions"), "spec", "completions")...)
	}
	errs = append(errs, fixed(obj, old, nested(obj, "spec", "template"), "spec", "template")...)
	return append(errs, fixed(obj, old, nested(obj, "spec", "completionMode"), "spec", "completionMode")...)
}

func fixedStatefulSet(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, key := range []string{"serviceName", "podManagementPolicy", "volumeClaimTemplates"} {
		errs = append(errs, fixed(obj, old, nested(obj, "spec", key), "spec", key)...)
	}
	return errs
}

// fixedDefinition holds what is in the way of stored objects of a definition.
func fixedDefinition(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, path := range [][]string{{"spec", "scope"}, {"spec", "names", "kind"}, {"spec", "group"}, {"spec", "names", "plural"}} {
		errs = append(errs, fixed(obj, old, nested(obj, path...), path...)...)
	}
	served := map[any]bool{}
	for _, v := range mapsOf(nested(obj, "spec", "versions")) {
		served[v["name"]] = true
	}
	stored, _ := nested(obj, "status", "storedVersions").([]any)
	for i, v := range stored {
		if !served[v] {
			errs = append(errs, field.Invalid(field.NewPath("status", "storedVersions").Index(i), v, fmt.Sprintf("missing from spec.versions; %[1]v was previously a storage version,"+
				" and must remain in spec.versions until a storage migration ensures no data remains persisted in %[1]v and removes %[1]v from status.storedVersions", v)))
		}
	}
	return errs
}

func specOf(obj map[string]any) map[string]any {
	m, _ := obj["spec"].(map[string]any)
	return m
}

// sameBut says whether two maps are equal, these keys aside.
func sameBut(a, b map[string]any, keys ...string) bool {
	strip := func(m map[string]any) map[string]any {
		out := map[string]any{}
		for key, v := range m {
			if !slices.Contains(keys, key) {
				out[key] = v
			}
		}
		return out
	}
	return reflect.DeepEqual(strip(a), strip(b))
}
