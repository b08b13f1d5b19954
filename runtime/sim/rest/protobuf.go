package rest

import (
	"fmt"
	"mime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobufType is what client-go's typed clients send; they take JSON in answers.
const protobufType = "application/vnd.kubernetes.protobuf"

// decodeProtobuf reads an object of a built-in kind.
func (q *request) decodeProtobuf(body []byte) (map[string]any, error) {
	obj, gvk, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body cannot be read as the protobuf of a %s: %v", q.kind.Kind, err))
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	out["apiVersion"], out["kind"] = gvk.GroupVersion().String(), gvk.Kind
	return out, nil
}

// isProtobuf says how the body is written.
func (q *request) isProtobuf() bool {
	typ, _, _ := mime.ParseMediaType(q.http.Header.Get("Content-Type"))
	return typ == protobufType
}

func decodeDeleteOptions(body []byte, into *metav1.DeleteOptions) error {
	_, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(body, nil, into)
	return err
}
