package store

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
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

// converted returns an object of a built-in kind with the apiVersion of another form, and
// its fields. Unchanged parts are shared.
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

// part is a copy of a field that holds an object; it is put in the place of the field.
func part(obj map[string]any, key string) map[string]any {
	old, _ := obj[key].(map[string]any)
	out := maps.Clone(old)
	if out == nil {
		out = map[string]any{}
	}
	obj[key] = out
	return out
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
	spec, status := part(obj, "spec"), part(obj, "status")
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
	spec, status := part(obj, "spec"), part(obj, "status")
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
	return part(part(obj, "metadata"), "annotations")
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
