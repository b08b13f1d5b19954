package chart

import (
	"cmp"
	"encoding/base64"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/effect"
	plain "github.com/starling-operator/starling/runtime/object"
)

// Decode reads the objects of one document, those of lists too.
func Decode(doc string) (out []*unstructured.Unstructured, err error) {
	text, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return nil, err
	}
	var decoded map[string]any
	if err := json.Unmarshal(text, &decoded); err != nil {
		return nil, err
	}
	objects, err := plain.Objects(decoded)
	for _, one := range objects {
		u := &unstructured.Unstructured{Object: one}
		if out = append(out, u); u.GetKind() == "" {
			err = cmp.Or(err, errors.New("an object has no kind"))
		}
	}
	return out, err
}

// Applied is an object as it is applied: each key of a list once, and what a Secret has in stringData as data, as
// the API server stores it. Values that are no texts stay in stringData, so that the API server refuses them. obj is
// left as it is.
func Applied(obj map[string]any) map[string]any {
	obj, _ = plain.OnePerKey(obj, nil) // of what it says, [KeyFaults] tells
	texts, _ := obj["stringData"].(map[string]any)
	if obj["kind"] != "Secret" || obj["apiVersion"] != "v1" || texts == nil {
		return obj
	}
	out := maps.Clone(obj)
	delete(out, "stringData")
	data, refused := effect.Cloned(out, "data"), map[string]any{}
	for key, v := range texts {
		if text, is := v.(string); is {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		} else if v != nil {
			refused[key] = v
		}
	}
	if len(refused) > 0 {
		out["stringData"] = refused
	}
	return out
}
