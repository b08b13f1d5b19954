package store

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/starling-operator/starling/runtime/effect"
)

// Selection is which objects of a resource a list or watch is for.
type Selection struct {
	// Labels and Fields are selectors as kubectl takes them; "" selects all.
	Labels, Fields string
}

// maxFields bounds what a field selector may ask of one object.
const maxFields = 50

// builtinFields are the fields that selectors may use beside metadata.name and
// metadata.namespace, by resource.
var builtinFields = map[string][]string{
	"events":                     {"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"},
	"jobs":                       {"status.successful"},
	"namespaces":                 {"status.phase"},
	"nodes":                      {"spec.unschedulable"},
	"pods":                       {"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"},
	"replicasets":                {"status.replicas"},
	"replicationcontrollers":     {"status.replicas"},
	"secrets":                    {"type"},
	"services":                   {"spec.clusterIP", "spec.type"},
	"certificatesigningrequests": {"spec.signerName"},
}

// eventSelectors are those of Events of the group events.k8s.io.
var eventSelectors = []string{"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath", "reason", "reportingController", "type"}

// extraFields are the fields that selectors of a kind may use.
func (k *kind) extraFields() []string {
	switch {
	case k.GVK() == groupEvent:
		return eventSelectors
	case k.Builtin:
		return builtinFields[k.Plural]
	case k.crd != nil:
		return k.crd.fields
	}
	return nil
}

// matcher says which objects, in the version of the kind, are in a namespace ("" for all) and selected.
func (k *kind) matcher(namespace string, sel Selection) (func(obj map[string]any) bool, error) {
	byLabel, err := labels.Parse(sel.Labels)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(sel.Fields)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	known := append([]string{"metadata.name"}, k.extraFields()...)
	if k.Namespaced || k.Builtin && len(k.extraFields()) == 0 {
		known = append(known, "metadata.namespace")
	}
	wanted := byField.Requirements()
	if len(wanted) > maxFields {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("a field selector may have %d requirements, not %d", maxFields, len(wanted)))
	}
	for _, r := range wanted {
		if !slices.Contains(known, r.Field) {
			return nil, apierrors.NewBadRequest(unknownField(k, r.Field))
		}
	}
	return func(obj map[string]any) bool {
		if namespace != "" && namespaceOf(obj) != namespace {
			return false
		}
		if !byLabel.Empty() && !byLabel.Matches(labelsOf(obj)) {
			return false
		}
		if len(wanted) == 0 {
			return true
		}
		set := fields.Set{}
		for _, r := range wanted {
			set[r.Field] = fieldValue(obj, r.Field)
		}
		return byField.Matches(set)
	}, nil
}

func unknownField(k *kind, name string) string {
	if k.Builtin && len(builtinFields[k.Plural]) == 0 {
		return fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", name)
	}
	return "field label not supported: " + name
}

// fieldValue is what a field selector compares.
func fieldValue(obj map[string]any, name string) string {
	switch name {
	case "source":
		return cmp.Or(effect.At[string](obj, "source", "component"), effect.At[string](obj, "reportingComponent"))
	case "status.successful":
		return strconv.FormatInt(effect.At[int64](obj, "status", "succeeded"), 10)
	case "status.replicas":
		return strconv.FormatInt(effect.At[int64](obj, "status", "replicas"), 10)
	case "spec.unschedulable", "spec.hostNetwork":
		return strconv.FormatBool(effect.At[bool](obj, strings.Split(name, ".")...))
	case "status.podIPs":
		name = "status.podIP"
	}
	switch v := nested(obj, strings.Split(name, ".")...).(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}
