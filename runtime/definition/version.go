// Package definition knows what a CustomResourceDefinition says of its objects, as the API server does.
package definition

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Version is what one version of a definition says of its objects; nil, for a kind without a schema, takes all of
// them.
type Version struct {
	Structural *structural.Structural
	// Scale is its subresource, or nil.
	Scale     *apiextensionsv1.CustomResourceSubresourceScale
	preserve  bool // unknown fields stay
	validator validation.SchemaValidator
	status    validation.SchemaValidator // of the status alone
	rules     *cel.Validator
}

// Unfit is the error about a schema that the API server refuses.
type Unfit struct{ Errs field.ErrorList }

// Error implements error.
func (e *Unfit) Error() string { return e.Errs.ToAggregate().Error() }

// New reads one version of a definition. An error is an [Unfit], or in the words of a library.
func New(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*Version, error) {
	s, props, err := Structural(v.Schema)
	if err != nil {
		return nil, err
	}
	path := field.NewPath("spec", "validation", "openAPIV3Schema") // as the server calls the only one
	if len(crd.Spec.Versions) > 1 {
		at := slices.IndexFunc(crd.Spec.Versions, func(o apiextensionsv1.CustomResourceDefinitionVersion) bool { return o.Name == v.Name })
		path = field.NewPath("spec", "versions").Index(at).Child("schema", "openAPIV3Schema")
	}
	if errs := structural.ValidateStructural(path, s); len(errs) > 0 {
		return nil, &Unfit{errs}
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	out := &Version{Structural: s, preserve: crd.Spec.PreserveUnknownFields, validator: validator}
	if status, ok := props.Properties["status"]; ok {
		if out.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return nil, err
		}
	}
	// Compiling the rules costs milliseconds; most schemas have none.
	out.rules = cel.NewValidator(s, true, celconfig.PerCallLimit)
	if v.Subresources != nil {
		out.Scale = v.Subresources.Scale
	}
	return out, nil
}

// Structural is the schema of a version in the two forms that libraries take.
func Structural(v *apiextensionsv1.CustomResourceValidation) (*structural.Structural, *apiextensions.JSONSchemaProps, error) {
	if v == nil || v.OpenAPIV3Schema == nil {
		return nil, nil, errors.New("there is no schema")
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.OpenAPIV3Schema, props, nil); err != nil {
		return nil, nil, err
	}
	s, err := structural.NewStructural(props)
	return s, props, err
}

// Decode prunes an object and sets its defaults, in place. It says which fields are not known.
func (v *Version) Decode(obj map[string]any, applied bool) (unknown []string, err error) {
	if unknown, err = v.Coerce(obj, applied); err != nil {
		return nil, err
	}
	if v != nil {
		defaulting.Default(obj, v.Structural)
	}
	for i := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", unknown[i])
	}
	return unknown, nil
}

// Coerce takes out of an object, in place, what its schema does not know, and names that. Nulls that the schema
// does not allow go, but for those of an apply, which is refused for them.
func (v *Version) Coerce(obj map[string]any, applied bool) (unknown []string, err error) {
	apiVersion, kind := obj["apiVersion"], obj["kind"]
	meta, found, fields, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, fields...)
	if v != nil && !v.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(obj, v.Structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		if !applied {
			defaulting.PruneNonNullableNullsWithoutDefaults(obj, v.Structural)
		}
	}
	if v != nil {
		fieldErr, more := objectmeta.CoerceWithOptions(nil, obj, v.Structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
		if fieldErr != nil {
			return nil, fieldErr
		}
		unknown = append(unknown, more...)
	}
	obj["apiVersion"], obj["kind"] = apiVersion, kind
	if found {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// Validate holds an object against the schema; old is nil for a new
// one, statusOnly stands for a write to the status.
func (v *Version) Validate(obj, old map[string]any, statusOnly bool) field.ErrorList {
	ctx := context.Background()
	var errs field.ErrorList
	switch {
	case old == nil:
		errs = append(errs, validation.ValidateCustomResource(nil, obj, v.validator)...)
	case statusOnly:
		if status, ok := obj["status"]; ok && v.status != nil {
			errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old["status"], v.status)...)
		}
	default:
		ratchet := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.Structural})
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, v.validator, validation.WithRatcheting(ratchet))...)
	}
	// The validator goes through maps in no order.
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	errs = append(errs, v.validateScale(obj, statusOnly)...)
	if !statusOnly {
		errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.Structural, false)...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, v.Structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.Structural, obj)...)
	}
	if v.rules == nil {
		return errs
	}
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"))
		}
	}
	var options []cel.Option
	var before any
	if old != nil {
		before = old
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.Structural})))
	}
	broken, _ := v.rules.Validate(ctx, nil, v.Structural, obj, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}

// validateScale checks the fields that the scale subresource shows.
func (v *Version) validateScale(obj map[string]any, statusOnly bool) field.ErrorList {
	if v.Scale == nil {
		return nil
	}
	var errs field.ErrorList
	number := func(path string) {
		n, _, err := unstructured.NestedInt64(obj, SplitPath(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(field.NewPath(path), n, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if !statusOnly {
		number(v.Scale.SpecReplicasPath)
	}
	number(v.Scale.StatusReplicasPath)
	return errs
}

// SplitPath reads the simple JSON paths of CRDs: ".spec.replicas".
func SplitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
