package store

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

// metaOf returns an object's metadata, nil when it has none.
func metaOf(obj map[string]any) map[string]any {
	m, _ := obj["metadata"].(map[string]any)
	return m
}

func metaString(obj map[string]any, key string) string {
	v, _ := metaOf(obj)[key].(string)
	return v
}

func nameOf(obj map[string]any) string      { return metaString(obj, "name") }
func namespaceOf(obj map[string]any) string { return metaString(obj, "namespace") }
func uidOf(obj map[string]any) string       { return metaString(obj, "uid") }
func versionOf(obj map[string]any) string   { return metaString(obj, "resourceVersion") }
func deleting(obj map[string]any) bool      { return metaOf(obj)["deletionTimestamp"] != nil }

// withMeta returns a copy of obj with one field of its metadata set, or for nil
// removed. The rest is shared.
func withMeta(obj map[string]any, key string, v any) map[string]any {
	return object.With(obj, []string{"metadata", key}, v)
}

// setMeta sets a field of the metadata of an object that is ours to change.
func setMeta(obj map[string]any, key string, v any) {
	meta := metaOf(obj)
	if meta == nil {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	if v == nil {
		delete(meta, key)
	} else {
		meta[key] = v
	}
}

// copyMeta gives obj the field that old has, or has not.
func copyMeta(obj, old map[string]any, key string) { setMeta(obj, key, metaOf(old)[key]) }

func finalizersOf(obj map[string]any) []string {
	list, _ := metaOf(obj)["finalizers"].([]any)
	out := make([]string, 0, len(list))
	for _, f := range list {
		if text, ok := f.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func setFinalizers(obj map[string]any, list []string) map[string]any {
	if len(list) == 0 {
		return withMeta(obj, "finalizers", nil)
	}
	out := make([]any, len(list))
	for i, f := range list {
		out[i] = f
	}
	return withMeta(obj, "finalizers", out)
}

func generationOf(obj map[string]any) int64 {
	n, _ := metaOf(obj)["generation"].(int64)
	return n
}

// typedMeta reads the metadata; the error names a field that has the wrong type.
func typedMeta(obj map[string]any) (*metav1.ObjectMeta, error) {
	out := &metav1.ObjectMeta{}
	if metaOf(obj) == nil {
		return out, nil
	}
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(metaOf(obj), out)
}

// nested returns what is at a path, nil when it is not there.
func nested(obj map[string]any, path ...string) any { return effect.At[any](obj, path...) }

// setNested sets what is at a path of an object that is ours to change.
func setNested(obj map[string]any, v any, path ...string) { object.Put(obj, path, v) }

// without leaves a field out of a copy of obj, when it is told to.
func without(obj map[string]any, key string, leave bool) map[string]any {
	if !leave {
		return obj
	}
	out := maps.Clone(obj)
	delete(out, key)
	return out
}

// withField returns a copy of obj with the field that from has, or has not.
func withField(obj map[string]any, key string, from map[string]any) map[string]any {
	return object.With(obj, []string{key}, from[key])
}
