package store

import (
	"encoding/binary"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepareNew sets what the server itself puts into a new object.
func (s *Store) prepareNew(k *kind, obj map[string]any) {
	if !k.Builtin {
		return
	}
	switch k.Plural {
	case "namespaces":
		obj["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		obj["status"] = map[string]any{"phase": "Active"}
	case "services":
		s.clusterIP(obj)
	case "jobs":
		jobSelector(obj)
	case "daemonsets":
		setNested(obj, "1", "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
	case apiServices:
		s.localService(obj)
	case crdResource.Resource:
		s.establish(obj)
	}
}

// prepareChanged sets what the server itself changes in an object that changes.
func (s *Store) prepareChanged(k *kind, old, obj map[string]any) {
	if !k.Builtin {
		return
	}
	switch k.Plural {
	case "services":
		for _, key := range []string{"clusterIP", "clusterIPs"} {
			if v := nested(old, "spec", key); v != nil && nested(obj, "spec", key) == nil && nested(obj, "spec", "type") != "ExternalName" {
				setNested(obj, v, "spec", key)
			}
		}
		s.clusterIP(obj)
	case "daemonsets":
		templateGeneration(old, obj)
	case crdResource.Resource:
		s.establish(obj)
	}
}

// templateGeneration counts how often the template of a DaemonSet has changed.
func templateGeneration(old, obj map[string]any) {
	at := []string{"metadata", "annotations", appsv1.DeprecatedTemplateGeneration}
	text, _ := nested(old, at...).(string)
	if n, err := strconv.Atoi(text); err == nil && !reflect.DeepEqual(nested(old, "spec", "template"), nested(obj, "spec", "template")) {
		text = strconv.Itoa(n + 1)
	}
	if text != "" {
		setNested(obj, text, at...)
	}
}

// clusterIP gives a Service an address, out of 10.96.0.0/16, and says of which
// family it is.
func (s *Store) clusterIP(obj map[string]any) {
	if nested(obj, "spec", "type") == "ExternalName" {
		return
	}
	ip, _ := nested(obj, "spec", "clusterIP").(string)
	if ip == "" {
		sum := s.random("clusterIP " + keyOf(namespaceOf(obj), nameOf(obj)))
		n := binary.BigEndian.Uint16(sum[:])%65000 + 2
		ip = fmt.Sprintf("10.96.%d.%d", n>>8, n&0xff)
		setNested(obj, ip, "spec", "clusterIP")
	}
	families, policy := []any{"IPv4"}, "SingleStack"
	if selector, _ := nested(obj, "spec", "selector").(map[string]any); ip == "None" && len(selector) == 0 {
		families, policy = []any{"IPv4", "IPv6"}, "RequireDualStack"
	}
	for key, v := range map[string]any{"clusterIPs": []any{ip}, "ipFamilies": families, "ipFamilyPolicy": policy} {
		if nested(obj, "spec", key) == nil {
			setNested(obj, v, "spec", key)
		}
	}
}

// jobSelector gives a Job the selector and labels by which it knows its Pods.
func jobSelector(obj map[string]any) {
	if nested(obj, "spec", "manualSelector") == true {
		return
	}
	uid := uidOf(obj)
	setNested(obj, uid, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid")
	for key, v := range map[string]string{
		"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid, "job-name": nameOf(obj), "batch.kubernetes.io/job-name": nameOf(obj),
	} {
		setNested(obj, v, "spec", "template", "metadata", "labels", key)
	}
	if labels, _ := metaOf(obj)["labels"].(map[string]any); len(labels) == 0 {
		setNested(obj, runtime.DeepCopyJSONValue(nested(obj, "spec", "template", "metadata", "labels")), "metadata", "labels")
	}
}

// held says whether something beside finalizers keeps a deleted object there.
func (s *Store) held(k *kind, obj map[string]any) bool {
	return k.Builtin && k.Plural == "namespaces" && nested(obj, "spec", "finalizers") != nil
}

// validateBuiltin checks what people get wrong most often; the real server checks
// far more.
func validateBuiltin(k *kind, obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	switch k.Plural {
	case "configmaps", "secrets":
		for _, part := range []string{"data", "binaryData"} {
			values, _ := obj[part].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(values)) {
				for _, msg := range validation.IsConfigMapKey(key) {
					errs = append(errs, field.Invalid(field.NewPath(part).Key(key), key, msg))
				}
			}
		}
		if k.Plural == "configmaps" {
			errs = append(errs, twice(obj)...)
		} else if old == nil {
			errs = append(errs, secretOfType(obj)...)
		}
	case "deployments", "statefulsets", "daemonsets", "replicasets":
		if k.Group == "apps" {
			errs = append(errs, selects(obj, old)...)
		}
	}
	errs = append(errs, finalizerNames(k, obj, old)...)
	if old == nil || !sameBut(old, obj, "metadata", "status", "apiVersion") {
		errs = append(errs, required(k, obj)...)
	}
	if old != nil {
		errs = append(errs, immutable(k, obj, old)...)
	}
	return errs
}

// selects checks the selector of what makes Pods.
func selects(obj, old map[string]any) field.ErrorList {
	path := field.NewPath("spec", "selector")
	selector, _ := nested(obj, "spec", "selector").(map[string]any)
	if selector == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	if old != nil && !reflect.DeepEqual(nested(old, "spec", "selector"), any(selector)) {
		return field.ErrorList{field.Invalid(path, selector, "field is immutable")}
	}
	labels, _ := nested(obj, "spec", "template", "metadata", "labels").(map[string]any)
	match, _ := selector["matchLabels"].(map[string]any)
	for key, v := range match {
		if labels[key] != v {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels, "`selector` does not match template `labels`")}
		}
	}
	return nil
}
