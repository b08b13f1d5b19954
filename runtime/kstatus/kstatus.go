// Package kstatus tells from an object whether it is ready, by the conventions that kubectl, Helm and
// GitOps tools follow under this name: metadata.generation and status.observedGeneration, the conditions
// Ready, Reconciling and Stalled, and for kinds of Kubernetes the fields of their status. It does no I/O.
package kstatus

import (
	"fmt"
	"strings"
)

// Status is what is known of an object.
type Status struct {
	// Ready says that the object works, in the state that its spec asks for.
	Ready bool
	// Stalled says that it will not become ready before somebody changes something.
	Stalled bool
	// Reason says for people why it is not ready, "1 of 3 ready"; "" of one that is.
	Reason string
}

var ready = Status{Ready: true}

func waits(format string, args ...any) Status { return Status{Reason: fmt.Sprintf(format, args...)} }

func stalled(reason string) Status { return Status{Stalled: true, Reason: reason} }

// Of reads the status of an object, which is plain JSON data. A field that is not there, or of another
// type, counts as empty: so an object without any status is ready, unless its kind always has one.
func Of(obj map[string]any) Status {
	o := object(obj)
	if text(o.at("metadata"), "deletionTimestamp") != "" {
		return waits("it is being deleted")
	}
	if seen, told := number(o.at("status"), "observedGeneration"); told {
		if is, _ := number(o.at("metadata"), "generation"); seen < is {
			return waits("its controller has not seen generation %d yet", is)
		}
	}
	if c := o.condition("Stalled"); c.is("True") {
		return stalled(c.why("it is stalled"))
	}
	if rule := rules[o.kind()]; rule != nil {
		return rule(o)
	}
	if c := o.condition("Reconciling"); c.is("True") {
		return waits("%s", c.why("it is reconciling"))
	}
	if c := o.condition("Ready"); c != nil && !c.is("True") {
		return waits("%s", c.why("its condition Ready is "+text(c, "status")))
	}
	return ready
}

// Silent says that nobody has told yet how an object is: its kind has no rule here, and its status neither conditions
// nor the generation that its controller has seen.
func Silent(obj map[string]any) bool {
	o := object(obj)
	_, told := number(o.at("status"), "observedGeneration")
	conditions, _ := o.at("status")["conditions"].([]any)
	return rules[o.kind()] == nil && !told && len(conditions) == 0
}

// rules are those of kinds of Kubernetes, by group and kind.
var rules = map[string]func(object) Status{
	"apps/Deployment":        deployment,
	"apps/StatefulSet":       statefulSet,
	"apps/DaemonSet":         daemonSet,
	"apps/ReplicaSet":        replicaSet,
	"/Pod":                   pod,
	"batch/Job":              job,
	"/PersistentVolumeClaim": claim,
	"/Service":               service,
	"/Namespace":             namespace,
	"apiextensions.k8s.io/CustomResourceDefinition": definition,
	"apiregistration.k8s.io/APIService":             apiService,
}

type object map[string]any

func (o object) kind() string {
	group, _, grouped := strings.Cut(text(o, "apiVersion"), "/")
	if !grouped {
		group = ""
	}
	return group + "/" + text(o, "kind")
}

func (o object) at(key string) map[string]any { m, _ := o[key].(map[string]any); return m }

// condition is one of status.conditions; nil: there is none of that type.
type condition map[string]any

func (o object) condition(kind string) condition {
	list, _ := o.at("status")["conditions"].([]any)
	for _, e := range list {
		if m, _ := e.(map[string]any); text(m, "type") == kind {
			return m
		}
	}
	return nil
}

func (c condition) is(status string) bool { return text(c, "status") == status }

// why is the message of a condition, or else its reason, or else what is given.
func (c condition) why(otherwise string) string {
	for _, key := range []string{"message", "reason"} {
		if t := text(c, key); t != "" {
			return t
		}
	}
	return otherwise
}

func text[M ~map[string]any](m M, key string) string { s, _ := m[key].(string); return s }

// number reads a whole number, as JSON decoders give it.
func number(m map[string]any, key string) (n int64, told bool) {
	switch v := m[key].(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// count is a number of status that is left out when it is 0.
func count(m map[string]any, key string) int64 { n, _ := number(m, key); return n }

func (o object) wanted() int64 {
	if n, told := number(o.at("spec"), "replicas"); told {
		return n
	}
	return 1
}
