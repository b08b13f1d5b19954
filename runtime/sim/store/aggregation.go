package store

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/validation"
)

// apiServices are objects that name other API servers. The kinds of those are not served
// here: nobody runs them.
const apiServices = "apiservices"

// apiService checks an APIService.
func apiService(obj map[string]any) field.ErrorList {
	var sent apiregistrationv1.APIService
	var internal apiregistration.APIService
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj, &sent)
	if err == nil {
		err = apiregistrationv1.Convert_v1_APIService_To_apiregistration_APIService(&sent, &internal, nil)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec"), nil, err.Error())}
	}
	return validation.ValidateAPIService(context.Background(), &internal)
}

// localService says of an APIService that names no Service that it is available.
func (s *Store) localService(obj map[string]any) {
	if nested(obj, "spec", "service") != nil {
		return
	}
	local := apiregistration.NewLocalAvailableAPIServiceCondition()
	obj["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": string(local.Type), "status": string(local.Status), "reason": local.Reason, "message": local.Message, "lastTransitionTime": s.now(),
	}}}
}
