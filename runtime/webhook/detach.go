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

// Detach takes away what makes the API server ask an instance, by its label: webhook
// configurations, and the conversions of CustomResourceDefinitions, which are then
// converted as before, or served without. A failure does not keep it from the rest; it may be called
// again. done is told of each object.
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
		before := names[name]
		what, conversion := "conversion strategy None", map[string]any{"strategy": "None"}
		if before != "" && json.Unmarshal([]byte(before), &conversion) == nil {
			what = "converted as before"
		}
		pointer := func(annotation string) string {
			return "/metadata/annotations/" + strings.ReplaceAll(annotation, "/", "~1")
		}
		body := []any{
			map[string]any{"op": "test", "path": pointer(annotationConversion), "value": instance},
			map[string]any{"op": "add", "path": "/spec/conversion", "value": conversion},
			map[string]any{"op": "remove", "path": pointer(annotationConversion)},
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

// converted are the names of the definitions that an instance converts, with the conversion that was there before. They
// are read one by one: definitions are large.
func converted(ctx context.Context, client *cluster.Client, instance string) (map[string]string, error) {
	mapping := cluster.Mapping{GVR: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: kindDefinition}
	names := map[string]string{}
	_, err := client.Each(ctx, mapping, "", metav1.ListOptions{Limit: 100}, func(obj map[string]any) error {
		meta, _ := obj["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if name, _ := meta["name"].(string); annotations[annotationConversion] == instance {
			names[name], _ = annotations[annotationBefore].(string)
		}
		return nil
	})
	return names, client.Explain(err, "list", mapping, "")
}
