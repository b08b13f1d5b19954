package webhook

import (
	"context"
	"errors"

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
// served without any. A failure does not keep it from the rest; it may be called
// again. done is told of each object.
func Detach(ctx context.Context, client *cluster.Client, instance string, done func(Detached)) error {
	var errs []error
	write := func(w effect.Write, what string) {
		if _, err := client.Write(ctx, fieldManager, w); err != nil {
			errs = append(errs, err)
			return
		}
		done(Detached{w.Ref, what})
	}
	for _, kind := range []string{kindValidating, kindMutating} {
		found, err := client.List(ctx, registration, kind, nil, instanceSelector(instance), "")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, obj := range found {
			write(effect.Write{Kind: effect.WriteDelete, Ref: refOf(kind, obj)}, "deleted")
		}
	}
	names, err := converted(ctx, client, instance)
	if err != nil {
		errs = append(errs, err)
	}
	for _, name := range names {
		write(effect.Write{
			Kind: effect.WritePatch, Ref: effect.Ref{APIVersion: definitions, Kind: kindDefinition, Name: name},
			Patch: &effect.Patch{Type: effect.PatchMerge, Body: map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{annotationConversion: nil}},
				"spec":     map[string]any{"conversion": map[string]any{"strategy": "None", "webhook": nil}},
			}},
		}, "conversion strategy None")
	}
	return errors.Join(errs...)
}

// converted are the names of the definitions that an instance converts. They are read
// one by one: definitions are large.
func converted(ctx context.Context, client *cluster.Client, instance string) ([]string, error) {
	mapping := cluster.Mapping{GVR: schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, Kind: kindDefinition}
	var names []string
	_, err := client.Each(ctx, mapping, "", metav1.ListOptions{Limit: 100}, func(obj map[string]any) error {
		meta, _ := obj["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if name, _ := meta["name"].(string); annotations[annotationConversion] == instance {
			names = append(names, name)
		}
		return nil
	})
	return names, client.Explain(err, "list", mapping, "")
}
