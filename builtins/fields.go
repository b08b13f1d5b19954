package builtins

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.starlark.net/starlark"

	"github.com/starling-operator/starling/builtins/spec"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
	"github.com/starling-operator/starling/runtime/reconcile"
)

func fieldsSpec() spec.Spec {
	return declare("set_fields", spec.InDesired, spec.NoEffect, callSetFields, refParam,
		spec.Required("fields", spec.Dict), spec.Keyword("subresource", spec.String, "None"))
}

func callSetFields(c *call) (starlark.Value, error) {
	given, _, err := c.target()
	if err != nil {
		return nil, err
	}
	ref, namespaced, err := c.ref(given)
	if err != nil {
		return nil, fmt.Errorf("ref: %w", err)
	}
	p := Part{Ready: ReadyExists, Pos: c.Pos()}
	p.ID = reconcile.ID{Ref: ref, Fields: true, Subresource: c.Str("subresource")}
	p.Name, p.Update = p.ID.String(), reconcile.UpdateApply
	if err := c.child(p.ID, nil); err != nil {
		return nil, err
	}
	plain, err := object.ToPlainAt(c.Arg("fields"), []string{"fields"})
	if err != nil {
		return nil, err
	}
	p.Object = plain.(map[string]any) // as its type was checked
	if err := checkFields(p.Object, p.ID.Subresource); err != nil {
		return nil, err
	}
	metadata := effect.Cloned(p.Object, "metadata")
	p.Object["apiVersion"], p.Object["kind"], metadata["name"] = ref.APIVersion, ref.Kind, ref.Name
	if namespaced {
		metadata["namespace"] = ref.Namespace
	}
	return c.madePart("set_fields", p)
}

// checkFields makes sure that fields can be written to a subresource, "" for the object itself.
func checkFields(fields map[string]any, subresource string) error {
	if subresource != "" && subresource != "status" {
		return fmt.Errorf(`subresource: got %q, want "status"; leave it out for fields of the object itself`,
			spec.Clip(subresource))
	}
	if len(fields) == 0 {
		return errors.New("fields: there are none; leave the part out to give them back")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch {
		case name == "apiVersion", name == "kind":
			return fmt.Errorf("fields: %s belongs to ref", name)
		case name == "status" && subresource != "status":
			return errors.New(`fields: status can only be written with subresource = "status"`)
		case subresource == "status" && name != "status":
			return fmt.Errorf("fields: %s cannot be written to the subresource %s", name, subresource)
		}
	}
	v, given := fields["metadata"]
	if !given {
		return nil
	}
	metadata, is := v.(map[string]any)
	if !is {
		return errors.New("fields: metadata is no dict")
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if name != "labels" && name != "annotations" {
			return fmt.Errorf("fields: metadata.%s cannot be set, only labels and annotations", name)
		}
	}
	return nil
}
