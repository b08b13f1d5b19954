package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

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

// decodeCustom prunes an object of a CRD and sets its defaults, in place. It says which fields are not known.
func decodeCustom(v *crdVersion, obj map[string]any, applied bool) (unknown []string, err error) {
	if unknown, err = coerce(v, obj, applied); err != nil {
		return nil, err
	}
	if v != nil {
		defaulting.Default(obj, v.structural)
	}
	for i := range unknown {
		unknown[i] = fmt.Sprintf("unknown field %q", unknown[i])
	}
	return unknown, nil
}

// coerce takes out of an object of a CRD, in place, what its schema does not know, and names that. Nulls that the schema
// does not allow go, but for those of an apply, which is refused for them.
func coerce(v *crdVersion, obj map[string]any, applied bool) (unknown []string, err error) {
	apiVersion, kind := obj["apiVersion"], obj["kind"]
	meta, found, fields, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, fields...)
	if v != nil && !v.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(obj, v.structural, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		if !applied {
			defaulting.PruneNonNullableNullsWithoutDefaults(obj, v.structural)
		}
	}
	if v != nil {
		fieldErr, more := objectmeta.CoerceWithOptions(nil, obj, v.structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
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

// validateCustom holds an object against its CRD's schema; old is nil for a new
// one, statusOnly stands for a write to the status.
func validateCustom(v *crdVersion, obj, old map[string]any, statusOnly bool) field.ErrorList {
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
		ratchet := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.structural})
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, v.validator, validation.WithRatcheting(ratchet))...)
	}
	// The validator goes through maps in no order.
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	errs = append(errs, validateScale(v, obj, statusOnly)...)
	if !statusOnly {
		errs = append(errs, objectmeta.Validate(ctx, nil, obj, v.structural, false)...)
	}
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, v.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, obj)...)
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
		options = append(options, cel.WithRatcheting(common.NewCorrelatedObject(obj, old, &model.Structural{Structural: v.structural})))
	}
	broken, _ := v.rules.Validate(ctx, nil, v.structural, obj, before, celconfig.RuntimeCELCostBudget, options...)
	return append(errs, broken...)
}

// validateScale checks the fields that the scale subresource shows.
func validateScale(v *crdVersion, obj map[string]any, statusOnly bool) field.ErrorList {
	if v.scale == nil {
		return nil
	}
	var errs field.ErrorList
	number := func(path string) {
		n, _, err := unstructured.NestedInt64(obj, splitPath(path)...)
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
		number(v.scale.SpecReplicasPath)
	}
	number(v.scale.StatusReplicasPath)
	return errs
}

// splitPath reads the simple JSON paths of CRDs: ".spec.replicas".
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
