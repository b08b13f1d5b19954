package rest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-operator/starling/runtime/sim/rest"
	"github.com/starling-operator/starling/runtime/sim/store"
)

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.n, statusReplicasPath: .status.n}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {n: {type: integer, default: 4}}}, status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

var fuzzBuiltins = sync.OnceValue(store.NewBuiltins)

// FuzzREST sends requests with any method, path, type and body, two of them, to a
// store that holds an object, an object of a CRD and a namespace. Whatever comes:
// no panic, an answer with a code, JSON where it says so, and a store that settles.
func FuzzREST(f *testing.F) {
	files, err := filepath.Glob("testdata/parity/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, c := range readParity(f, file) {
			for _, s := range c.steps {
				words := strings.Fields(filled(s.request, "default", nil) + " json")
				method := strings.TrimRight(words[0], "!~")
				if method == "UNTIL" || method == "WATCH" {
					method = "GET"
				}
				contentType, body := parityBody(f, words[2], filled(s.body, "default", nil))
				f.Add(method, words[1], contentType, body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, method, path, contentType string, body []byte) {
		if len(body) > 1<<14 || len(path) > 1<<10 {
			return
		}
		u, err := url.Parse("http://sim/" + strings.TrimPrefix(path, "/"))
		if err != nil {
			return
		}
		s := store.New(store.Options{Builtins: fuzzBuiltins(), MakeNamespaces: true})
		server := rest.New(rest.Options{Store: s})
		send := func(method string, u *url.URL, contentType string, body []byte) {
			r := &http.Request{Method: method, URL: u, Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(string(body)))}
			if u.Query().Has("watch") {
				q := u.Query()
				q.Del("watch") // would wait for events
				u.RawQuery = q.Encode()
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r.WithContext(t.Context()))
			if w.Code < 200 || w.Code > 599 {
				t.Errorf("%s %s: code %d", method, u, w.Code)
			}
			if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %s: the answer is no JSON: %s", method, u, w.Body)
			}
		}
		crd, _ := url.Parse("http://sim/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.example.com?fieldManager=f")
		send("PATCH", crd, "application/apply-patch+yaml", []byte(gadgets))
		for _, path := range []string{"/api/v1/namespaces/default/configmaps/x", "/apis/example.com/v1/namespaces/default/gadgets/x", "/api/v1/namespaces/default/secrets/x"} {
			u, _ := url.Parse("http://sim" + path + "?fieldManager=f&force=true")
			kind := map[string]string{"configmaps": `"v1","kind":"ConfigMap"`, "gadgets": `"example.com/v1","kind":"Gadget"`, "secrets": `"v1","kind":"Secret"`}[strings.Split(path, "/")[len(strings.Split(path, "/"))-2]]
			send("PATCH", u, "application/apply-patch+yaml", []byte(`{"apiVersion":`+kind+`,"metadata":{"name":"x"}}`))
		}
		send(method, u, contentType, body)
		send(method, u, contentType, body)
		s.Settle()
		if s.Settle() {
			t.Error("the store does not settle")
		}
	})
}
