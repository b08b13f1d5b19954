package builtins

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/jq"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
	"github.com/starling-operator/starling/runtime/object"
)

// Writes to objects that are there.

var missingParam = spec.Keyword("ignore_missing", spec.Bool, "False")

func k8sChangeSpecs() []spec.Spec {
	return []spec.Spec{
		declare("k8s.patch", spec.InRun, spec.Writes, callPatch, refParam, spec.Keyword("merge", spec.Dict, "None"),
			spec.Keyword("json", spec.List, "None"), spec.Keyword("strategic", spec.Dict, "None"),
			spec.Keyword("jq", spec.String, "None"), spec.Keyword("subresource", spec.String, "None"), unchangedParam,
			missingParam, onErrorParam),
		declare("k8s.status", spec.InRun, spec.Writes, callStatus, refParam, spec.Required("status", spec.Dict),
			unchangedParam, missingParam, onErrorParam),
		declare("k8s.event", spec.InRun, spec.Writes, callEvent, refParam, spec.Required("reason", spec.String),
			spec.Required("message", spec.String), spec.Optional("type", spec.String, `"Normal"`), onErrorParam),
		declare("k8s.evict", spec.InRun, spec.Writes, callEvict, refParam, onErrorParam),
	}
}

// writeTo begins a write to the object of ref=. The grant must allow verb; word is
// what people call it.
func (c *call) writeTo(kind effect.WriteKind, verb, word string) (effect.Write, error) {
	given, _, err := c.target()
	if err != nil {
		return effect.Write{}, err
	}
	ref, namespaced, err := c.ref(given)
	if err != nil {
		return effect.Write{}, err
	}
	guard, err := c.guard(verb, word, ref, namespaced, nil)
	return effect.Write{Kind: kind, Ref: ref, Guard: guard}, err
}

var subresourcePattern = regexp.MustCompile(`^[a-z]{1,63}$`)

func callPatch(c *call) (starlark.Value, error) {
	patch, err := c.patch()
	if err != nil {
		return nil, err
	}
	w, err := c.writeTo(effect.WritePatch, "patch", "patch")
	if err != nil {
		return nil, err
	}
	if !c.run.Free && c.run.Instance.AsksForToken(w.Ref, patch.Body) {
		return nil, c.notCovered("patch", w.Ref)
	}
	w.Patch, w.IgnoreMissing = patch, c.BoolOr("ignore_missing", false)
	if w.Unchanged, err = c.unchanged(w.Ref); err != nil {
		return nil, err
	}
	return nil, c.record(w)
}

// patch reads the one patch of the four that is given.
func (c *call) patch() (*effect.Patch, error) {
	patch := &effect.Patch{Subresource: c.Str("subresource")}
	for _, typ := range []effect.PatchType{effect.PatchMerge, effect.PatchJSON, effect.PatchStrategic, effect.PatchJQ} {
		v := c.Arg(string(typ))
		if v == nil {
			continue
		}
		if patch.Type != "" {
			return nil, fmt.Errorf("%s and %s exclude each other", patch.Type, typ)
		}
		patch.Type = typ
		if typ == effect.PatchJQ {
			patch.Program = c.Str("jq")
			if err := jq.Check(patch.Program); err != nil {
				return nil, fmt.Errorf("jq: %w", err)
			}
			continue
		}
		var err error
		if patch.Body, err = object.ToPlainAt(v, []string{string(typ)}); err != nil {
			return nil, err
		}
		if ops, ok := patch.Body.([]any); ok {
			if err := checkOperations(ops); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case patch.Type == "":
		return nil, errors.New("give one of merge, json, strategic and jq")
	case patch.Subresource != "" && !subresourcePattern.MatchString(patch.Subresource):
		return nil, fmt.Errorf("subresource: %q is none", spec.Clip(patch.Subresource))
	case patch.Type == effect.PatchJQ && patch.Subresource != "" && patch.Subresource != "status":
		return nil, fmt.Errorf(`subresource: a jq program changes the object or its "status", not %q`, patch.Subresource)
	}
	return patch, nil
}

// checkOperations finds what the API server would refuse at the commit only.
func checkOperations(ops []any) error {
	for i, v := range ops {
		op, _ := v.(map[string]any)
		if op == nil {
			return fmt.Errorf("json: operation %d is no dict with op, path and value", i)
		}
		needs := []string{"path"}
		switch name, _ := op["op"].(string); name {
		case "add", "replace", "test":
			if _, ok := op["value"]; !ok {
				return fmt.Errorf("json: operation %d: value is missing", i)
			}
		case "move", "copy":
			needs = append(needs, "from")
		case "remove":
		default:
			return fmt.Errorf("json: operation %d: op %q is none; use add, remove, replace, move, copy or test",
				i, spec.Clip(name))
		}
		for _, field := range needs {
			pointer, ok := op[field].(string)
			if !ok {
				return fmt.Errorf(`json: operation %d: %s is missing; write it as in "/a/b"`, i, field)
			}
			if pointer != "" && !strings.HasPrefix(pointer, "/") {
				return fmt.Errorf(`json: operation %d: %s %q: write it as in "/a/b"`, i, field, spec.Clip(pointer))
			}
		}
		for field := range op {
			if !slices.Contains([]string{"op", "path", "value", "from"}, field) {
				return fmt.Errorf("json: operation %d: unknown field %q", i, spec.Clip(field))
			}
		}
	}
	return nil
}

func callStatus(c *call) (starlark.Value, error) {
	status, err := object.ToPlain(c.Arg("status")) // no place for secrets
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	w, err := c.writeTo(effect.WriteStatus, "patch", "write the status of")
	if err != nil {
		return nil, err
	}
	if w.Unchanged, err = c.unchanged(w.Ref); err != nil {
		return nil, err
	}
	w.Force, w.IgnoreMissing = true, c.BoolOr("ignore_missing", false)
	w.Object = w.Ref.Object()
	w.Object["status"] = status
	return nil, c.record(w)
}

const maxEventMessage = 1024

var reasonPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,127}$`)

func callEvent(c *call) (starlark.Value, error) {
	e := &effect.Event{Reason: c.Str("reason"), Message: c.Str("message"), Type: c.StrOr("type", "Normal")}
	if err := eventReason(e.Reason); err != nil {
		return nil, err
	}
	if e.Message == "" {
		return nil, errors.New("message: is empty")
	}
	if err := eventType(e.Type); err != nil {
		return nil, err
	}
	e.Message = message.Fit(e.Message, maxEventMessage)
	given, uid, err := c.target()
	if err != nil {
		return nil, err
	}
	ref, _, err := c.ref(given)
	if err != nil {
		return nil, err
	}
	e.UID = uid
	event := effect.Ref{APIVersion: "v1", Kind: "Event", Namespace: ref.Namespace}
	event.Namespace = cmp.Or(event.Namespace, "default")
	if !c.allowedAll("create", event) {
		return nil, c.refused("create", fmt.Sprintf("make an Event about %s", ref), "", event, c.elsewhere(event, true))
	}
	return nil, c.record(effect.Write{Kind: effect.WriteEvent, Ref: ref, Event: e})
}

func eventReason(reason string) error {
	if reasonPattern.MatchString(reason) {
		return nil
	}
	word := ""
	for _, part := range strings.FieldsFunc(reason, func(r rune) bool { return !reasonPattern.MatchString("A" + string(r)) }) {
		word += strings.ToUpper(part[:1]) + part[1:]
	}
	if !reasonPattern.MatchString(word) {
		word = "CertificateRenewed"
	}
	return fmt.Errorf("reason: %q is none; write one word, as in %q", spec.Clip(reason), word)
}

func eventType(kind string) error {
	if kind == "Normal" || kind == "Warning" {
		return nil
	}
	return fmt.Errorf(`type: %q is none; use "Normal" or "Warning"`, spec.Clip(kind))
}

func callEvict(c *call) (starlark.Value, error) {
	w, err := c.writeTo(effect.WriteEvict, "delete", "evict")
	if err != nil {
		return nil, err
	}
	if !w.Ref.IsA("v1", "Pod") {
		return nil, fmt.Errorf("ref: only a Pod can be evicted, not %s", w.Ref)
	}
	return nil, c.record(w)
}
