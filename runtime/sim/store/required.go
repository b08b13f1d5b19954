package store

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// required says what a built-in kind must have, of what charts forget.
func required(k *kind, obj map[string]any) field.ErrorList {
	spec := field.NewPath("spec")
	switch k.groupResource().String() {
	case "deployments.apps", "daemonsets.apps", "replicasets.apps":
		return append(notBelowZero(obj), podTemplate(specOf(obj), spec.Child("template"), "")...)
	case "statefulsets.apps":
		// Each claim is a volume of its Pod.
		return append(notBelowZero(obj), podTemplate(specOf(obj), spec.Child("template"), "", mapsOf(nested(obj, "spec", "volumeClaimTemplates"))...)...)
	case "jobs.batch":
		return podTemplate(specOf(obj), spec.Child("template"), "Job")
	case "cronjobs.batch":
		job, _ := nested(obj, "spec", "jobTemplate", "spec").(map[string]any)
		return podTemplate(job, spec.Child("jobTemplate", "spec", "template"), "Job")
	case "podtemplates":
		return podTemplate(obj, field.NewPath("template"), "")
	case "apiservices.apiregistration.k8s.io":
		return apiService(obj)
	case "services":
		return servicePorts(obj)
	case "ingresses.networking.k8s.io":
		return ingressRules(obj)
	case "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io":
		var errs field.ErrorList
		for i, rule := range mapsOf(obj["rules"]) {
			if verbs, _ := rule["verbs"].([]any); len(verbs) == 0 {
				errs = append(errs, field.Required(field.NewPath("rules").Index(i).Child("verbs"), ""))
			}
		}
		return errs
	}
	return nil
}

// mapsOf are the objects of a list.
func mapsOf(v any) []map[string]any {
	list, _ := v.([]any)
	out := make([]map[string]any, len(list))
	for i, e := range list {
		out[i], _ = e.(map[string]any)
	}
	return out
}

func notBelowZero(obj map[string]any) field.ErrorList {
	if n, _ := nested(obj, "spec", "replicas").(int64); n < 0 {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), n, "must be greater than or equal to 0")}
	}
	return nil
}

// podTemplate checks the template in an object; of names what it is for, claims are those
// that its Pods get.
func podTemplate(in map[string]any, path *field.Path, of string, claims ...map[string]any) field.ErrorList {
	spec, _ := nested(in, "template", "spec").(map[string]any)
	volumes := map[string]bool{}
	for _, v := range mapsOf(spec["volumes"]) {
		name, _ := v["name"].(string)
		volumes[name] = true
	}
	for _, claim := range claims {
		volumes[nameOf(claim)] = true
	}
	return podSpec(spec, path.Child("spec"), of, volumes)
}

// podSpec checks what Pods run, and that they mount what there is.
func podSpec(spec map[string]any, path *field.Path, of string, volumes map[string]bool) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for _, list := range []string{"containers", "initContainers"} {
		containers := mapsOf(spec[list])
		if list == "containers" && len(containers) == 0 {
			errs = append(errs, field.Required(path.Child(list), ""))
		}
		for i, c := range containers {
			at := path.Child(list).Index(i)
			name, _ := c["name"].(string)
			switch {
			case name == "":
				errs = append(errs, field.Required(at.Child("name"), ""))
			case names[name]:
				errs = append(errs, field.Duplicate(at.Child("name"), name))
			default:
				names[name] = true
				for _, msg := range validation.IsDNS1123Label(name) {
					errs = append(errs, field.Invalid(at.Child("name"), name, msg))
				}
			}
			if image, _ := c["image"].(string); image == "" {
				errs = append(errs, field.Required(at.Child("image"), ""))
			}
			for j, m := range mapsOf(c["volumeMounts"]) {
				if name, _ := m["name"].(string); name == "" {
					errs = append(errs, field.Required(at.Child("volumeMounts").Index(j).Child("name"), ""))
				} else if !volumes[name] {
					errs = append(errs, field.NotFound(at.Child("volumeMounts").Index(j).Child("name"), name))
				}
			}
		}
	}
	if of == "Job" && spec["restartPolicy"] == "Always" {
		errs = append(errs, field.Required(path.Child("restartPolicy"), `valid values: "OnFailure", "Never"`))
	}
	return errs
}

func servicePorts(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "ports")
	ports := mapsOf(nested(obj, "spec", "ports"))
	if len(ports) == 0 && nested(obj, "spec", "clusterIP") != "None" && nested(obj, "spec", "type") != "ExternalName" {
		errs = append(errs, field.Required(path, ""))
	}
	names := map[string]bool{}
	for i, p := range ports {
		name, _ := p["name"].(string)
		switch {
		case name == "" && len(ports) > 1:
			errs = append(errs, field.Required(path.Index(i).Child("name"), ""))
		case name != "" && names[name]:
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), name))
		}
		names[name] = true
		for _, key := range []string{"port", "targetPort"} {
			n, isNumber := p[key].(int64)
			if !isNumber {
				continue
			}
			for _, msg := range validation.IsValidPortNum(int(n)) {
				errs = append(errs, field.Invalid(path.Index(i).Child(key), n, msg))
			}
		}
	}
	return errs
}

func ingressRules(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	rules := mapsOf(nested(obj, "spec", "rules"))
	if len(rules) == 0 && nested(obj, "spec", "defaultBackend") == nil {
		errs = append(errs, field.Invalid(spec, nil, "either `defaultBackend` or `rules` must be specified"))
	}
	for i, rule := range rules {
		for j, p := range mapsOf(nested(rule, "http", "paths")) {
			if p["pathType"] == nil {
				errs = append(errs, field.Required(spec.Child("rules").Index(i).Child("http", "paths").Index(j).Child("pathType"), "pathType must be specified"))
			}
		}
	}
	return errs
}

// twice names the keys that a ConfigMap has in both of its parts.
func twice(obj map[string]any) field.ErrorList {
	var errs field.ErrorList
	data, _ := obj["data"].(map[string]any)
	binary, _ := obj["binaryData"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if _, both := binary[key]; both {
			errs = append(errs, field.Invalid(field.NewPath("data").Key(key), key, "duplicate of key present in binaryData"))
		}
	}
	return errs
}

// secretOfType checks the keys that Secrets of a type must have.
func secretOfType(obj map[string]any) field.ErrorList {
	data, _ := obj["data"].(map[string]any)
	path := field.NewPath("data")
	var errs field.ErrorList
	need := func(keys ...string) {
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				errs = append(errs, field.Required(path.Key(key), ""))
			}
		}
	}
	holdsJSON := func(key string) {
		need(key)
		text, _ := data[key].(string)
		plain, err := base64.StdEncoding.DecodeString(text)
		if err == nil && len(errs) == 0 {
			err = json.Unmarshal(plain, &map[string]any{})
		}
		if err != nil && len(errs) == 0 {
			errs = append(errs, field.Invalid(path.Key(key), "<secret contents redacted>", err.Error()))
		}
	}
	switch obj["type"] {
	case "kubernetes.io/tls":
		need("tls.crt", "tls.key")
	case "kubernetes.io/basic-auth":
		_, name := data["username"]
		if _, password := data["password"]; !name && !password {
			need("username", "password")
		}
	case "kubernetes.io/ssh-auth":
		need("ssh-privatekey")
	case "kubernetes.io/dockerconfigjson":
		holdsJSON(".dockerconfigjson")
	case "kubernetes.io/dockercfg":
		holdsJSON(".dockercfg")
	case "kubernetes.io/service-account-token":
		const of = "kubernetes.io/service-account.name"
		if text, _ := nested(obj, "metadata", "annotations", of).(string); text == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(of), ""))
		}
	}
	return errs
}

// anyFinalizer are the groups in which a finalizer may have any name, as in custom resources.
var anyFinalizer = []string{"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "coordination.k8s.io"}

// finalizerNames refuses finalizers of built-in kinds that are neither Kubernetes' own
// nor those of a domain.
func finalizerNames(k *kind, obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if slices.Contains(anyFinalizer, k.Group) {
		return nil
	}
	for i, name := range finalizersOf(obj) {
		if !slices.Contains(finalizersOf(old), name) && !strings.Contains(name, "/") && name != "kubernetes" && name != "orphan" && name != "foregroundDeletion" {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// unrepeated leaves out errors that were said before.
func unrepeated(errs field.ErrorList) field.ErrorList {
	var out field.ErrorList
	seen := map[string]bool{}
	for _, err := range errs {
		text := fmt.Sprint(err.Type, err.Field, err.Detail, err.BadValue)
		if !seen[text] {
			seen[text] = true
			out = append(out, err)
		}
	}
	return out
}
