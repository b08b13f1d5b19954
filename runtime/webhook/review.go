package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
	"github.com/starling-operator/starling/runtime/effect"
	"github.com/starling-operator/starling/runtime/object"
)

const admissionVersion = "admission.k8s.io/v1"

// admissionReview is an AdmissionReview as it comes in: of the objects only maps are made, once.
type admissionReview struct {
	metav1.TypeMeta
	Request *admissionRequest `json:"request"`
}

type admissionRequest struct {
	admissionv1.AdmissionRequest
	UserInfo struct {
		authenticationv1.UserInfo
		Extra map[string][]string `json:"extra"`
	} `json:"userInfo"`
	Object    map[string]any  `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
	Options   json.RawMessage `json:"options"`
}

// late decodes what most hooks do not look at.
func (r *admissionRequest) late(name string) (out map[string]any, err error) {
	raw := r.Options
	if name == "old_object" {
		raw = r.OldObject
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &out); err != nil {
		return nil, errors.New("it is no object")
	}
	return out, nil
}

func apiVersion(group, version string) string {
	return schema.GroupVersion{Group: group, Version: version}.String()
}

// asked is the request as the client has made it; nil where the API server does not say.
func (r *admissionRequest) asked() *builtins.ReviewTarget {
	if r.RequestKind == nil || r.RequestResource == nil {
		return nil
	}
	kind, resource := r.RequestKind, r.RequestResource
	return &builtins.ReviewTarget{
		APIVersion: apiVersion(kind.Group, kind.Version), Kind: kind.Kind, Resource: resource.Resource,
		ResourceAPIVersion: apiVersion(resource.Group, resource.Version), Subresource: r.RequestSubResource,
	}
}

// parseReview reads the body of an admission request.
func parseReview(body []byte) (*builtins.Review, error) {
	var in admissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return nil, badf(http.StatusBadRequest, "the request is no AdmissionReview: it is no JSON of one")
	}
	switch r := in.Request; {
	case in.APIVersion != admissionVersion || in.Kind != "AdmissionReview":
		return nil, badf(http.StatusBadRequest, "the request is no AdmissionReview of %s", admissionVersion)
	case r == nil:
		return nil, badf(http.StatusBadRequest, "the AdmissionReview holds no request")
	case r.UID == "":
		return nil, badf(http.StatusBadRequest, "the AdmissionReview has no uid")
	default:
		return &builtins.Review{
			UID: string(r.UID), Operation: string(r.Operation), Object: r.Object, Late: r.late,
			Namespace: r.Namespace, Name: r.Name, APIVersion: apiVersion(r.Kind.Group, r.Kind.Version), Kind: r.Kind.Kind,
			Resource: r.Resource.Resource, ResourceAPIVersion: apiVersion(r.Resource.Group, r.Resource.Version), Subresource: r.SubResource,
			Asked:  r.asked(),
			User:   builtins.ReviewUser{Name: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups, Extra: r.UserInfo.Extra},
			DryRun: r.DryRun != nil && *r.DryRun,
		}, nil
	}
}

func (s *server) review(ctx context.Context, to route, body []byte) (result string, answer []byte, err error) {
	review, err := parseReview(body)
	if err != nil {
		return "", nil, err
	}
	if to.modules {
		return s.reviewModule(ctx, review)
	}
	ref := effect.Ref{APIVersion: review.APIVersion, Kind: review.Kind, Namespace: review.Namespace, Name: review.Name}
	if s.own.Owns(ref) || to.mutate && (s.own.OwnsObject(review.APIVersion, review.Kind, review.Object) || s.others(ref)) {
		return answerReview(review, builtins.Response{}) // a release Secret holds all that its chart rendered
	}
	late := review.Late
	review.Object = s.sealed(review, review.Object)
	review.Late = func(name string) (map[string]any, error) {
		out, err := late(name)
		return s.sealed(review, out), err
	}
	response, err := s.answer(ctx, to.hook, review.Request(to.binding))
	if err != nil {
		return "", nil, err
	}
	return answerReview(review, response)
}

// sealed is an object as a validating hook sees it: without data, if it has the mark of an instance. Anybody may set that
// mark, so it keeps no hook from being asked.
func (s *server) sealed(review *builtins.Review, obj map[string]any) map[string]any {
	if !s.own.OwnsObject(review.APIVersion, review.Kind, obj) {
		return obj
	}
	out := object.CopyPlain(obj).(map[string]any)
	annotations := effect.At[map[string]any](out, "metadata", "annotations")
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	for _, field := range []string{"data", "binaryData", "stringData"} {
		delete(out, field)
	}
	return out
}

// answerReview makes the body of the answer.
func answerReview(review *builtins.Review, response builtins.Response) (result string, body []byte, err error) {
	out := &admissionv1.AdmissionResponse{UID: types.UID(review.UID), Allowed: true, Warnings: response.Warnings}
	result = "allowed"
	if d := response.Denied; d != nil {
		result, out.Allowed = "denied", false
		out.Result = &metav1.Status{Status: metav1.StatusFailure, Message: d.Message, Reason: reasonOf(d.Code), Code: int32(d.Code)}
	} else if response.Object != nil {
		patch, err := patchOf(review.Object, response.Object)
		if err != nil {
			return "", nil, err
		}
		if patch != nil {
			result, out.Patch, out.PatchType = "changed", patch, new(admissionv1.PatchTypeJSONPatch)
		}
	}
	body, err = json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: admissionVersion, Kind: "AdmissionReview"}, Response: out})
	return result, body, err
}

// reasonOf is Kubernetes' word for a code, where it has one that clients look at.
func reasonOf(code int) metav1.StatusReason {
	return map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusConflict: metav1.StatusReasonConflict,
		http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusBadRequest: metav1.StatusReasonBadRequest,
	}[code]
}
