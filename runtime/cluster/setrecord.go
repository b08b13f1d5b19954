package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/starling-operator/starling/runtime/effect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// SetType is the type of the Secrets that record where sets have objects.
	SetType = "starling.dev/set"
	// placesKey holds the places of a hook.
	placesKey = "places"
)

// readRecords takes in what earlier processes have recorded, once.
func (w *Writer) readRecords(ctx context.Context) error {
	w.reading.Lock()
	defer w.reading.Unlock()
	w.mu.Lock()
	read := w.hooks != nil
	w.mu.Unlock()
	if read {
		return nil
	}
	hooks := map[string]*hookSets{}
	_, err := w.o.Client.Each(ctx, secrets, w.o.Namespace, w.records(""), func(obj map[string]any) error {
		if of := textOf(obj, "annotations", setAnnotation); effect.RefOf(obj) == w.recordOf(of) {
			hooks[of] = w.recorded(of, obj)
		}
		return nil
	})
	if err != nil {
		return w.o.Client.Explain(err, "list", secrets, w.o.Namespace)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hooks = hooks
	return nil
}

// recorded is what a record says of the sets of a hook.
func (w *Writer) recorded(manager string, obj map[string]any) *hookSets {
	_, keeps := effect.At[map[string]any](obj, "metadata", "annotations")[keepAnnotation]
	h := w.newHook(manager)
	h.goes, h.untidy = !keeps, true
	var places []effect.Ref
	text, err := base64.StdEncoding.DecodeString(effect.At[string](obj, "data", placesKey))
	if err == nil {
		err = json.Unmarshal(text, &places)
	}
	if err != nil {
		h.broken = fmt.Errorf("%s, which records where sets of objects are, cannot be read: delete it, and look for objects that the hook has made and does not list any more: they carry the label %s=%s", effect.RefOf(obj), hookLabel, w.hookID(manager))
	}
	for _, p := range places {
		h.places[p] = placeUnread
	}
	return h
}

// newHook returns the sets of a hook without a record.
func (w *Writer) newHook(manager string) *hookSets {
	return &hookSets{writer: w, manager: manager, sets: map[string]*set{}, places: map[effect.Ref]standing{}, certain: true}
}

// setsOf returns what is known of the sets of a hook; release must be called. A hook of which
// nothing is recorded is not kept in memory.
func (w *Writer) setsOf(ctx context.Context, manager string) (h *hookSets, release func(), err error) {
	if err := w.readRecords(ctx); err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hooks[manager] == nil {
		w.hooks[manager] = w.newHook(manager)
	}
	h = w.hooks[manager]
	h.users++
	return h, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if h.users--; h.users == 0 && len(h.sets)+len(h.places) == 0 && h.certain && h.broken == nil {
			delete(w.hooks, manager)
		}
	}, nil
}

func (w *Writer) recordOf(manager string) effect.Ref {
	return effect.Ref{APIVersion: "v1", Kind: "Secret", Namespace: w.o.Namespace, Name: w.o.Name + "-set-of-" + w.hookID(manager)}
}

// writeRecord makes places all that is recorded of a hook; none delete the record.
func (w *Writer) writeRecord(ctx context.Context, manager string, places []effect.Ref, keeps bool) error {
	ref := w.recordOf(manager)
	if len(places) == 0 {
		return w.deleteRecord(ctx, ref)
	}
	text, err := json.Marshal(places)
	if err != nil {
		return err
	}
	if len(text) > valueLimit {
		return fmt.Errorf("the sets of this hook have objects in %d places, which are too many to be recorded: let it list %s in all namespaces (starling rbac)", len(places), places[0].Kind)
	}
	annotations := map[string]any{setAnnotation: manager}
	if keeps {
		annotations[keepAnnotation] = "true"
	}
	_, err = w.o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteApply, Ref: ref, Force: true, Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": SetType,
		"metadata": map[string]any{
			"name": ref.Name, "namespace": ref.Namespace,
			"labels":      map[string]any{effect.InstanceLabel: w.o.Instance},
			"annotations": annotations,
		},
		"data": map[string]any{placesKey: base64.StdEncoding.EncodeToString(text)},
	}})
	return err
}

// deleteRecord deletes a record; a Secret of its name that somebody else has made stays.
func (w *Writer) deleteRecord(ctx context.Context, ref effect.Ref) error {
	_, err := w.o.Client.Each(ctx, secrets, ref.Namespace, w.records("metadata.name="+ref.Name+","), func(obj map[string]any) error {
		_, err := w.o.Client.Write(ctx, "", effect.Write{Kind: effect.WriteDelete, Ref: ref, Unchanged: &effect.Unchanged{UID: uidOf(obj)}})
		return err
	})
	return w.o.Client.Explain(err, "list", secrets, ref.Namespace)
}

var secrets = Mapping{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}

// records selects records of this instance.
func (w *Writer) records(fields string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: effect.InstanceLabel + "=" + w.o.Instance, FieldSelector: fields + "type=" + SetType}
}

// SetManagers returns the field managers of the hooks whose sets go with them, sorted.
func (w *Writer) SetManagers(ctx context.Context) ([]string, error) {
	if err := w.readRecords(ctx); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for manager, h := range w.hooks {
		if h.goes {
			out = append(out, manager)
		}
	}
	slices.Sort(out)
	return out, nil
}
