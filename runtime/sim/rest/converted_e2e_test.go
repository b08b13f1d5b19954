//go:build e2e

package rest_test

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// serveConversions answers the real API server with [convertLamp].
func serveConversions(t *testing.T) (clientConfig string) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = kjson.UnmarshalCaseSensitivePreserveInts(body, &review)
		}
		request, _ := review["request"].(map[string]any)
		to, _ := request["desiredAPIVersion"].(string)
		objects, _ := request["objects"].([]any)
		made := []any{}
		for _, obj := range objects {
			if err == nil {
				var one map[string]any
				one, err = convertLamp("lamps.", obj.(map[string]any), to)
				made = append(made, one)
			}
		}
		response := map[string]any{"uid": request["uid"], "convertedObjects": made, "result": map[string]any{"status": "Success"}}
		if err != nil {
			response["convertedObjects"], response["result"] = []any{}, map[string]any{"status": "Failure", "message": err.Error()}
		}
		answer := unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}}
		text, err := answer.MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf("{url: %q, caBundle: %s}", server.URL, base64.StdEncoding.EncodeToString(ca))
}
