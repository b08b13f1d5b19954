package store

import (
	"maps"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/starling-operator/starling/runtime/definition"
)

const (
	objectMetaModel = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	crdModel        = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
	modelRefs       = "#/components/schemas/"
	kindsExtension  = "x-kubernetes-group-version-kind"
)

// crdTypes holds the OpenAPI models that server-side apply needs for CRDs and for
// the metadata of their objects.
type crdTypes struct {
	converter managedfields.TypeConverter // of CRDs themselves
	metadata  map[string]*spec.Schema     // models of ObjectMeta and what it refers to
}

func newCRDTypes() *crdTypes {
	definitions := apiextensionsopenapi.GetOpenAPIDefinitions(func(model string) spec.Ref {
		return spec.MustCreateRef(modelRefs + model)
	})
	t := &crdTypes{metadata: map[string]*spec.Schema{}}
	models := map[string]*spec.Schema{}
	for name, def := range definitions {
		models[name] = &def.Schema
		if strings.HasPrefix(name, "io.k8s.apimachinery.pkg.apis.meta.v1.") {
			t.metadata[name] = &def.Schema
		}
	}
	if crd := models[crdModel]; crd != nil {
		crd.AddExtension(kindsExtension, []any{map[string]any{"group": crdResource.Group, "version": crdGVR.Version, "kind": "CustomResourceDefinition"}})
	}
	converter, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		converter = managedfields.NewDeducedTypeConverter()
	}
	t.converter = converter
	return t
}

// crdConverter returns the types of a CRD for server-side apply, all versions: the
// fields that somebody owns are kept in the version he wrote.
func crdConverter(crd *apiextensionsv1.CustomResourceDefinition) func() managedfields.TypeConverter {
	return sync.OnceValue(func() managedfields.TypeConverter {
		models := maps.Clone(definitionTypes().metadata)
		for _, v := range crd.Spec.Versions {
			s, _, err := definition.Structural(v.Schema)
			if err != nil {
				continue
			}
			root := s.ToKubeOpenAPI()
			if root.Properties == nil {
				root.Properties = map[string]spec.Schema{}
			}
			root.Properties["metadata"] = *spec.RefSchema(modelRefs + objectMetaModel)
			root.Properties["apiVersion"] = *spec.StringProperty()
			root.Properties["kind"] = *spec.StringProperty()
			root.AddExtension(kindsExtension, []any{map[string]any{"group": crd.Spec.Group, "version": v.Name, "kind": crd.Spec.Names.Kind}})
			models[crd.Spec.Group+"."+v.Name+"."+crd.Spec.Names.Kind] = root
		}
		converter, err := managedfields.NewTypeConverter(models, crd.Spec.PreserveUnknownFields)
		if err != nil {
			return managedfields.NewDeducedTypeConverter()
		}
		return converter
	})
}
