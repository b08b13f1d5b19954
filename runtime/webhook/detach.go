package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/starling-operator/starling/runtime/cluster"
	"github.com/starling-operator/starling/runtime/effect"
)

// Detached is one object that [Detach] has changed.
type Detached struct {
	Ref effect.Ref
	// Done says what was done: "deleted".
	Done string
}

// Detach takes away what makes the API server ask an instance, by its label: webhook configurations, and the
// conversions of CustomResourceDefinitions, which are then converted as before, or served without. A failure does not
// keep it from the rest; it may be called again. done is told of each object.
func Detach(ctx context.Context, client *cluster.Client, instance string, done func(Detached)) error {
	var errs []error
	note := func(ref effect.Ref, what string, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		done(Detached{ref, what})
	}
	for _, kind := range []string{kindValidating, kindMutating} {
		found, err := client.List(ctx, registration, kind, nil, instanceSelector(instance), "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, obj := range found {
			ref := refOf(kind, obj)
			_, left, err := client.Delete(ctx, fieldManager, ref, obj, func(live map[string]any) bool { return labelOf(live, effect.InstanceLabel) == instance })
			if !left {
				note(ref, "deleted", err)
			}
		}
	}
	names, err := converted(ctx, client, instance)
	if err != nil {
		errs = append(errs, err)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before := effect.At[string](names[name], "metadata", "annotations", annotationBefore)
		spec, _ := names[name]["spec"].(map[string]any)
		what, conversion := "conversion strategy None", any(map[string]any{"strategy": "None"})
		switch was := map[string]any(nil); {
		case ofOthers(names[name]): // who have written it since
			what, conversion = "converted by others already", spec["conversion"]
		case json.Unmarshal([]byte(before), &was) == nil && was != nil:
			what, conversion = "converted as before", was
		}
		pointer := func(annotation string) string {
			return "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
		}
		body := []any{
			map[string]any{"op": "test", "path": pointer(effect.ConvertedByAnnotation), "value": converter(names[name])},
			map[string]any{"op": "test", "path": "/spec/conversion", "value": spec["conversion"]},
			map[string]any{"op": "add", "path": "/spec/conversion", "value": conversion},
			map[string]any{"op": "remove", "path": pointer(effect.ConvertedByAnnotation)},
		}
		if before != "" {
			body = append(body, map[string]any{"op": "remove", "path": pointer(annotationBefore)})
		}
		ref := effect.Ref{APIVersion: definitions, Kind: kindDefinition, Name: name}
		_, err := client.Write(ctx, fieldManager, effect.Write{Kind: effect.WritePatch, Ref: ref, Patch: &effect.Patch{Type: effect.PatchJSON, Body: body}})
		note(ref, what, err)
	}
	return errors.Join(errs...)
}

// converted are the definitions that an instance converts, by name: of each its annotations, who has written it, and its
// conversion. They are read one by one: definitions are large.
func converted(ctx context.Context, client *cluster.Client, instance string) (map[string]map[string]any, error) {
	mapping := cluster.Mapping{GVR: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: kindDefinition}
	found := map[string]map[string]any{}
	_, err := client.Each(ctx, mapping, "", metav1.ListOptions{Limit: 100}, func(obj map[string]any) error {
		meta, _ := obj["metadata"].(map[string]any)
		spec, _ := obj["spec"].(map[string]any)
		if name, _ := meta["name"].(string); strings.TrimSuffix(converter(obj), effect.GivenBack) == instance {
			found[name] = map[string]any{"metadata": map[string]any{"annotations": meta["annotations"], "managedFields": meta["managedFields"]}, "spec": map[string]any{"conversion": spec["conversion"]}}
		}
		return nil
	})
	return found, client.Explain(err, "list", mapping, "")
}

// converter is the mark of the instance that converts a definition.
func converter(definition map[string]any) string {
	return effect.At[string](definition, "metadata", "annotations", effect.ConvertedByAnnotation)
}

// ofOthers says whether somebody else converts a definition: at a path that is not ours, or where they have written
// since we did. A definition that does not say who has written our mark, as after a restore, has the path to go by.
func ofOthers(definition map[string]any) bool {
	conversion := effect.At[map[string]any](definition, "spec", "conversion")
	client := effect.At[map[string]any](conversion, "webhook", "clientConfig")
	at := effect.At[string](client, "url") + effect.At[string](client, "service", "path")
	marked, wrote := false, false
	for _, e := range effect.At[[]any](definition, "metadata", "managedFields") {
		if e, _ := e.(map[string]any); e["manager"] == fieldManager {
			fields := effect.At[map[string]any](e, "fieldsV1")
			marked = marked || effect.At[any](fields, "f:metadata", "f:annotations", "f:"+effect.ConvertedByAnnotation) != nil
			wrote = wrote || holdsFields(effect.At[map[string]any](fields, "f:spec", "f:conversion", "f:webhook", "f:clientConfig"), client)
		}
	}
	return conversion["strategy"] == "Webhook" && (!strings.Contains(at, "/convert/") || marked && !wrote)
}

// holdsFields says whether fields are all of obj, but for the certificates, which others may put in.
func holdsFields(fields, obj map[string]any) bool {
	for key, v := range obj {
		below, deep := v.(map[string]any)
		if key != "caBundle" && (fields["f:"+key] == nil || deep && !holdsFields(effect.At[map[string]any](fields, "f:"+key), below)) {
			return false
		}
	}
	return true
}
