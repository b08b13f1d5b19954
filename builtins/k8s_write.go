package builtins

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/secrets"
	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// Writes of whole objects. Writes are recorded, and made after the run has
// succeeded, in the order of the calls.

func k8sWriteSpecs() []spec.Spec {
	return append([]spec.Spec{
		declare("k8s.apply", spec.InRun, spec.Writes, callApply, spec.Required("obj", spec.Dict),
			spec.Keyword("owner", spec.Dict, "None"), spec.Keyword("force", spec.Bool, "True"), unchangedParam, onErrorParam),
		declare("k8s.create", spec.InRun, spec.Writes, callCreate, spec.Required("obj", spec.Dict),
			spec.Keyword("generate_name", spec.String, "None"), spec.Keyword("if_absent", spec.Bool, "False"), onErrorParam),
		declare("k8s.delete", spec.InRun, spec.Writes, callDelete, refParam,
			spec.Keyword("propagation", spec.String, `"background"`), spec.Keyword("wait", spec.Duration, "None").UpTo(maxWait),
			unchangedParam, onErrorParam),
		declare("k8s.apply_set", spec.InRun, spec.Writes, callApplySet, spec.Required("name", spec.String),
			spec.Required("objs", spec.List), spec.Keyword("owner", spec.Dict, "None"),
			spec.Keyword("allow_empty", spec.Bool, "True"), spec.Keyword("keep", spec.Bool, "False"), onErrorParam),
	}, k8sChangeSpecs()...)
}

// onErrorParam is for all writes.
var onErrorParam = spec.Keyword("on_error", spec.String, `"stop"`)

func callApply(c *call) (starlark.Value, error) {
	w, namespaced, err := c.given(c.Arg("obj"), "obj")
	if err != nil {
		return nil, err
	}
	if w.Guard, err = c.guard("apply", "apply", w.Ref, namespaced, w.Object); err != nil {
		return nil, err
	}
	if w.Owner, err = c.owner(w.Ref, namespaced); err != nil {
		return nil, err
	}
	if w.Unchanged, err = c.unchanged(w.Ref); err != nil {
		return nil, err
	}
	w.Kind, w.Force = effect.WriteApply, c.BoolOr("force", true)
	return nil, c.record(w)
}

func callCreate(c *call) (starlark.Value, error) {
	name, err := c.generated()
	if err != nil {
		return nil, fmt.Errorf("generate_name: %w", err)
	}
	w, namespaced, err := c.named(c.Arg("obj"), "obj", name)
	if err != nil {
		return nil, err
	}
	if w.Guard, err = c.guard("create", "create", w.Ref, namespaced, w.Object); err != nil {
		return nil, err
	}
	metadata := w.Object["metadata"].(map[string]any)
	delete(metadata, "resourceVersion") // the API server takes none of these in a create
	delete(metadata, "uid")
	w.Kind, w.IfAbsent = effect.WriteCreate, c.BoolOr("if_absent", false)
	return starlark.String(w.Ref.Name), c.record(w)
}

const (
	// generatedLength is how many characters follow generate_name, out of generatedLetters:
	// as the API server makes names up.
	generatedLength  = 5
	generatedLetters = "bcdfghjklmnpqrstvwxz2456789"
)

// generated makes a name up, "" where none is wanted. The API server could do so, too, but
// then the run would not know whom it writes.
func (c *call) generated() (string, error) {
	if c.Arg("generate_name") == nil {
		return "", nil
	}
	name := c.Str("generate_name")
	if name == "" || len(name) > 63-generatedLength {
		return "", fmt.Errorf("must have 1 to %d characters", 63-generatedLength)
	}
	more, err := secrets.Letters(c.Random, generatedLength, []rune(generatedLetters))
	return name + more, err
}

// given reads an object to apply or create.
func (c *call) given(v starlark.Value, at string) (effect.Write, bool, error) {
	return c.named(v, at, "")
}

// named reads one that gets a name, if it is not "".
func (c *call) named(v starlark.Value, at, name string) (effect.Write, bool, error) {
	var w effect.Write
	if err := openIdentity(v); err != nil {
		return w, false, fmt.Errorf("%s: %w", at, err)
	}
	plain, err := object.ToPlainAt(v, []string{at})
	if err != nil {
		return w, false, err
	}
	obj, ok := plain.(map[string]any)
	if !ok {
		return w, false, fmt.Errorf("%s: got %s, want %s", at, v.Type(), spec.Dict)
	}
	if name != "" {
		metadata, ok := obj["metadata"].(map[string]any)
		switch {
		case obj["metadata"] == nil:
			metadata = map[string]any{}
			obj["metadata"] = metadata
		case ok && metadata["name"] != nil:
			return w, false, fmt.Errorf("%s: metadata.name and generate_name exclude each other", at)
		}
		if metadata != nil { // else identity says what is wrong
			delete(metadata, "generateName")
			metadata["name"] = name
		}
	}
	id, err := identity(obj)
	if err != nil {
		return w, false, fmt.Errorf("%s: %w", at, err)
	}
	if _, isList := obj["items"].([]any); isList && strings.HasSuffix(id.Kind, "List") {
		return w, false, fmt.Errorf("%s: %s holds many objects; apply each of them", at, id.Kind)
	}
	ref, namespaced, err := c.ref(id)
	if err != nil {
		return w, false, fmt.Errorf("%s: %w", at, err)
	}
	metadata := obj["metadata"].(map[string]any) // as identity has checked
	delete(metadata, "managedFields")            // the API server takes none
	delete(metadata, "namespace")
	if namespaced {
		metadata["namespace"] = ref.Namespace
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, effect.MadeByAnnotation) // decided at the commit
		delete(annotations, effect.MadeBySignature)
	}
	c.run.labelled(metadata)
	return effect.Write{Ref: ref, Object: obj}, namespaced, nil
}

// maxWait bounds wait= of k8s.delete.
const maxWait = 5 * time.Minute

func callDelete(c *call) (starlark.Value, error) {
	propagation := c.StrOr("propagation", "background")
	switch propagation {
	case "background", "foreground", "orphan":
	default:
		return nil, fmt.Errorf(`propagation: %q is none; use "background", "foreground" or "orphan"`, spec.Clip(propagation))
	}
	w, err := c.writeTo(effect.WriteDelete, "delete", "delete")
	if err != nil {
		return nil, err
	}
	if w.Unchanged, err = c.unchanged(w.Ref); err != nil {
		return nil, err
	}
	w.Propagation, w.Wait = propagation, c.DurationOr("wait", 0)
	return nil, c.record(w)
}

// maxSet bounds the objects of one set: what one record of them can hold.
const maxSet = 5000

func callApplySet(c *call) (starlark.Value, error) {
	set := &effect.Set{Name: c.Str("name"), Keep: c.BoolOr("keep", false)}
	list := c.Arg("objs").(starlark.Indexable)
	switch {
	case set.Name == "" || len(set.Name) > 253:
		return nil, errors.New("name: must have 1 to 253 characters")
	case list.Len() > maxSet:
		return nil, fmt.Errorf("objs: %d are more than the %d that one set may hold; split it", list.Len(), maxSet)
	case list.Len() == 0 && !c.BoolOr("allow_empty", true):
		return nil, errors.New("objs: the list is empty; with allow_empty = True that deletes all that the set has made")
	}
	if c.run.Key != "" {
		// Each object of for_each has its own sets.
		set.Name = c.run.Key + " " + set.Name
	}
	for _, w := range c.run.Effects.Writes {
		if w.Kind == effect.WriteSet && w.Set.Name == set.Name {
			return nil, fmt.Errorf("name: this run has applied set %q already (%s); list all its objects in one call", spec.Clip(set.Name), w.Pos)
		}
	}
	var owner *effect.Owner
	seen := map[effect.Ref]bool{}
	for i := range list.Len() {
		at := fmt.Sprintf("objs[%d]", i)
		w, namespaced, err := c.given(list.Index(i), at)
		if err != nil {
			return nil, err
		}
		same := w.Ref
		if same.APIVersion = effect.GroupOf(same.APIVersion); seen[same] {
			return nil, fmt.Errorf("%s: %s is listed twice", at, w.Ref)
		}
		seen[same] = true
		if w.Guard, err = c.guard("apply", "apply", w.Ref, namespaced, w.Object); err != nil {
			return nil, err
		}
		if _, err = c.guard("delete", "delete", w.Ref, namespaced, w.Object); err != nil {
			return nil, err
		}
		if owner, err = c.owner(w.Ref, namespaced); err != nil {
			return nil, err
		}
		w.Kind, w.Force = effect.WriteApply, true
		set.Members = append(set.Members, w)
	}
	return nil, c.record(effect.Write{Kind: effect.WriteSet, Ref: effect.Ref{Kind: "set", Name: set.Name}, Set: set, Owner: owner})
}

// record keeps one write until the run has succeeded.
func (c *call) record(w effect.Write) error {
	switch then := c.StrOr("on_error", "stop"); then {
	case "stop":
	case "continue":
		w.Continue = true
	default:
		return fmt.Errorf(`on_error: %q is none; use "stop" or "continue"`, spec.Clip(then))
	}
	w.Pos = c.Pos()
	size := len(w.Ref.Name) + len(w.Ref.Namespace)
	if w.Object != nil {
		size += object.PlainSize(w.Object)
	}
	if w.Patch != nil {
		size += len(w.Patch.Program) + object.PlainSize(w.Patch.Body)
	}
	if w.Config != nil {
		size += object.PlainSize(w.Config.Value) + sizeOf(w.Config.Path)
	}
	if w.Event != nil {
		size += len(w.Event.Message)
	}
	if w.Set != nil {
		for _, m := range w.Set.Members {
			size += len(m.Ref.Name) + object.PlainSize(m.Object)
		}
	}
	if err := c.run.spend(len(c.run.Effects.Writes), "object writes", size); err != nil {
		return err
	}
	c.run.Effects.Writes = append(c.run.Effects.Writes, w)
	return nil
}
