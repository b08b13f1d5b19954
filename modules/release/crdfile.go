package release

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/starling-operator/starling/runtime/bounded"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/message"
)

// CheckCRDs says what is wrong with one file of crds/, as far as it shows without a cluster; for people, with the
// file's path. It returns the sums of its definitions by their names: another sum is another definition.
func CheckCRDs(f File) (sums map[string][sha256.Size]byte, err error) {
	found, err := parseCRDs(f)
	sums = map[string][sha256.Size]byte{}
	for _, c := range found {
		sums[c.object.GetName()] = c.sum
	}
	return sums, err
}

// parseCRDs reads the documents of one file.
func parseCRDs(f File) ([]crd, error) {
	docs, err := bounded.YAMLDocuments(f.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", f.Path, tidy(err.Error()))
	}
	var found []crd
	for i, doc := range docs {
		data, err := yaml.YAMLToJSONStrict(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %s", f.Path, i+1, tidy(message.YAML(err.Error(), doc)))
		}
		if string(data) == "null" { // comments only
			continue
		}
		c, err := parseCRD(data)
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", f.Path, i+1, err)
		}
		c.file = f.Path
		found = append(found, c)
	}
	return found, nil
}

func parseCRD(data []byte) (crd, error) {
	object := &unstructured.Unstructured{}
	var head metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(data, &head); err != nil {
		return crd{}, errors.New("not an object of Kubernetes")
	}
	if head.Kind != "CustomResourceDefinition" {
		return crd{}, fmt.Errorf("kind is %q; crds/ holds CustomResourceDefinitions only, other objects belong to the chart's templates", head.Kind)
	}
	if head.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
		return crd{}, fmt.Errorf("apiVersion is %q, not %s", head.APIVersion, apiextensionsv1.SchemeGroupVersion)
	}
	if head.Name == "" {
		return crd{}, errors.New("metadata.name is missing")
	}
	if err := object.UnmarshalJSON(data); err != nil {
		return crd{}, errors.New("not an object of Kubernetes")
	}
	unstructured.RemoveNestedField(object.Object, "status") // generators leave one behind
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	c := crd{object: object, sum: sha256.Sum256(data)}
	c.group, _, _ = unstructured.NestedString(object.Object, "spec", "group")
	if effect.TakesModules(object.Object) {
		return crd{}, fmt.Errorf("%s has a name of modules.starling.dev, which belongs to Starling itself: leave it out, or rename it", head.Name)
	}
	c.kind, _, _ = unstructured.NestedString(object.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			if name, ok := v["name"].(string); ok {
				c.versions = append(c.versions, name)
			}
		}
	}
	return c, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
