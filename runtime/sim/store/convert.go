package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/runtime/effect"
)

var (
	autoscalerV1 = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}
	autoscalerV2 = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	coreEvent    = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	groupEvent   = schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}

	// keptAs says in which form built-in objects are stored whose kind is served in two.
	keptAs = map[schema.GroupVersionKind]schema.GroupVersionKind{autoscalerV1: autoscalerV2, groupEvent: coreEvent}
)

// eventFields are the fields of Events that have other names in the group events.k8s.io.
var eventFields = map[string]string{
	"note": "message", "regarding": "involvedObject", "reportingController": "reportingComponent", "deprecatedSource": "source",
	"deprecatedFirstTimestamp": "firstTimestamp", "deprecatedLastTimestamp": "lastTimestamp", "deprecatedCount": "count",
}

// Annotations hold fields that autoscaling/v1 does not have.
const (
	metricsNote    = "autoscaling.alpha.kubernetes.io/metrics"
	behaviorNote   = "autoscaling.alpha.kubernetes.io/behavior"
	conditionsNote = "autoscaling.alpha.kubernetes.io/conditions"
	currentNote    = "autoscaling.alpha.kubernetes.io/current-metrics"
)

// inForm returns an object of a built-in kind in the form of k, decoded.
func inForm(k *kind, obj map[string]any) map[string]any {
	made := converted(obj, k.GVK())
	if out, _, err := k.typed.decode(made); err == nil {
		return out
	}
	return made
}

// convert returns an object of a kind with another apiVersion, as the kind is converted. Parts may be shared.
func (s *Store) convert(k *kind, obj map[string]any, to schema.GroupVersionKind) (map[string]any, error) {
	if k.crd != nil && s.o.Convert != nil && s.over == nil {
		out, err := s.o.Convert(k.crd.name, obj, to.GroupVersion().String())
		if err != nil {
			return nil, broken(fmt.Sprintf("conversion webhook for %s, Kind=%s failed: %v", obj["apiVersion"], to.Kind, err))
		}
		if out != nil {
			return out, nil
		}
	}
	return converted(obj, to), nil
}

// undecodable is the error of a stored object that cannot be converted, as writes show it.
type undecodable struct{ error }

// Unwrap gives the answer.
func (u undecodable) Unwrap() error { return u.error }

// corruptText names the object of an undecodable error as reads do.
func corruptText(k *kind, under, key string, err error) (path, text string) {
	path = fmt.Sprintf("%s/%s/%s/%s", under, k.Group, k.Plural, key)
	return path, fmt.Sprintf("StorageError: corrupt object, Code: 7, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %v", path, err)
}

// corrupt is an error of a read of one object.
func corrupt(k *kind, t Target, err error) error {
	if !errors.As(err, new(undecodable)) {
		return err
	}
	_, text := corruptText(k, "", keyOf(t.Namespace, t.Name), err)
	return apierrors.NewInternalError(errors.New(text))
}

// unreadable is the error of a list with objects that cannot be converted.
func unreadable(k *kind, causes []metav1.StatusCause) error {
	message := fmt.Sprintf("failed to read one or more %s from the storage: %s", k.groupResource(), causes[0].Message)
	if len(causes) > 1 {
		message = fmt.Sprintf("%s (and %d more)", message, len(causes)-1)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message,
		Details: &metav1.StatusDetails{Group: k.Group, Kind: k.Plural, Name: "list", Causes: causes},
	}}
}

// converted returns an object with another apiVersion and, of a built-in kind, the fields of
// that form. Unchanged parts are shared.
func converted(obj map[string]any, to schema.GroupVersionKind) map[string]any {
	apiVersion, _ := obj["apiVersion"].(string)
	from := schema.FromAPIVersionAndKind(apiVersion, to.Kind)
	out := maps.Clone(obj)
	out["apiVersion"] = to.GroupVersion().String()
	switch {
	case from == autoscalerV1 && to == autoscalerV2:
		fromAutoscalerV1(out)
	case from == autoscalerV2 && to == autoscalerV1:
		toAutoscalerV1(out)
	case from == groupEvent && to == coreEvent:
		for grouped, core := range eventFields {
			move(out, grouped, core)
		}
	case from == coreEvent && to == groupEvent:
		for grouped, core := range eventFields {
			move(out, core, grouped)
		}
	}
	return out
}

// move renames a field.
func move(obj map[string]any, from, to string) {
	if v, ok := obj[from]; ok {
		delete(obj, from)
		obj[to] = v
	}
}

func fromAutoscalerV1(obj map[string]any) {
	notes := annotationsOf(obj)
	read := func(name string) (v any) {
		text, _ := notes[name].(string)
		if text == "" || kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &v) != nil {
			return nil
		}
		delete(notes, name)
		return v
	}
	spec, status := effect.Cloned(obj, "spec"), effect.Cloned(obj, "status")
	metrics, _ := read(metricsNote).([]any)
	if n, ok := spec["targetCPUUtilizationPercentage"]; ok {
		delete(spec, "targetCPUUtilizationPercentage")
		metrics = append([]any{cpuMetric("target", map[string]any{"type": "Utilization", "averageUtilization": n})}, metrics...)
	}
	current, _ := read(currentNote).([]any)
	if n, ok := status["currentCPUUtilizationPercentage"]; ok {
		delete(status, "currentCPUUtilizationPercentage")
		current = append([]any{cpuMetric("current", map[string]any{"averageUtilization": n})}, current...)
	}
	if metrics != nil {
		spec["metrics"] = metrics
	}
	if current != nil {
		status["currentMetrics"] = current
	}
	if v := read(behaviorNote); v != nil {
		spec["behavior"] = v
	}
	if v := read(conditionsNote); v != nil {
		status["conditions"] = v
	}
	if len(notes) == 0 {
		delete(metaOf(obj), "annotations")
	}
}

func toAutoscalerV1(obj map[string]any) {
	notes := annotationsOf(obj)
	note := func(name string, v any) {
		if list, isList := v.([]any); v == nil || isList && len(list) == 0 {
			return
		}
		if text, err := json.Marshal(v); err == nil {
			notes[name] = string(text)
		}
	}
	spec, status := effect.Cloned(obj, "spec"), effect.Cloned(obj, "status")
	metrics, percent := splitCPU(spec["metrics"], "target")
	if percent != nil {
		spec["targetCPUUtilizationPercentage"] = percent
	}
	current, percent := splitCPU(status["currentMetrics"], "current")
	if percent != nil {
		status["currentCPUUtilizationPercentage"] = percent
	}
	note(metricsNote, metrics)
	note(behaviorNote, spec["behavior"])
	note(currentNote, current)
	note(conditionsNote, status["conditions"])
	delete(spec, "metrics")
	delete(spec, "behavior")
	delete(status, "currentMetrics")
	delete(status, "conditions")
	if len(notes) == 0 {
		delete(metaOf(obj), "annotations")
	}
}

// annotationsOf are the annotations of an object, in copies of what holds them.
func annotationsOf(obj map[string]any) map[string]any {
	return effect.Cloned(effect.Cloned(obj, "metadata"), "annotations")
}

func cpuMetric(key string, value map[string]any) map[string]any {
	return map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu", key: value}}
}

// splitCPU takes the utilization of the processor, which autoscaling/v1 has a field for, out
// of a list of metrics.
func splitCPU(list any, key string) (rest []any, percent any) {
	all, _ := list.([]any)
	for _, m := range all {
		metric, _ := m.(map[string]any)
		n := nested(metric, "resource", key, "averageUtilization")
		if percent == nil && n != nil && nested(metric, "resource", "name") == "cpu" {
			percent = n
			continue
		}
		rest = append(rest, m)
	}
	return rest, percent
}
