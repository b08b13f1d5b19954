package sim

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/starling-operator/starling/modules/values"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/sim/store"
)

// People and other controllers change the cluster by these functions. Injected errors
// spare them.

// user is the field manager of what people apply.
const user = "kubectl"

// target is where an object is; a kind that nobody serves is served from now on, as far
// as it is made up for a test.
func (w *World) target(ref effect.Ref, serve bool) (store.Target, store.Kind, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return store.Target{}, store.Kind{}, fmt.Errorf("apiVersion: %w", err)
	}
	k, ok := w.store.KindOf(gv.WithKind(ref.Kind))
	if !ok && !serve {
		return store.Target{}, k, fmt.Errorf("kind %s of %s is not served; apply its CRD first", ref.Kind, ref.APIVersion)
	}
	if !ok {
		plural, singular := metaGuess(gv.WithKind(ref.Kind))
		w.store.Serve(store.Kind{Group: gv.Group, Version: gv.Version, Kind: ref.Kind, Plural: plural, Singular: singular, Namespaced: ref.Namespace != "", Status: true})
		if k, ok = w.store.KindOf(gv.WithKind(ref.Kind)); !ok {
			return store.Target{}, k, fmt.Errorf("kind %s of %s cannot be served", ref.Kind, ref.APIVersion)
		}
	}
	t := store.Target{GVR: k.GVR(), Name: ref.Name, Spared: true}
	if k.Namespaced {
		if t.Namespace = ref.Namespace; t.Namespace == "" {
			t.Namespace = "default"
		}
	}
	return t, k, nil
}

// Apply applies an object, its status too.
func (w *World) Apply(obj map[string]any) error {
	ref := effect.RefOf(obj)
	t, k, err := w.target(ref, true)
	if err != nil {
		return err
	}
	status, has := obj["status"]
	if k.Namespaced && ref.Namespace == "" {
		obj = withNamespace(obj, t.Namespace)
	}
	if err := w.apply(t, obj); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	if !has || !k.Status {
		return nil
	}
	t.Subresource = "status"
	if err := w.apply(t, map[string]any{
		"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": map[string]any{"name": t.Name, "namespace": t.Namespace}, "status": status,
	}); err != nil {
		return fmt.Errorf("%s: status: %w", ref, err)
	}
	return nil
}

func (w *World) apply(t store.Target, obj map[string]any) error {
	data, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	_, err = w.store.Patch(t, types.ApplyPatchType, data, store.WriteOptions{Manager: user, Force: true})
	return err
}

// Patch changes an object by a merge patch; of its status, too.
func (w *World) Patch(ref effect.Ref, merge map[string]any) error {
	t, k, err := w.target(ref, false)
	if err != nil {
		return err
	}
	parts := map[string]map[string]any{"": {}, "status": {}}
	for key, v := range merge {
		if key == "status" && k.Status {
			parts["status"][key] = v
		} else {
			parts[""][key] = v
		}
	}
	for _, sub := range []string{"", "status"} {
		if len(parts[sub]) == 0 {
			continue
		}
		data, err := json.Marshal(parts[sub])
		if err != nil {
			return err
		}
		t.Subresource = sub
		if _, err := w.store.Patch(t, types.MergePatchType, data, store.WriteOptions{Manager: user}); err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
	}
	return nil
}

// Delete deletes an object.
func (w *World) Delete(ref effect.Ref) error {
	t, _, err := w.target(ref, false)
	if err != nil {
		return err
	}
	if _, err := w.store.Delete(t, store.DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	return nil
}

// UserConfig is what the user's ConfigMap says; empty without one.
func (w *World) UserConfig() (map[string]string, error) {
	obj, err := w.Get(w.configRef())
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	data, _ := obj["data"].(map[string]any)
	for k, v := range data {
		out[k], _ = v.(string)
	}
	return out, nil
}

// Configure replaces all that the user's ConfigMap says.
func (w *World) Configure(data map[string]string) error {
	ref := w.configRef()
	old, err := w.Get(ref)
	if err != nil {
		return err
	}
	all := map[string]any{}
	for k, v := range data {
		all[k] = v
	}
	obj := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": ref.Name, "namespace": ref.Namespace}, "data": all}
	if old == nil {
		return w.Apply(obj)
	}
	changes := maps.Clone(all)
	had, _ := old["data"].(map[string]any)
	for k := range had {
		if _, stays := all[k]; !stays {
			changes[k] = nil
		}
	}
	return w.Patch(ref, map[string]any{"data": changes})
}

// SwitchOn has modules work that neither the user nor the tree's values.yaml has
// switched on or off.
func (w *World) SwitchOn(modules ...string) error {
	config, err := w.UserConfig()
	if err != nil {
		return err
	}
	before := len(config)
	for _, name := range modules {
		m := w.o.Generation.Modules[name]
		if m == nil {
			continue
		}
		key := values.EnabledKey(m.Key)
		if _, said := w.o.Generation.Tree.Values[key]; !said && config[key] == "" {
			config[key] = "true"
		}
	}
	if len(config) == before {
		return nil
	}
	return w.Configure(config)
}

func (w *World) configRef() effect.Ref {
	return effect.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.o.Namespace, Name: w.o.Name}
}

func withNamespace(obj map[string]any, namespace string) map[string]any {
	out, of := map[string]any{}, map[string]any{}
	maps.Copy(out, obj)
	old, _ := obj["metadata"].(map[string]any)
	maps.Copy(of, old)
	of["namespace"] = namespace
	out["metadata"] = of
	return out
}

// metaGuess is the plural and the singular that a kind most likely has.
func metaGuess(gvk schema.GroupVersionKind) (plural, singular string) {
	p, s := meta.UnsafeGuessKindToResource(gvk)
	return p.Resource, s.Resource
}
