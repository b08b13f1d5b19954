package chart

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// CheckCRDs says what is wrong with one file of crds/, as far as it shows without a cluster; for people, with the
// file's path. It returns the sums of its definitions by their names: another sum is another definition.
func CheckCRDs(f File) (sums map[string][sha256.Size]byte, err error) {
	found, err := Definitions(f)
	sums = map[string][sha256.Size]byte{}
	for _, c := range found {
		sums[c.Object.GetName()] = c.Sum
	}
	return sums, err
}

// Definition is a CustomResourceDefinition of a file of crds/.
type Definition struct {
	Object *unstructured.Unstructured
	// File is its path.
	File        string
	Group, Kind string
	// Versions are the served ones.
	Versions []string
	Sum      [sha256.Size]byte
}

// Definitions reads the documents of one file.
func Definitions(f File) ([]Definition, error) {
	docs, err := bounded.YAMLDocuments(f.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", f.Path, Tidy(err.Error()))
	}
	var found []Definition
	for i, doc := range docs {
		data, err := bounded.YAMLToJSON(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %s", f.Path, i+1, Tidy(message.YAML(err.Error(), doc)))
		}
		if string(data) == "null" { // comments only
			continue
		}
		c, err := DefinitionOf(data)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", f.Path, i+1, err)
		}
		c.File = f.Path
		found = append(found, c)
	}
	return found, nil
}

// DefinitionOf reads one document, as JSON.
func DefinitionOf(data []byte) (Definition, error) {
	object := &unstructured.Unstructured{}
	var head struct {
		metav1.TypeMeta
		Metadata struct{ Name string }
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Definition{}, errors.New("not an object of Kubernetes")
	}
	if head.Kind != "CustomResourceDefinition" {
		return Definition{}, fmt.Errorf("kind is %q; crds/ holds CustomResourceDefinitions only, other objects belong to the chart's templates", head.Kind)
	}
	if head.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return Definition{}, fmt.Errorf("apiVersion is %q, not %s", head.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	if head.Metadata.Name == "" {
		return Definition{}, errors.New("metadata.name is missing")
	}
	if err := object.UnmarshalJSON(data); err != nil {
		return Definition{}, errors.New("not an object of Kubernetes")
	}
	unstructured.RemoveNestedField(object.Object, "status") // generators leave one behind
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	c := Definition{Object: object, Sum: sha256.Sum256(data)}
	c.Group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
	if effect.TakesModules(object.Object) {
		return Definition{}, fmt.Errorf("%s has a name of modules.starling.dev, which belongs to Starling itself: leave it out, or rename it", head.Metadata.Name)
	}
	c.Kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			if name, ok := v["name"].(string); ok {
				c.Versions = append(c.Versions, name)
			}
		}
	}
	return c, nil
}
