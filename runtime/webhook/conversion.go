package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/starling-operator/starling/builtins"
)

const conversionVersion = "apiextensions.k8s.io/v1"

// conversionReview is a ConversionReview as it comes in.
type conversionReview struct {
	metav1.TypeMeta
	Request *struct {
		UID               string           `json:"uid"`
		DesiredAPIVersion string           `json:"desiredAPIVersion"`
		Objects           []map[string]any `json:"objects"`
	} `json:"request"`
}

type conversionAnswer struct {
	metav1.TypeMeta
	Response conversionResponse `json:"response"`
}

type conversionResponse struct {
	UID     string           `json:"uid"`
	Objects []map[string]any `json:"convertedObjects"`
	Result  metav1.Status    `json:"result"`
}

// parseConversion reads the body of a conversion request.
func parseConversion(body []byte) (uid string, r *builtins.Request, err error) {
	var in conversionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &in); err != nil {
		return "", nil, badf(http.StatusBadRequest, "the request is no ConversionReview: it is no JSON of one")
	}
	switch {
	case in.APIVersion != conversionVersion || in.Kind != "ConversionReview":
		return "", nil, badf(http.StatusBadRequest, "the request is no ConversionReview of %s", conversionVersion)
	case in.Request == nil:
		return "", nil, badf(http.StatusBadRequest, "the ConversionReview holds no request")
	case in.Request.UID == "" || in.Request.DesiredAPIVersion == "":
		return "", nil, badf(http.StatusBadRequest, "the ConversionReview has no uid or no desiredAPIVersion")
	}
	for i, obj := range in.Request.Objects {
		if obj == nil {
			return "", nil, badf(http.StatusBadRequest, "object %d of the ConversionReview is none", i)
		}
	}
	return in.Request.UID, &builtins.Request{Objects: in.Request.Objects, To: in.Request.DesiredAPIVersion}, nil
}

// convert answers a conversion request. An error of the hook is said in the answer, too,
// where the API server quotes it: so whoever reads an object is told.
func (s *server) convert(ctx context.Context, to route, module string, body []byte) (result string, answer []byte, err error) {
	uid, request, err := parseConversion(body)
	if err != nil {
		return "", nil, err
	}
	request.Binding = to.binding
	out := conversionResponse{UID: uid, Result: metav1.Status{Status: metav1.StatusSuccess}}
	result = "converted"
	response, failed := builtins.Response{}, fmt.Errorf("nobody converts these objects: no hook of a module %q in the tree does; put the module back, or end the conversion with `starling detach`", module[1:])
	if to.hook != "" {
		response, failed = s.answer(ctx, to.hook, request)
	}
	if failed != nil {
		result, out.Result = "error", metav1.Status{Status: metav1.StatusFailure, Message: "starling: " + failed.Error()}
	} else {
		out.Objects = response.Objects
	}
	if out.Objects == nil {
		out.Objects = []map[string]any{}
	}
	answer, err = json.Marshal(conversionAnswer{metav1.TypeMeta{APIVersion: conversionVersion, Kind: "ConversionReview"}, out})
	return result, answer, cmp.Or(failed, err)
}
